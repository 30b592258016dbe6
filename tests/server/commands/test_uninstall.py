"""``redraft uninstall`` beside a daemon that does not answer: nothing is removed under it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.commands.cli.argument_parser import run_command
from lsp_server.editor.daemon import control
from lsp_server.editor.daemon.address import private_folder
from operating_system.file_lock import LockFile


def test_nothing_goes_while_a_daemon_does_not_end(
    bare_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(control, "STOP_S", 0.05)
    choices = bare_home / ".config/redraft/models.json"
    choices.parent.mkdir(parents=True)
    choices.write_text("{}")
    hung = LockFile(private_folder() / "0123456789abcdef.lock")
    assert hung.acquire()
    assert run_command(["uninstall", "--yes"]) == 1
    shown = capsys.readouterr()
    assert "it does not answer" in shown.out
    assert "does not end; end it and try again" in shown.err
    assert choices.is_file()
    hung.release()
    assert run_command(["uninstall", "--yes"]) == 0
    assert not choices.exists()
