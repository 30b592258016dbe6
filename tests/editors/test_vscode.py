"""VS Code with the packed extension against the real server: what a user types, clicks and sees."""

from __future__ import annotations

import os
import signal
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drive_vscode import Browser, CodeServer, Window
from installed import Installed, Server, wait_for
from projects import FUNCTION, ORDERS, RENAME, TYPED_BEFORE, make_project

pytestmark = [pytest.mark.editors, pytest.mark.timeout(300)]

Open = Callable[[str], Window]

TYPED = "\n".join(TYPED_BEFORE)

FILES = (
    *("taken", "typed", "words", "edit", "hunks", "choose", "discard", "long", "box", "bulb"),
    *("shop", "pause", "first", "killed"),
)


@pytest.fixture(scope="module")
def code_server(
    installed: Installed, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CodeServer]:
    """One VS Code for all tests of this module."""
    started = CodeServer(installed, server, tmp_path_factory.mktemp("code-server"))
    yield started
    started.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One Chromium for all tests of this module; nothing outside this machine was asked for."""
    started = Browser(tmp_path_factory.mktemp("chromium"))
    yield started
    outside = set(started.outside)
    started.close()
    assert not outside


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One project; every test has a file of its own in it.

    The files are there before the window: its watcher starts late and may miss new ones.
    """
    folder = make_project(tmp_path_factory.mktemp("vscode") / "project")
    for name in FILES:
        (folder / f"{name}.py").touch()
    return folder


@pytest.fixture(scope="module")
def shared_window(code_server: CodeServer, browser: Browser, project: Path) -> Window:
    """The window that most tests use."""
    return Window(code_server, browser, project)


@pytest.fixture
def window(shared_window: Window, tmp_path: Path, failed: Callable[[], bool]) -> Iterator[Window]:
    """The shared window without open editors; a failed test leaves a picture."""
    yield shared_window
    if failed():
        shared_window.picture(tmp_path / "failed.png")
    shared_window.close_editors()


def write(window: Window, name: str, text: str) -> Path:
    """A file of the test's own in the window's folder."""
    path = window.folder / name
    path.write_bytes(text.encode())
    return path


def suggested(window: Window, name: str) -> str:
    """Opens a file, types the start of a line whose rest the model knows, and waits for it."""
    write(window, name, ORDERS + TYPED)
    window.open(name)
    window.type("[")
    return window.wait_ghost(60)


def without_blank_lines(text: str) -> list[str]:
    """The lines that are not blank: those a suggestion shows as text."""
    return [line for line in text.splitlines() if line.strip()]


def previewed(window: Window, name: str, text: str = ORDERS) -> None:
    """Opens a file, asks for an edit of its first function and waits for the whole proposal."""
    write(window, name, text)
    window.open(name)
    window.select_lines(*FUNCTION)
    window.ask_for_edit(RENAME)
    window.wait(window.in_preview, "preview", 60)
    window.wait(window.has_proposal, "proposal", 60)


def test_suggestion_is_taken_whole(window: Window, media: Path) -> None:
    ghost = suggested(window, "taken.py")
    window.picture(media / "vscode-suggestion.png")
    window.keys("Tab")
    window.wait(lambda: ghost not in window.ghost(), "taken suggestion")
    assert without_blank_lines(window.saved("taken.py").decode()) == without_blank_lines(
        ORDERS + TYPED + "[" + ghost
    )


def test_typing_what_is_suggested_keeps_the_rest(window: Window) -> None:
    ghost = suggested(window, "typed.py")
    for count in range(1, 4):
        window.type(ghost[count - 1])
        window.wait(lambda count=count: window.ghost() == ghost[count:], "rest of the suggestion")
    window.type("!")
    window.wait(lambda: window.ghost() != ghost[3:], "another suggestion or none")


def test_words_are_taken_and_escape_dismisses(window: Window) -> None:
    ghost = suggested(window, "words.py")
    window.keys("Control+ArrowRight")
    rest = window.wait(lambda: window.ghost() != ghost and window.ghost(), "rest of the suggestion")
    assert ghost.endswith(rest)
    window.keys("Escape")
    window.wait(lambda: not window.ghost(), "no suggestion")
    taken = ghost[: len(ghost) - len(rest)]
    assert window.saved("words.py").decode() == ORDERS + TYPED + "[" + taken


def test_edit_is_previewed_accepted_and_undone_at_once(window: Window, media: Path) -> None:
    previewed(window, "edit.py")
    window.picture(media / "vscode-edit.png")
    assert (window.folder / "edit.py").read_text(encoding="utf-8") == ORDERS
    window.keys("Control+Enter")
    window.wait(lambda: not window.in_preview(), "decided edit")
    window.focus()
    edited = window.saved("edit.py").decode()
    assert edited != ORDERS
    assert "items" in edited
    window.keys("Control+z")
    assert window.saved("edit.py").decode() == ORDERS
    window.keys("Control+Shift+z")
    assert window.saved("edit.py").decode() == edited


def test_hunks_are_decided_one_by_one(window: Window) -> None:
    previewed(window, "hunks.py")
    window.keys("Alt+Enter")
    window.wait(lambda: window.changed_lines() == 1, "one change left")
    window.keys("Control+Backspace")
    window.wait(lambda: not window.in_preview(), "decided edit")
    window.focus()
    after = window.saved("hunks.py").decode().splitlines()
    changed = [new for old, new in zip(ORDERS.splitlines(), after, strict=True) if old != new]
    assert changed == ["def order_total(items, tax):"]


def test_changes_are_chosen_from_a_list(window: Window, media: Path) -> None:
    previewed(window, "choose.py")
    window.command("Redraft: Choose Changes")
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    rows.nth(1).wait_for()
    window.picture(media / "vscode-choose.png")
    rows.nth(0).locator(".label-name").first.click()
    window.page.get_by_role("button", name="OK").click()
    window.wait(lambda: not window.in_preview(), "decided edit")
    window.focus()
    after = window.saved("choose.py").decode().splitlines()
    changed = [new for old, new in zip(ORDERS.splitlines(), after, strict=True) if old != new]
    assert changed == ["    for price in items:"]


def test_discarded_edit_leaves_no_trace(window: Window) -> None:
    previewed(window, "discard.py")
    window.command("Redraft: Discard All Changes")
    window.wait(lambda: not window.in_preview(), "decided edit")
    assert (window.folder / "discard.py").read_text(encoding="utf-8") == ORDERS
    assert not window.is_dirty("discard.py")


def test_edit_is_cancelled(window: Window, server: Server) -> None:
    write(window, "long.py", ORDERS)
    window.open("long.py")
    window.select_lines(*FUNCTION)
    engine = server.status()["engines"][0]["pid"]
    os.kill(engine, signal.SIGSTOP)  # however fast the model is, it does not answer now
    try:
        window.ask_for_edit(RENAME)
        window.wait(window.in_preview, "preview", 60)
        window.toast(RENAME).get_by_role("button", name="Cancel").click()
        window.wait(lambda: not window.in_preview(), "no preview")
    finally:
        os.kill(engine, signal.SIGCONT)
    wait_for(lambda: all(one["queue"] == 0 for one in server.status()["engines"]), "idle engine")
    assert (window.folder / "long.py").read_text(encoding="utf-8") == ORDERS
    assert not window.is_dirty("long.py")
    assert not window.in_preview()


def test_instruction_box_has_ready_made_and_earlier_ones(window: Window, media: Path) -> None:
    previewed(window, "box.py")
    window.keys("Control+Backspace")
    window.wait(lambda: not window.in_preview(), "decided edit")
    window.focus()
    window.select_lines(*FUNCTION)
    window.keys("Control+k", "Control+e")
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    rows.filter(has_text="Redraft: add a docstring").first.wait_for()
    window.picture(media / "vscode-instruction.png")
    rows.filter(has_text=RENAME).first.wait_for()
    window.keys("Escape")
    assert not window.in_preview()


def test_lightbulb_offers_the_edit(window: Window) -> None:
    write(window, "bulb.py", ORDERS)
    window.open("bulb.py")
    window.select_lines(*FUNCTION)
    window.keys("Control+.")
    action = window.page.locator(
        ".action-widget .monaco-list-row", has_text="Edit with instruction"
    )
    action.first.wait_for()
    action.first.click()
    window.page.locator(".quick-input-widget:visible", has_text="Edit lines 4 to").wait_for()
    window.keys("Escape")


def test_emoji_and_carriage_returns_stay(window: Window) -> None:
    text = ORDERS.replace("Orders and", "Orders 🛒 and é") + TYPED
    previewed(window, "shop.py", text.replace("\n", "\r\n"))
    window.keys("Control+Enter")
    window.wait(lambda: not window.in_preview(), "decided edit")
    window.focus()
    window.keys("Control+End")
    window.type("[")
    ghost = window.wait_ghost(60)
    window.keys("Tab")
    window.wait(lambda: ghost not in window.ghost(), "taken suggestion")
    window.type("\n# 😀 done")
    after = window.saved("shop.py")
    assert after.count(b"\n") == after.count(b"\r\n") == after.count(b"\r")
    assert "Orders 🛒 and é".encode() in after
    assert b"def order_total(items, tax):\r\n" in after
    assert "# 😀 done".encode() in after
    typed = without_blank_lines(TYPED + "[" + ghost)
    assert without_blank_lines(after.decode())[-len(typed) - 1 : -1] == typed


def test_status_menu_pauses_and_resumes(window: Window, media: Path) -> None:
    write(window, "pause.py", ORDERS)
    window.open("pause.py")
    window.open_menu()
    window.picture(media / "vscode-menu.png")
    window.page.locator(".quick-input-list .monaco-list-row", has_text="Pause here").click()
    window.wait(lambda: window.state() == "paused", "paused status")
    window.open_menu()
    window.page.locator(".quick-input-list .monaco-list-row", has_text="Resume here").click()
    window.wait_running()


def test_unknown_setting_is_not_sent(window: Window, server: Server) -> None:
    """What only the extension reads would be reported by the server as unknown."""
    log = Path(server.status()["log"]) / "daemon.log"
    assert "unknown setting" not in log.read_text(encoding="utf-8")


def test_second_window_shares_the_daemon(
    window: Window, code_server: CodeServer, browser: Browser, server: Server, tmp_path: Path
) -> None:
    write(window, "first.py", ORDERS)
    window.open("first.py")
    before = server.status()
    other = Window(code_server, browser, make_project(tmp_path / "other"))
    try:
        other.open("shapes.py")
        status = wait_for(
            lambda: (one := server.status())["clients"] > before["clients"] and one,
            "another client",
        )
        assert status["pid"] == before["pid"]
        assert [one["pid"] for one in status["engines"]] == [
            one["pid"] for one in before["engines"]
        ]
    finally:
        other.page.close()


def test_killed_daemon_comes_back_while_typing(window: Window, server: Server) -> None:
    ghost = suggested(window, "killed.py")
    killed = server.status()["pid"]
    os.kill(killed, signal.SIGKILL)
    window.type(ghost[:6])
    window.wait(lambda: server.status().get("pid", killed) != killed, "another daemon", 60)
    window.wait_running()

    def again() -> str:
        window.command("Trigger Inline Suggestion")
        window.page.wait_for_timeout(1500)
        return window.ghost()

    window.wait(again, "suggestion of the new daemon", 60)
    window.keys("Escape")
    assert window.saved("killed.py").decode() == ORDERS + TYPED + "[" + ghost[:6]


def test_untrusted_folder_is_served_with_the_users_own_server(
    installed: Installed, server: Server, browser: Browser, tmp_path: Path
) -> None:
    folder = make_project(tmp_path / "untrusted")
    (folder / ".vscode").mkdir()
    settings = '{"redraft.serverPath": "/bin/false", "redraft.model.path": "/nowhere"}'
    (folder / ".vscode/settings.json").write_text(settings, encoding="utf-8")
    code_server = CodeServer(
        installed, server, tmp_path / "code-server",
        trusted=False, **{"security.workspace.trust.startupPrompt": "never"},
    )  # fmt: skip
    try:
        window = Window(code_server, browser, folder)
        window.open("shapes.py")
        window.page.locator(".statusbar-item", has_text="Restricted Mode").first.wait_for()
        assert window.state() in ("ready", "indexing")
        window.page.close()
    finally:
        code_server.close()


def wheel_of(server: Server, folder: Path) -> Path:
    """A package ``redraft`` whose only content is the command of the tests' server."""
    path = folder / "redraft-0.1.0-py3-none-any.whl"
    info = "redraft-0.1.0.dist-info"
    files = {
        "redraft-0.1.0.data/scripts/redraft": f"#!/bin/sh\nexec '{server.command}' \"$@\"\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: redraft\nVersion: 0.1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16  # a command must be executable
            archive.writestr(entry, text)
    return path


def test_private_environment_is_made_when_the_user_agrees(
    installed: Installed, server: Server, browser: Browser, tmp_path: Path
) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    (commands / "python3").symlink_to(sys.executable)
    code_server = CodeServer(
        installed, server, tmp_path / "code-server",
        environment={"PATH": f"{commands}:/usr/bin:/bin", "PIP_NO_INDEX": "1"},
        **{
            "redraft.serverPath": "",
            "redraft.serverPackage": str(wheel_of(server, tmp_path)),
        },
    )  # fmt: skip
    try:
        window = Window(code_server, browser, make_project(tmp_path / "project"))
        offer = window.toast("Redraft's server was not found")
        offer.wait_for(timeout=60000)
        assert window.state() == "error"
        offer.get_by_role("button", name="Install").click()
        window.wait_running()
        made = list((tmp_path / "code-server").rglob("server/bin/redraft"))
        assert len(made) == 1
        window.page.close()
    finally:
        code_server.close()
