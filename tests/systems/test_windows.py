"""What Windows does otherwise, played on Linux: see ``fake_systems``."""

from __future__ import annotations

import gc
import logging
import ntpath
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from fake_systems import FakeWindows
from platformdirs.windows import Windows
from small_model import SMALL_MODEL

from accel.models.llama_cpp.library_files import library_names
from lsp_server.editor.daemon.transport import dial, listen, uses_loopback
from lsp_server.engine.workspaces import text_tokenizer
from lsp_server.shared.processes import log
from lsp_server.shared.settings import Settings, folder_enabled
from lsp_server.shared.user_files.user_folders import settle
from operating_system import files, folders, system
from operating_system.file_lock import LockFile
from operating_system.file_systems import path_below, remote_file_system
from operating_system.files import problem_of_private, replace_file, write_private
from operating_system.machine import cores, free_bytes
from operating_system.processes import (
    is_same_user,
    limit_memory,
    limit_time,
    lower_priority,
    on_end_signal,
    start_detached,
)
from repo_index.errors import StoreLocked
from repo_index.file_layer import FileLayer
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from repo_index.store import lock_store, remove_old_stores, workspace_store
from tests.index.test_indexer import expected_texts, indexed_texts


def test_a_lock_is_held_once_and_unlocked_before_it_is_closed(
    windows: FakeWindows, tmp_path: Path
) -> None:
    first, second = LockFile(tmp_path / "lock"), LockFile(tmp_path / "lock")
    assert first.acquire()
    assert not second.acquire(0.02)
    first.release()
    assert second.acquire()
    second.release()
    held = lock_store(tmp_path)
    with pytest.raises(StoreLocked):
        lock_store(tmp_path)
    held.release()


def test_a_file_that_another_process_reads_is_replaced_once_it_is_closed(
    windows: FakeWindows, tmp_path: Path
) -> None:
    file = tmp_path / "kept.json"
    write_private(file, "old")
    reader = file.open()
    timer = threading.Timer(0.1, reader.close)
    timer.start()
    write_private(file, "new")
    assert file.read_text() == "new"
    assert windows.refused > 0
    assert os.listdir(tmp_path) == ["kept.json"]
    timer.join()


def test_a_file_that_stays_open_is_not_replaced_and_nothing_is_left(
    windows: FakeWindows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BUSY_S", 0.05)
    file = tmp_path / "kept.json"
    write_private(file, "old")
    with file.open(), pytest.raises(PermissionError):
        write_private(file, "new")
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["kept.json"]


def test_other_refusals_are_not_tried_again(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    started = time.monotonic()
    with pytest.raises(OSError, match="folder"):
        replace_file(tmp_path / "file", tmp_path / "folder")
    assert time.monotonic() - started < files.BUSY_S


@pytest.mark.parametrize("local", ["given", "not given"])
def test_folders_are_those_of_platformdirs(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch, local: str, tmp_path: Path
) -> None:
    monkeypatch.setattr("platformdirs.windows.get_win_folder", lambda _: str(windows.local))
    if local == "not given":
        monkeypatch.delenv("LOCALAPPDATA")
        monkeypatch.setenv("HOME", str(tmp_path))
    assert folders.cache_folder() == Windows("redraft", False).user_cache_path
    assert folders.runtime_folder() == folders.cache_folder() / "run"
    assert folders.runtime_folders() == []
    assert settle() == []


def test_folders_that_the_environment_names_count_as_everywhere(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The demo runs beside the user's own daemon, caches go to another disk."""
    for name in ("CACHE_HOME", "DATA_HOME", "STATE_HOME", "CONFIG_HOME", "RUNTIME_DIR"):
        monkeypatch.setenv(f"XDG_{name}", str(tmp_path / name.lower()))
    monkeypatch.delenv("REDRAFT_LOG_DIR", raising=False)
    found = {
        "cache_home/redraft": folders.cache_folder(),
        "data_home/redraft": folders.data_folder(),
        "state_home/redraft": folders.state_folder(),
        "config_home/redraft": folders.config_folder(),
        "runtime_dir/redraft": folders.runtime_folder(),
        "state_home/redraft/log": folders.log_folder(),
    }
    assert found == {name: tmp_path / name for name in found}
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert folders.cache_folder() == windows.local / "redraft" / "Cache"


def test_folders_of_settings_may_have_either_slash(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sep", "\\")
    monkeypatch.setattr(os.path, "normpath", ntpath.normpath)
    settings = Settings(folders={"C:/Work": False, "c:\\work\\shop\\": True})
    assert not folder_enabled(settings, "c:\\Work\\a.py")
    assert folder_enabled(settings, "c:\\Work\\Shop\\a.py")
    assert folder_enabled(settings, "c:\\Workshop\\a.py")


def test_a_log_that_two_processes_write_loses_no_line(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("REDRAFT_LOG_DIR", str(tmp_path))
    monkeypatch.setattr(log, "MAX_BYTES", 200)
    before = logging.getLogger().handlers[:]
    try:
        path = log.start_log("engine")
        with path.open("a"):
            for number in range(20):
                logging.getLogger("lsp_server").info("line %d", number)
        assert [f"line {n}" in path.read_text() for n in range(20)] == [True] * 20
        logging.getLogger("lsp_server").info("alone")
        assert "alone" in path.read_text()
        assert (tmp_path / "engine.log.1").is_file()
    finally:
        for handler in set(logging.getLogger().handlers) - set(before):
            handler.close()
        logging.getLogger().handlers[:] = before


def test_a_folder_below_the_profile_is_private(windows: FakeWindows, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o755)
    assert problem_of_private(tmp_path / "run") == ""
    (tmp_path / "link").symlink_to(tmp_path / "run")
    assert "is a link" in problem_of_private(tmp_path / "link")


def test_the_daemon_listens_on_loopback_and_its_address_can_be_read_meanwhile(
    windows: FakeWindows, tmp_path: Path
) -> None:
    assert uses_loopback()
    path = tmp_path / "daemon.sock"
    for _ in range(2):
        listening = listen(path)
        dialled = dial(path)
        assert dialled is not None
        assert dialled.token == listening.token
        assert len(dialled.token) == 64
        dialled.connection.close()
        listening.connection.close()
    assert dial(path) is None


def test_a_daemon_outlives_its_editor_without_a_window(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: list[int] = []

    def popen(command: Any, creationflags: int, **options: Any) -> str:
        assert "start_new_session" not in options
        assert options["cwd"] == tmp_path
        started.append(creationflags)
        if creationflags & 0x01000000:
            raise PermissionError("the job does not let it go")
        return "process"

    monkeypatch.setattr(subprocess, "Popen", popen)
    assert start_detached(["redraft"], tmp_path, {}) == "process"
    assert started == [0x09000200, 0x08000200]


def test_signals_of_windows_end_it(windows: FakeWindows) -> None:
    called: list[bool] = []
    loop: Any = SimpleNamespace(call_soon_threadsafe=lambda function: function())
    on_end_signal(lambda: called.append(False), loop)
    assert set(windows.signals) == {signal.SIGINT, 21}
    windows.signals[21](21, None)
    assert called == [False]
    called.clear()
    on_end_signal(lambda: called.append(True))
    windows.signals[signal.SIGINT](signal.SIGINT, None)
    assert called == [True]


def test_what_windows_lacks_is_done_without(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_memory(1 << 20)
    limit_time(1)
    niceness: list[int] = []
    monkeypatch.setattr(psutil.Process, "nice", lambda _, value: niceness.append(value))
    lower_priority(10)
    assert niceness == [0x4000]
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _: [0, 1, 2])
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert cores() == 3
    assert free_bytes() > 0
    assert library_names()[0] == "llama.dll"
    assert is_same_user(None)  # type: ignore[arg-type]


def test_shares_of_other_machines_are_looked_through(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert remote_file_system(Path("\\\\server\\share\\work")) == "network"
    assert remote_file_system(Path("\\\\wsl.localhost\\Ubuntu\\home")) == "network"
    mounts = [
        SimpleNamespace(mountpoint=str(tmp_path), fstype="NTFS", opts="rw,remote"),
        SimpleNamespace(mountpoint="/", fstype="NTFS", opts="rw,fixed"),
    ]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    assert remote_file_system(tmp_path / "work") == "remote NTFS"
    assert remote_file_system(tmp_path.parent) is None


def test_paths_of_changes_have_slashes(
    windows: FakeWindows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sep", "\\")
    root: Any = "C:\\Work\\Shop"
    assert path_below(root, "c:\\work\\shop\\Lib\\a.py") == "Lib/a.py"
    assert path_below(root, "C:\\Work\\Shop") is None
    assert path_below(root, "C:\\Work\\Shopping\\a.py") is None


def test_an_index_is_made_changed_merged_and_removed_though_its_files_are_mapped(
    windows: FakeWindows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments that a reader maps cannot be deleted before it lets them go."""
    tokenizer = text_tokenizer(SMALL_MODEL)
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    work = tmp_path / "work"
    work.mkdir()
    store = workspace_store(work, tokenizer.sha256)
    indexer = Indexer(FolderTree(work), store, tokenizer, threads=1)
    for number in range(6):
        (work / f"{number}.py").write_bytes(b"value = 1\r\n" * (number + 20))
        indexer.refresh()
        assert indexed_texts(store, tokenizer) == expected_texts(work, tokenizer)
    (work / "0.py").unlink()
    indexer.refresh()
    assert indexed_texts(store, tokenizer) == expected_texts(work, tokenizer)
    old = {"now": time.time() + 365 * 24 * 3600, "keep": frozenset[Path]()}
    assert not remove_old_stores(FileLayer(), **old)
    indexer.close()
    del indexer

    gc.collect()
    assert remove_old_stores(FileLayer(), **old) == [store]
    assert not store.exists()


def test_compiled_code_finds_a_function_by_the_name_that_is_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As SwitchToThread is on Windows, and sched_yield here."""
    import ctypes

    from numba import njit, types

    library = ctypes.CDLL(None)
    kernel = type("Kernel", (), {"SwitchToThread": library.sched_yield})
    monkeypatch.setattr(ctypes, "windll", type("Dlls", (), {"kernel32": kernel}), raising=False)
    assert system.yielding_function() == "sched_yield"
    monkeypatch.setattr(sys, "platform", "win32")
    name = system.yielding_function()
    assert name == "SwitchToThread"
    yields: Any = types.ExternalFunction(name, types.int32())

    @njit
    def call() -> int:
        return yields() + 0

    assert call() == 0
