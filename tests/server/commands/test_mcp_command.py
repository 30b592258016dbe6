"""``redraft mcp`` before it serves: what is missing is told in a line."""

from __future__ import annotations

from lsp_server.commands.cli.main import main


def test_a_workspace_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REDRAFT_LOG_DIR", str(tmp_path))
    assert main(["mcp", "--workspace", str(tmp_path), "--workspace", str(tmp_path / "none")]) == 1
    assert "none is not a folder; give another with --workspace" in capsys.readouterr().err
