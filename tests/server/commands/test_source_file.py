"""Files that a command replaces: in one step, or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from lsp_server.commands.cli.source_file import replace_text
from lsp_server.shared.errors import RedraftError


def test_a_file_is_replaced_with_its_mode(tmp_path):
    path = tmp_path / "run.sh"
    path.write_bytes(b"one\r\n")
    path.chmod(0o751)
    replace_text(path, "one\r\n", "two\r\n")
    assert path.read_bytes() == b"two\r\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


def test_a_folder_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "notes.txt"
    path.write_text("one")

    def refuse(*_args, **_options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(RedraftError, match="cannot be written"):
        replace_text(path, "one", "two")
    assert path.read_text() == "one"
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("now", ["three", "onex", "", None])
def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path, now):
    path = tmp_path / "notes.txt"
    if now is not None:
        path.write_text(now)
    with pytest.raises(RedraftError, match=r"changed while|cannot be written"):
        replace_text(path, "one", "two")
    assert [one.read_text() for one in tmp_path.iterdir()] == ([now] if now is not None else [])


def test_a_link_in_the_workspace_is_written_through(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    target, link = tmp_path / "target.txt", tmp_path / "src" / "link.txt"
    target.write_text("one")
    link.symlink_to(target)
    replace_text(link, "one", "two")
    assert link.is_symlink()
    assert target.read_text() == "two"


def test_a_link_out_of_the_workspace_is_refused(tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    target, link = tmp_path / "target.txt", project / "link.txt"
    target.write_text("one")
    link.symlink_to(target)
    with pytest.raises(RedraftError, match="name that file itself"):
        replace_text(link, "one", "two")
    assert target.read_text() == "one"


def test_a_workspace_that_is_opened_by_a_link_is_the_same(tmp_path):
    project, other = tmp_path / "project", tmp_path / "other"
    project.mkdir()
    (project / "notes.txt").write_text("one")
    other.symlink_to(project)
    replace_text(other / "notes.txt", "one", "two")
    assert (project / "notes.txt").read_text() == "two"
