"""What macOS does otherwise, played on Linux: see ``fake_systems``."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from platformdirs.macos import MacOS

from accel.models.llama_cpp.library_files import library_names
from lsp_server.text.documents.workspace_folders import Folders
from operating_system import folders
from operating_system.file_systems import most_watches, path_below, remote_file_system
from operating_system.machine import cores
from operating_system.processes import is_same_user, watched
from repo_index.files import FileRules, Limits
from repo_index.folder_watch import ObserverWatch, start_watch


def test_folders_are_those_of_platformdirs(
    macos: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folders.cache_folder() == MacOS("redraft", False).user_cache_path
    assert folders.cache_folder() == tmp_path / "Library" / "Caches" / "redraft"
    for variable in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        found = MacOS("redraft", False)
        given = {
            "XDG_CACHE_HOME": found.user_cache_path,
            "XDG_DATA_HOME": found.user_data_path,
            "XDG_STATE_HOME": found.user_state_path,
        }[variable]
        assert folders.base_folder(variable) == given.parent
    monkeypatch.setenv("HOME", "/Users/ann")
    assert folders.runtime_folder() == Path("/Users/ann/Library/Caches/redraft/run")


def test_a_home_with_a_long_path_has_its_sockets_among_the_temporary_files(
    macos: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / ("x" * 80)))
    folder = folders.runtime_folder()
    assert folder.name.startswith(f"redraft-{os.getuid()}-")
    # Temporary folders of macOS have long names of their own.
    assert len(str(Path("/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T") / folder.name)) < 104


def test_all_processors_count(macos: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert cores() == os.cpu_count()
    assert library_names() == ("libllama.dylib",)
    assert most_watches() is None
    assert is_same_user(None)  # type: ignore[arg-type]


def test_changes_are_announced_of_the_whole_tree(macos: None, tmp_path: Path) -> None:
    """By watchdog's observer, here the one of Linux."""
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    changed: queue.Queue[str] = queue.Queue()
    watch = start_watch(FileRules(work, Limits()), changed.put, lambda reason: None)
    assert isinstance(watch, ObserverWatch)
    (work / "deep" / "a.py").write_text("a = 1\r\n")
    while changed.get(timeout=60) != "deep/a.py":
        continue
    watch.stop()


def test_a_folder_may_be_spelt_in_other_letters(macos: None) -> None:
    """FSEvents tells of a folder as it was made, an editor as its user typed it."""
    assert path_below(Path("/Users/ann/Shop"), "/Users/Ann/shop/Lib/a.py") == "Lib/a.py"
    assert path_below(Path("/Users/ann/Shop"), "/Users/ann/Shopping/a.py") is None


def test_letters_count_on_linux() -> None:
    assert path_below(Path("/home/ann/Shop"), "/home/ann/shop/a.py") is None
    assert path_below(Path("/home/ann/Shop"), "/home/ann/Shop/a.py") == "a.py"
    assert path_below(Path("/"), "/a.py") == "a.py"


@pytest.mark.parametrize("kind", ["smbfs", "nfs", "webdav", "fuse.sshfs", "9p", "virtiofs"])
def test_file_systems_that_others_change_are_looked_through(
    monkeypatch: pytest.MonkeyPatch, kind: str, tmp_path: Path
) -> None:
    mounts = [
        SimpleNamespace(mountpoint="/", fstype="apfs", opts="rw"),
        SimpleNamespace(mountpoint=str(tmp_path), fstype=kind, opts="rw"),
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    assert remote_file_system(tmp_path / "work") == kind
    assert remote_file_system(tmp_path.with_name(f"{tmp_path.name}-beside")) is None


def running(code: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def test_a_process_that_takes_too_much_memory_or_time_is_killed() -> None:
    """macOS and Windows bound no address space of a process."""
    large = running("block = bytearray(400 << 20)\nwhile True: pass")
    with watched(large, 60, 200 << 20):
        assert large.wait(60) != 0
    long = running("while True: pass")
    with watched(long, 0.2, 1 << 30):
        assert long.wait(60) != 0
    quick = running("print(1)")
    with watched(quick, 60, 1 << 30):
        assert quick.communicate()[0] == b"1\n"
    assert quick.returncode == 0


def test_a_document_is_in_a_folder_that_is_spelt_in_other_letters(
    macos: None, tmp_path: Path
) -> None:
    (tmp_path / "Shop").mkdir()
    folders_of_client = Folders()
    folders_of_client.add((tmp_path / "Shop").as_uri())
    place = folders_of_client.place((tmp_path / "shop" / "Lib" / "a.py").as_uri())
    assert (place.folder, place.path) == (str(tmp_path / "Shop"), "Lib/a.py")
