"""VS Code with the packed extension against the real server: what a user types, clicks and sees."""

from __future__ import annotations

import os
import signal
from pathlib import Path, PurePath

import pytest
from browser import Browser
from code_server import CodeServer
from drive_vscode import Window
from installed import EDITORS_MODEL, Server
from prepared import Place, in_windows_form, prepared_place
from projects import ORDERS, make_project

pytestmark = pytest.mark.editors
DEFAULT = "redraft-default-135m.gguf"


def write(window: Window, name: str, text: str) -> None:
    """A file of the test's own in the window's folder."""
    (window.folder / name).write_bytes(text.encode())


def suggested(window: Window, server: Server, name: str) -> tuple[Place, str]:
    """Opens a file, types the start of a line whose rest the model knows, and waits for it."""
    place = prepared_place(server, window.folder, name, after="")
    write(window, name, place.text)
    window.open(name)
    window.type(place.key)
    return place, window.wait_ghost()


def begins_with_lines_of(shown: str, text: str) -> bool:
    """Whether a text is what was on the screen, and perhaps lines that came a moment later.

    Blank lines do not count: a suggestion does not show them as text.
    """
    expected, found = (
        [line.rstrip() for line in one.splitlines() if line.strip()] for one in (shown, text)
    )
    return found[: len(expected)] == expected


SHOP = """\
def area(width, height):
    return width * height


class Box:
    def __init__(self, width, height):
        self.width = width
"""
LINE = "self.height = height"


@pytest.mark.skipif(
    PurePath(EDITORS_MODEL).name != DEFAULT, reason="the page shows the default model"
)
def test_a_line_of_the_default_model_is_pictured(window: Window, media: Path) -> None:
    write(window, "line.py", SHOP.removesuffix("\n"))
    window.open("line.py")
    window.type("\n")
    assert window.wait_ghost() == LINE
    window.picture(media / "vscode-suggestion.png")


def test_suggestion_is_taken_whole(window: Window, server: Server) -> None:
    place, ghost = suggested(window, server, "taken.py")
    window.keys("Tab")
    after = window.saved_otherwise("taken.py", place.typed)
    assert begins_with_lines_of(place.typed + ghost, after)


def test_typing_what_is_suggested_keeps_the_rest(window: Window, server: Server) -> None:
    _, ghost = suggested(window, server, "typed.py")
    for count in range(1, 4):
        window.type(ghost[count - 1])
        rest = ghost[count:]
        window.wait(lambda rest=rest: window.ghost().startswith(rest), "rest of the suggestion")
    window.type("!")
    window.wait(lambda: not window.ghost().startswith(ghost[3:]), "another suggestion or none")


def test_words_are_taken_and_escape_dismisses(window: Window, server: Server) -> None:
    place, ghost = suggested(window, server, "words.py")
    window.keys("Control+ArrowRight")

    first_line = ghost.split("\n")[0]

    def shortened() -> bool:
        left = window.ghost().split("\n")[0]
        return bool(left) and left != first_line and first_line.endswith(left)

    window.wait(shortened, "rest of the suggestion")
    window.keys("Escape")
    window.wait(lambda: not window.ghost(), "no suggestion")
    taken = window.saved("words.py").decode().removeprefix(place.typed)
    assert taken
    assert ghost.startswith(taken)
    assert len(taken) < len(first_line)


def test_emoji_and_carriage_returns_stay_with_a_suggestion(window: Window, server: Server) -> None:
    place = prepared_place(server, window.folder, "basket.py", in_windows_form, after="")
    write(window, "basket.py", place.text)
    window.open("basket.py")
    window.type(place.key)
    ghost = window.wait_ghost()
    window.keys("Tab")
    window.saved_otherwise("basket.py", place.typed)
    window.type("\n# 😀 done")
    after = window.saved("basket.py")
    assert after.count(b"\n") == after.count(b"\r\n") == after.count(b"\r")
    assert begins_with_lines_of(place.typed + ghost, after.decode())
    assert after.decode().splitlines()[-1].strip() == "# 😀 done"


def test_status_menu_pauses_and_resumes(window: Window, media: Path) -> None:
    write(window, "pause.py", ORDERS)
    window.open("pause.py")
    window.open_menu()
    window.picture(media / "vscode-menu.png")
    window.page.locator(".quick-input-list .monaco-list-row", has_text="Pause here").click()
    window.wait(lambda: window.state() == "paused", "paused status")
    window.choose_in_menu("Resume here")
    window.wait_running()
    window.choose_in_menu("Snooze")
    window.page.locator(".quick-input-list .monaco-list-row", has_text="10 minutes").click()
    window.wait(lambda: "paused until" in window.summary(), "status of a snooze")
    window.choose_in_menu("Resume here")
    window.wait_running()


def test_status_tells_model_and_speed(window: Window, server: Server) -> None:
    suggested(window, server, "speed.py")
    engine = server.engine()
    window.wait(lambda: engine["model"] in window.summary(), "name of the model")
    window.command("Redraft: Show Status")
    window.toast(engine["model"]).wait_for()
    window.command("Notifications: Clear All Notifications")


def test_menu_shows_the_servers_log_and_the_doctor(window: Window, server: Server) -> None:
    write(window, "menu.py", ORDERS)
    window.open("menu.py")
    window.choose_in_menu("Show log")
    window.page.locator('.tab.active[data-resource-name="daemon.log"]').wait_for()
    window.choose_in_menu("Run doctor")
    window.page.locator(".xterm-rows", has_text=Path(EDITORS_MODEL).name).first.wait_for()
    window.command("View: Hide Panel")


def test_server_is_restarted_and_reindexes(window: Window, server: Server) -> None:
    write(window, "menu.py", ORDERS)
    window.open("menu.py")
    window.choose_in_menu("Reindex the workspace")
    window.wait_running()
    before = server.fronts()
    window.choose_in_menu("Restart server")
    window.wait(lambda: server.fronts() - before, "another front")
    window.wait_running()
    assert not window.toast("Redraft").count()


def test_walkthrough_opens(window: Window) -> None:
    window.command("Welcome: Open Walkthrough...")
    page = window.page
    page.locator(".quick-input-list .monaco-list-row", has_text="Start with Redraft").click()
    for step in ("Have the server", "Type", "Edit with an instruction", "See what it does"):
        page.locator(".gettingStartedContainer").get_by_text(step, exact=True).first.wait_for()


def test_unknown_setting_is_not_sent(window: Window, server: Server) -> None:
    """What only the extension reads would be reported by the server as unknown."""
    log = Path(server.status()["log"]) / "daemon.log"
    assert "unknown setting" not in log.read_text(encoding="utf-8")


def test_second_window_shares_the_daemon(
    window: Window, code_server: CodeServer, browser: Browser, server: Server, tmp_path: Path
) -> None:
    write(window, "first.py", ORDERS)
    window.open("first.py")
    before = server.settled()
    other = Window(code_server, browser, make_project(tmp_path / "other"))
    try:
        other.open("orders.py")
        after = server.settled()
        assert after["clients"] == before["clients"] + 1
        assert after["pid"] == before["pid"]
        assert [one["pid"] for one in after["engines"]] == [one["pid"] for one in before["engines"]]
    finally:
        other.page.close()


def test_killed_daemon_comes_back_while_typing(window: Window, server: Server) -> None:
    place, ghost = suggested(window, server, "killed.py")
    killed = server.status()["pid"]
    os.kill(killed, signal.SIGKILL)
    window.type(ghost[:6])
    window.wait(lambda: server.status().get("pid", killed) != killed, "another daemon")
    window.wait_running()
    assert window.saved("killed.py").decode() == place.typed + ghost[:6]
    window.keys(*["Backspace"] * 6)

    window.wait_ghost()
    window.keys("Escape")
    assert window.saved("killed.py").decode() == place.typed


def test_killed_server_is_started_again_while_typing(window: Window, server: Server) -> None:
    place, ghost = suggested(window, server, "ended.py")
    before = server.fronts()
    for front in before:
        os.kill(front, signal.SIGKILL)
    window.type(ghost[:6])
    window.wait(lambda: server.fronts() - before, "another front")
    window.wait_running()
    assert window.saved("ended.py").decode() == place.typed + ghost[:6]
    window.keys(*["Backspace"] * 6)
    window.wait_ghost()
