"""Edits in VS Code with the packed extension against the real server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from drive_vscode import LIST_ROW, Window, lines_on_screen
from installed import Server
from prepared import (
    Edit,
    changes_something,
    changes_two_places,
    in_windows_form,
    is_written_by_the_model,
    prepared_edit,
)

pytestmark = pytest.mark.editors


def opened_for_edit(
    window: Window,
    server: Server,
    name: str,
    wanted: Callable[[Edit], bool] = changes_something,
    change: Callable[[str], str] = str,
) -> Edit:
    """Opens a file in which the model can do something, with the lines in question selected."""
    edit = prepared_edit(server, window.folder, name, wanted, change)
    (window.folder / name).write_bytes(edit.text.encode())
    window.open(name)
    window.select_lines(edit.first, edit.last)
    return edit


def previewed(window: Window, server: Server, name: str, **more: Any) -> Edit:
    """Opens a file, asks for an edit and waits for the whole proposal."""
    edit = opened_for_edit(window, server, name, **more)
    window.ask_for_edit(edit.instruction)
    window.wait(window.in_preview, "preview")
    window.wait(lambda: window.proposes(edit.after), "proposal")
    return edit


def wait_decided(window: Window) -> None:
    """Until the preview has gone and the document is in front."""
    window.wait(lambda: not window.in_preview(), "decided edit")
    window.focus()


def on_disk(window: Window, name: str) -> str:
    """A file's text as it was saved last."""
    return (window.folder / name).read_bytes().decode()


def test_edit_is_previewed_accepted_and_undone_at_once(
    window: Window, server: Server, media: Path
) -> None:
    edit = previewed(window, server, "edit.py")
    window.wait(lambda: not window.toast(edit.instruction).count(), "end of the progress")
    window.page.wait_for_timeout(500)  # the picture's colours come last
    window.picture(media / "vscode-edit.png")
    assert window.compares_with(edit.text)
    assert on_disk(window, "edit.py") == edit.text
    window.keys("Control+Enter")
    wait_decided(window)
    assert window.saved("edit.py").decode() == edit.after
    window.keys("Control+z")
    assert window.saved("edit.py").decode() == edit.text
    window.keys("Control+Shift+z")
    assert window.saved("edit.py").decode() == edit.after


def test_answer_streams_into_the_preview(window: Window, server: Server) -> None:
    edit = opened_for_edit(window, server, "stream.py", is_written_by_the_model)
    whole = [[], lines_on_screen(edit.text), lines_on_screen(edit.after)]
    with server.slow_engine():
        window.ask_for_edit(edit.instruction)
        window.wait(lambda: window.proposal() not in whole, "part of the answer")
        assert on_disk(window, "stream.py") == edit.text
    window.wait(lambda: window.proposes(edit.after), "proposal")
    window.keys("Control+Backspace")
    wait_decided(window)


def test_hunks_are_decided_one_by_one(window: Window, server: Server) -> None:
    edit = previewed(window, server, "hunks.py", wanted=changes_two_places)
    window.keys("Alt+Enter")
    window.wait(lambda: window.compares_with(edit.with_hunks(0)), "first change in the document")
    assert window.proposes(edit.after)
    window.keys("Alt+Backspace")
    others = range(2, len(edit.hunks))
    window.wait(
        lambda: not window.in_preview() or window.proposes(edit.with_hunks(0, *others)),
        "preview without the second change",
    )
    if others:
        window.keys("Control+Backspace")
    wait_decided(window)
    assert window.saved("hunks.py").decode() == edit.with_hunks(0)


def test_changes_are_chosen_from_a_list(window: Window, server: Server, media: Path) -> None:
    edit = previewed(window, server, "choose.py", wanted=changes_two_places)
    window.command("Redraft: Choose Changes")
    rows = window.page.locator(LIST_ROW)
    window.wait(lambda: rows.count() == len(edit.hunks), "list of the changes")
    window.picture(media / "vscode-choose.png")
    rows.nth(0).locator(".label-name").first.click()
    window.page.get_by_role("button", name="OK").click()
    wait_decided(window)
    assert window.saved("choose.py").decode() == edit.with_hunks(*range(1, len(edit.hunks)))


def test_discarded_edit_leaves_no_trace(window: Window, server: Server) -> None:
    edit = previewed(window, server, "discard.py")
    window.command("Redraft: Discard All Changes")
    wait_decided(window)
    assert on_disk(window, "discard.py") == edit.text
    assert not window.is_dirty("discard.py")


def test_edit_is_cancelled(window: Window, server: Server) -> None:
    edit = opened_for_edit(window, server, "long.py", is_written_by_the_model)
    with server.halted_engine():
        window.ask_for_edit(edit.instruction, at_once=True)
        window.wait(window.in_preview, "preview")
        window.toast(edit.instruction).get_by_role("button", name="Cancel").click()
        window.wait(lambda: not window.in_preview(), "no preview")
    server.wait_idle()
    assert on_disk(window, "long.py") == edit.text
    assert not window.is_dirty("long.py")
    assert not window.in_preview()


def test_instruction_box_has_ready_made_and_earlier_ones(
    window: Window, server: Server, media: Path
) -> None:
    edit = previewed(window, server, "box.py")
    window.keys("Control+Backspace")
    wait_decided(window)
    window.select_lines(edit.first, edit.last)
    window.keys("Control+k", "Control+e")
    rows = window.page.locator(LIST_ROW)
    rows.filter(has_text="Redraft: remove the docstring").first.wait_for()
    window.picture(media / "vscode-instruction.png")
    rows.filter(has_text=edit.instruction).first.wait_for()
    window.keys("Escape")
    assert not window.in_preview()


def test_ready_made_instruction_is_carried_out(window: Window, server: Server) -> None:
    edit = opened_for_edit(window, server, "preset.py")
    window.keys("Control+k", "Control+e")
    window.page.locator(LIST_ROW, has_text="Redraft: remove the docstring").first.click()
    window.wait(window.in_preview, "preview")
    window.wait(lambda: not window.proposes(edit.text), "proposal")
    window.keys("Control+Backspace")
    wait_decided(window)
    assert on_disk(window, "preset.py") == edit.text


def asks_for(window: Window, edit: Edit) -> None:
    """The box for the instruction names the lines."""
    title = f"Edit lines {edit.first} to {edit.last}"
    window.page.locator(".quick-input-widget:visible", has_text=title).wait_for()
    window.keys("Escape")


def test_lightbulb_offers_the_edit(window: Window, server: Server) -> None:
    edit = opened_for_edit(window, server, "bulb.py")
    window.keys("Control+.")
    action = window.page.locator(
        ".action-widget .monaco-list-row", has_text="Edit with instruction"
    )
    action.first.wait_for()
    action.first.click()
    asks_for(window, edit)


def test_palette_and_context_menu_offer_the_edit(window: Window, server: Server) -> None:
    edit = opened_for_edit(window, server, "offered.py")
    window.command("Redraft: Edit with Instruction")
    asks_for(window, edit)
    window.focus()
    window.select_lines(edit.first, edit.last)
    window.keys("Shift+F10")
    window.page.get_by_role("menuitem", name="Edit with Instruction").hover()
    window.keys("Enter")
    asks_for(window, edit)


def test_emoji_and_carriage_returns_stay_with_an_edit(window: Window, server: Server) -> None:
    edit = previewed(window, server, "shop.py", change=in_windows_form)
    window.keys("Control+Enter")
    wait_decided(window)
    window.keys("Control+End")
    window.type("# 😀 done")
    assert window.saved("shop.py").decode() == edit.after + "# 😀 done"
