"""Where the daemon listens, and who may be there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lsp_server.editor.daemon import address
from lsp_server.editor.daemon.address import build_id, make_private, socket_path
from lsp_server.shared.errors import UnsafeSocketFolder
from operating_system.file_lock import LockFile
from operating_system.folders import MAX_SOCKET_PATH


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def test_the_path_is_short_however_long_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("x" * 150)))
    path = socket_path()
    assert len(os.fsencode(path)) <= MAX_SOCKET_PATH
    assert path == socket_path()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / ("y" * 150)))
    assert socket_path() != path
    for made in (path.parent, socket_path().parent):
        made.rmdir()


def test_the_build_is_the_same_until_code_or_surroundings_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert build_id() == build_id()
    before = build_id()
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/else")
    assert build_id() != before


def test_a_touched_file_is_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "lsp_server" / "editor" / "daemon"
    package.mkdir(parents=True)
    file = package / "address.py"
    file.write_text("")
    monkeypatch.setattr(address, "__file__", str(file))
    before = build_id()
    os.utime(file, ns=(1, 1))
    assert build_id() != before


def test_folders_that_others_may_use_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    make_private(folder)
    make_private(folder)
    folder.chmod(0o750)
    with pytest.raises(UnsafeSocketFolder, match="others may use"):
        make_private(folder)
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    with pytest.raises(UnsafeSocketFolder, match="link"):
        make_private(link)


def test_a_lock_is_held_once_and_taken_over(tmp_path: Path) -> None:
    first, second = LockFile(tmp_path / "lock"), LockFile(tmp_path / "lock")
    assert first.acquire()
    assert not second.acquire(0.02)
    first.release()
    assert second.acquire()
    second.release()


def test_a_lock_does_not_follow_a_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="lock"):
        LockFile(tmp_path / "lock").acquire()
    assert not (tmp_path / "elsewhere").exists()
