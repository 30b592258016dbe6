"""``redraft mcp`` before it serves: what is missing is told in a line."""

from __future__ import annotations

import importlib.util

import pytest

from lsp_server.commands.cli.main import main


def test_the_extra_that_is_missing_is_named(monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "mcp" else find(name)
    )
    assert main(["mcp"]) == 1
    assert (
        capsys.readouterr().err
        == "redraft: mcp needs another package; pip install 'redraft[mcp]'\n"
    )


def test_a_workspace_that_is_not_there_is_named(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    monkeypatch.setenv("REDRAFT_LOG_DIR", str(tmp_path))
    assert main(["mcp", "--workspace", str(tmp_path), "--workspace", str(tmp_path / "none")]) == 1
    assert "none is not a folder; give another with --workspace" in capsys.readouterr().err
