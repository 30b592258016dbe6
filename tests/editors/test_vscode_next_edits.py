"""Next edits in VS Code against the real server: keys, the screen, the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser import Browser
from code_server import CodeServer
from drive_vscode import Window
from installed import Server
from next_edit_files import BASKET, CALLS, RENAMED, SHOP
from prepared import prepared_place
from projects import make_project

pytestmark = pytest.mark.editors

NAME = "basket.py"


def opened(window: Window, text: str = BASKET) -> None:
    """Opens a file with a text of the test's own, once it is on the screen."""
    (window.folder / NAME).write_bytes(text.encode())
    window.open(NAME)
    window.wait(lambda: any(window.lines()), "text of the file")


def rename(window: Window, line: int = 4, column: int = 11) -> None:
    """Types another name over the first parameter, and leaves what is suggested there."""
    window.go_to(line, column)
    window.keys("Control+Shift+ArrowRight")
    window.type("amounts")
    window.keys("Home")


def wait_proposal(window: Window, line: int, text: str = "amounts") -> None:
    """Until the new text is shown behind the old one in a line, 1-based."""
    window.wait(lambda: window.next_edit() == (line, text), f"next edit in line {line}")


def test_a_rename_is_followed_by_tabs_and_undone_step_by_step(window: Window, media: Path) -> None:
    opened(window)
    rename(window)
    wait_proposal(window, 5)
    assert window.struck_out() == "prices"
    window.picture_of_editor(media / "vscode-next-edit.png")
    window.keys("Tab")
    window.wait_cursor(5, 12)
    assert window.lines()[4] == "    kept = prices"
    wait_proposal(window, 5)
    window.keys("Tab")
    window.wait(lambda: window.lines()[4] == "    kept = amounts", "taken next edit")
    wait_proposal(window, 6)
    window.keys("Tab")
    window.wait_cursor(6, 16)
    wait_proposal(window, 6)
    window.keys("Tab")
    window.wait(lambda: "prices" not in "".join(window.lines()), "whole rename")
    window.wait(lambda: not window.next_edit(), "nothing more to propose")
    assert window.saved(NAME).decode() == RENAMED
    window.keys("Control+z")
    window.wait(lambda: "prices" in window.lines()[5], "one step back")
    assert window.lines()[4] == "    kept = amounts"
    window.keys("Control+z")
    window.wait(lambda: window.lines()[4] == "    kept = prices", "another step back")
    assert window.lines()[3] == "def total(amounts, tax):"


def test_a_rejected_one_stays_away(window: Window) -> None:
    opened(window)
    rename(window)
    wait_proposal(window, 5)
    window.keys("Escape")
    wait_proposal(window, 6)
    window.keys("Escape")
    window.wait(lambda: not window.next_edit(), "nothing more to propose")
    window.command("Redraft: Show Next Edit")
    window.toast("no next edit").wait_for()
    assert window.next_edit() is None
    assert "".join(window.lines()).count("prices") == 2
    window.command("Notifications: Clear All Notifications")


def test_one_of_several_is_taken_alone(window: Window) -> None:
    opened(window)
    rename(window)
    wait_proposal(window, 5)
    window.keys("Escape")
    wait_proposal(window, 6)
    window.keys("Tab")
    window.wait_cursor(6, 16)
    wait_proposal(window, 6)
    window.keys("Tab")
    window.wait(lambda: "sum(amounts)" in window.lines()[5], "taken next edit")
    assert window.lines()[4] == "    kept = prices"
    window.keys("Control+z")
    window.wait(lambda: "sum(prices)" in window.lines()[5], "one step back")
    assert window.lines()[3] == "def total(amounts, tax):"


def test_what_is_typed_of_it_stays(window: Window) -> None:
    opened(window)
    rename(window)
    wait_proposal(window, 5)
    window.keys("Tab")
    window.wait_cursor(5, 12)
    wait_proposal(window, 5)
    window.keys("Control+Shift+ArrowRight")
    for count in range(1, 4):
        window.type("amounts"[count - 1])
        rest = "amounts"[count:]
        typed = "    kept = " + "amounts"[:count]
        window.wait(lambda rest=rest, typed=typed: window.lines()[4] == typed + rest, "its rest")
    window.page.wait_for_timeout(1000)
    assert window.lines()[4] == "    kept = amounts", "it stays while one rests"
    window.keys("Tab")
    assert window.saved(NAME).decode().splitlines()[4] == "    kept = amounts"
    wait_proposal(window, 6)
    window.go_to(6, 16)
    window.type("x")
    window.wait(lambda: window.next_edit() is None, "another text")


def test_one_out_of_sight_is_a_sign_and_a_hint(window: Window, media: Path) -> None:
    filler = "".join(f"    # line {number}\n" for number in range(100))
    opened(window, BASKET.replace("    kept = prices\n", filler))
    rename(window)
    hint = "⇥ basket.py:105 rename prices to amounts"
    window.wait(lambda: window.next_edit() == (4, hint), "hint")
    window.picture_of_editor(media / "vscode-next-edit-hint.png")
    window.keys("Tab")
    wait_proposal(window, 105)
    window.wait_cursor(105, 16)
    assert window.signs() == 1
    window.keys("Tab")
    window.wait(
        lambda: any(line.startswith("    return sum(amounts)") for line in window.lines()),
        "taken next edit",
    )
    window.command("Go Back")
    window.wait(lambda: window.cursor_line() == 4, "back to where one came from")


def test_one_in_another_file_is_jumped_to(window: Window) -> None:
    (window.folder / "shop.py").write_text(SHOP, encoding="utf-8")
    opened(window)
    window.go_to(4, 5)
    window.keys("Control+Shift+ArrowRight")
    window.type("sum_up")
    window.keys("Home")
    hint = "⇥ shop.py:1 rename total to sum_up"
    window.wait(lambda: window.next_edit() == (4, hint), "hint")
    window.keys("Tab")
    window.page.locator('.tab.active[data-resource-name="shop.py"]').wait_for()
    wait_proposal(window, 1, "sum_up")
    window.keys("Tab")
    window.wait(lambda: window.lines()[0] == "from basket import sum_up", "taken next edit")
    wait_proposal(window, 5, "sum_up")
    window.keys("Tab")
    window.wait_cursor(5, 13)
    wait_proposal(window, 5, "sum_up")
    window.keys("Tab")
    window.wait(lambda: "total" not in "".join(window.lines()), "whole rename")
    done = SHOP.replace("total", "sum_up")
    assert window.saved("shop.py").decode() == done


def test_what_is_inserted_is_ghost_text_and_what_is_unknown_only_a_place(
    window: Window, media: Path
) -> None:
    opened(window, CALLS)
    window.go_to(1, 17)
    window.type(", tax")
    window.keys("Home")
    wait_proposal(window, 6, ", tax")
    assert not window.struck_out()
    window.keys("Tab")
    window.wait_cursor(6, 24)
    window.wait(lambda: window.ghost() == ", tax", "the editor's own ghost text")
    window.picture_of_editor(media / "vscode-next-edit-ghost.png")
    window.keys("Tab")
    window.wait(lambda: window.lines()[5] == "    return total(prices, tax)", "taken argument")
    window.wait(lambda: (window.next_edit() or (0, ""))[0] == 10, "place without a text")
    window.keys("Tab")
    window.wait(lambda: window.cursor_line() == 10, "cursor at the call")
    window.wait(lambda: window.next_edit() is None, "a place that was visited")
    assert window.saved(NAME).decode().count("total(prices)") == 1


def test_quiet_mode_shows_the_sign_until_the_key(
    code_server: CodeServer, browser: Browser, tmp_path: Path
) -> None:
    folder = make_project(tmp_path / "project")
    (folder / ".vscode").mkdir()
    settings = {"redraft.nextEdits.display": "sign"}
    (folder / ".vscode/settings.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / NAME).touch()
    window = Window(code_server, browser, folder)
    opened(window)
    rename(window)
    window.wait(lambda: window.signs() == 1, "sign")
    assert window.next_edit() is None
    window.keys("Tab")
    wait_proposal(window, 5)
    window.keys("Tab")
    window.wait(lambda: window.lines()[4] == "    kept = amounts", "taken next edit")
    window.wait(lambda: window.signs() == 1, "the next sign")
    assert window.next_edit() is None
    window.page.close()


def test_a_suggestion_wins_until_it_is_sent_away(window: Window, server: Server) -> None:
    place = prepared_place(server, window.folder, NAME, after="")
    text = BASKET + "\n\n" + place.text
    opened(window, text)
    rename(window)
    wait_proposal(window, 5)
    window.keys("Control+End")
    window.type(place.key)
    window.wait_ghost()
    assert window.next_edit() is None
    window.keys("Escape")
    window.wait(lambda: window.next_edit() is not None, "next edit in its place")
    assert not window.ghost()


def test_keys_are_the_users_own_where_nothing_is_shown(window: Window) -> None:
    opened(window, "x = 1\n")
    window.go_to(1, 1)
    window.keys("Tab")
    window.wait(lambda: window.lines()[0] == "    x = 1", "indentation by Tab")
    assert window.signs() == 0


def test_no_byte_changes_outside_of_a_next_edit(window: Window) -> None:
    text = BASKET.replace("    kept = prices", '    kept =\t"🛒é", prices, "世 "')
    text = text.replace("\n", "\r\n")
    opened(window, text)
    rename(window)
    wait_proposal(window, 5)
    window.keys("Tab", "Tab")
    wait_proposal(window, 6)
    window.keys("Tab", "Tab")
    window.wait(lambda: "prices" not in "".join(window.lines()), "whole rename")
    assert window.saved(NAME) == text.replace("prices", "amounts").encode()
