"""Helix, which knows neither inline completion nor our commands: the menu and code actions do."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from drive_terminal import Terminal
from installed import CLIENTS, Installed, Server, wait_for
from projects import ORDERS, RENAME, TYPED_BEFORE, make_project

pytestmark = [pytest.mark.editors, pytest.mark.timeout(300)]

COMMENT = f"# redraft: {RENAME}\n"


def settings_of_the_page() -> str:
    """The settings that other-editors.md gives for Helix."""
    page = (CLIENTS / "other-editors.md").read_text(encoding="utf-8")
    return page.split("<!-- helix -->\n```toml\n")[1].split("```")[0]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def helix(
    installed: Installed, server: Server, tmp_path: Path, project: Path
) -> Iterator[Terminal]:
    """Helix with the settings of the page, the command's path apart, before orders.py."""
    folder = tmp_path / "config/helix"
    folder.mkdir(parents=True)
    settings = settings_of_the_page()
    assert 'command = "redraft"' in settings
    settings = settings.replace('command = "redraft"', f'command = "{server.command}"')
    (folder / "languages.toml").write_text(settings, encoding="utf-8")
    text = ORDERS.replace("def order_total", COMMENT + "def order_total")
    (project / "orders.py").write_text(text + "\n".join(TYPED_BEFORE), encoding="utf-8")
    environment = {
        **os.environ,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "HELIX_RUNTIME": str(installed.folder / "helix/usr/lib/hx/runtime"),
    }
    terminal = Terminal([str(installed.helix), "orders.py"], environment, project)
    terminal.wait_text("def order_total")
    yield terminal
    terminal.close()


def saved(terminal: Terminal, path: Path, what: str) -> str:
    """Write the file and wait until it holds ``what``."""
    terminal.keys("\x1b")
    terminal.type(":w\r")
    wait_for(lambda: what in path.read_text(encoding="utf-8"), f"{what!r} in the file")
    return path.read_text(encoding="utf-8")


def test_suggestion_is_taken_from_the_menu(helix: Terminal, project: Path) -> None:
    helix.keys("ge")
    helix.keys("A")
    helix.type("[")

    def offered() -> bool:
        helix.keys("\x18")
        helix.rest(2.0)
        return "order_total(" in "\n".join(helix.text.splitlines()[-12:])

    wait_for(offered, "completion menu", 90)
    helix.keys("\t")
    helix.keys("\r")
    helix.rest(0.5)
    text = saved(helix, project / "orders.py", "totals = [order_total(")
    assert text.count("def smallest_total") == 1


def test_instruction_comment_is_carried_out(helix: Terminal, project: Path) -> None:
    helix.type("4gg")

    def offered() -> bool:
        helix.keys("\x1b")
        helix.keys(" a")
        helix.rest(2.0)
        return f"Redraft: {RENAME}" in helix.text

    wait_for(offered, "code action", 90)
    helix.keys("\r")
    helix.wait_text("def order_total(items, tax)")
    text = saved(helix, project / "orders.py", "items")
    assert "    for price in items:" in text
    assert COMMENT not in text
