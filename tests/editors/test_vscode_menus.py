"""VS Code's menu of completions, with the settings that it is installed with, over next edits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import Browser
from code_server import CodeServer
from drive_vscode import Window
from installed import Installed, Server
from projects import make_project
from tabs import carry_on_by_tabs
from vscode_settings import AS_INSTALLED

pytestmark = pytest.mark.editors

NAME = "page.py"
ALIAS = (
    "from dataclasses import dataclass\nimport datetime\n\n\n@dataclass\nclass Day:\n"
    "    date: datetime.date\n\n\ntoday = Day(datetime.date.today())\n"
)
PARAMETER = (
    "def theme_named(name):\n    return name\n\n\ndef page(title, body):\n"
    "    return title + body\n\n\n"
    'theme = theme_named("dark")\nprint(page("a", "b"), theme)\n'
)


@pytest.fixture(scope="module")
def menus(
    installed: Installed, server: Server, browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Window]:
    """A window whose menu opens by itself."""
    started = CodeServer(installed, server, tmp_path_factory.mktemp("menus"), **AS_INSTALLED)
    folder = make_project(tmp_path_factory.mktemp("typing") / "project")
    (folder / NAME).touch()
    yield Window(started, browser, folder)
    started.close()


@pytest.fixture
def window(menus: Window) -> Iterator[Window]:
    """It, and its editors are closed at the end."""
    yield menus
    menus.close_editors()


def opened(window: Window, text: str, line: int, column: int) -> None:
    """Opens a file with a text, and puts the cursor into it."""
    (window.folder / NAME).write_text(text, encoding="utf-8")
    window.open(NAME)
    window.wait(lambda: any(window.lines()), "text of the file")
    window.go_to(line, column)


def menu(window: Window) -> bool:
    """Whether the menu is on the screen."""
    return bool(window.page.locator(".suggest-widget.visible .monaco-list-row").count())


@pytest.mark.parametrize(
    ("text", "place", "typed", "wanted"),
    [
        (ALIAS, (2, 16), " as dt", ALIAS.replace("datetime.date", "dt.date").replace(
            "import datetime", "import datetime as dt")),
        (PARAMETER, (5, 21), ", theme",
         PARAMETER.replace("body):", "body, theme):").replace('"b")', '"b", theme)')),
    ],
    ids=["alias", "parameter"],
)  # fmt: skip
def test_a_name_that_is_whole_is_not_the_menus(
    window: Window, text: str, place: tuple[int, int], typed: str, wanted: str
) -> None:
    opened(window, text, *place)
    window.type(typed)
    window.wait(lambda: window.next_edit() or window.ghost(), "next edit")
    window.wait(lambda: not menu(window), "closed menu")
    _carry_on(window)
    assert window.saved(NAME).decode() == wanted


def _carry_on(window: Window) -> None:
    """Presses Tab as long as something is shown."""

    def look() -> tuple[Any, Any]:
        window.page.wait_for_timeout(40)
        shown = (window.next_edit(), window.struck_out(), window.ghost())
        return any(shown) and shown, (window.lines(), window.cursor())

    carry_on_by_tabs(look, lambda: window.keys("Tab"))


def test_a_name_that_is_whole_is_not_the_menus_while_an_edit_waits_elsewhere(
    window: Window,
) -> None:
    opened(window, PARAMETER, 5, 21)
    window.type(", theme")
    window.wait(lambda: window.next_edit() or window.ghost(), "next edit")
    window.go_to(6, 24)
    window.type(" + theme")
    window.wait(lambda: menu(window), "menu")
    window.wait(lambda: not menu(window), "closed menu")
    _carry_on(window)
    wanted = PARAMETER.replace("body):", "body, theme):").replace(
        "title + body", "title + body + theme"
    )
    assert window.saved(NAME).decode() == wanted.replace('"b")', '"b", theme)')


def test_a_menu_in_which_somebody_chose_stays(window: Window) -> None:
    text = "amounts_all = amounts_of_day = 1\n\n\ndef total(prices):\n    return prices\n"
    opened(window, text, 4, 11)
    window.keys("Control+Shift+ArrowRight")
    window.type("am")
    for character in "ounts":
        window.type(character)
        window.wait(lambda: menu(window), "menu")
        window.keys("ArrowDown")
        if menu(window) and window.cursor_line() == 4:
            break
        # On a busy machine it was closed before the key came.
        window.keys("ArrowUp", "Escape")
    window.page.wait_for_timeout(2_000)
    assert menu(window)
    assert window.next_edit() is None
    window.keys("Enter")
    window.wait(lambda: "total(amounts_" in window.lines()[3], "chosen name")
    name = window.lines()[3].split("(")[1].split(")")[0]
    window.wait(lambda: window.next_edit() == (5, name), "next edit of the name")
    window.keys("Tab", "Tab")
    window.wait(lambda: window.lines()[4] == f"    return {name}", "taken next edit")


def test_what_waits_elsewhere_is_not_drawn_beside_a_menu(window: Window) -> None:
    # So far away that both changes are never one.
    text = "def total(prices):\n    return prices\n\n\ntotal_of_day = 1\n" + "\n" * 10
    opened(window, text, 1, 11)
    window.keys("Control+Shift+ArrowRight")
    window.type("amounts")
    window.wait(lambda: window.next_edit() == (2, "amounts"), "next edit")
    window.go_to(15, 1)
    window.wait(window.next_edit, "the same next edit")
    window.type("x = tot")
    window.wait(lambda: menu(window), "menu")
    window.wait(lambda: window.next_edit() is None, "nothing beside the menu")
    window.page.wait_for_timeout(1_500)
    assert menu(window)
    assert window.next_edit() is None
    window.keys("Escape")
    window.wait(lambda: not menu(window), "closed menu")
    window.wait(lambda: window.next_edit() or window.ghost(), "what is behind the menu")
