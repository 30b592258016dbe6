"""What every system does by itself: run on this one, and by the workflow on the others."""

from __future__ import annotations

import os
import platform
import queue
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from numba import njit, types
from text_cases import data_beside

from lsp_server.editor.daemon.transport import dial, listen
from operating_system import folders
from operating_system.file_lock import LockFile
from operating_system.files import write_private
from operating_system.machine import cores, free_bytes, total_bytes
from operating_system.processes import start_detached
from operating_system.system import yielding_function
from repo_index.files import FileRules, Limits
from repo_index.folder_watch import start_watch

DATA = data_beside(__file__)

HOLDER = DATA["HOLDER"]


def test_a_lock_goes_with_the_process_that_holds_it(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "lock")], stdin=pipe, stdout=pipe
    )
    assert holder.stdout is not None
    assert holder.stdout.readline().strip() == b"held"
    lock = LockFile(tmp_path / "lock")
    assert not lock.acquire(0.05)
    holder.kill()
    holder.communicate()
    assert lock.acquire(20)
    lock.release()


def test_a_file_is_replaced_while_it_is_read_or_soon_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    for number in range(50):
        write_private(file, str(number))
        assert file.read_text() == str(number)


def test_folders_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CACHE", "DATA", "STATE", "CONFIG"):
        monkeypatch.delenv(f"XDG_{name}_HOME", raising=False)
    monkeypatch.delenv("REDRAFT_LOG_DIR", raising=False)
    assert folders.cache_folder() == platformdirs.user_cache_path("redraft", False)
    assert folders.data_folder() == platformdirs.user_data_path("redraft", False)
    assert folders.log_folder() == platformdirs.user_log_path("redraft", False)


def test_the_machine_is_known() -> None:
    assert cores() >= 1
    assert 0 < free_bytes() <= total_bytes()


def test_the_daemon_is_reached(tmp_path: Path) -> None:
    listening = listen(tmp_path / "d.sock")
    dialled = dial(tmp_path / "d.sock")
    assert dialled is not None
    assert dialled.token == listening.token
    dialled.connection.close()
    listening.connection.close()


def test_a_detached_process_runs(tmp_path: Path) -> None:

    code = "from pathlib import Path; Path('done').write_text('yes')"
    process = start_detached([sys.executable, "-c", code], tmp_path, os.environ)
    assert process.wait(60) == 0
    assert (tmp_path / "done").read_text() == "yes"


def test_a_change_is_announced(tmp_path: Path) -> None:
    (tmp_path / "work" / "deep").mkdir(parents=True)
    changed: queue.Queue[str] = queue.Queue()
    watch = start_watch(FileRules(tmp_path / "work", Limits()), changed.put, changed.put)
    deadline = time.monotonic() + 60
    (tmp_path / "work" / "deep" / "a.py").write_bytes(b"a = 1\r\n")
    while changed.get(timeout=max(deadline - time.monotonic(), 0.01)) != "deep/a.py":
        continue
    watch.stop()


def test_compiled_code_can_give_its_processor_away() -> None:
    yields: Any = types.ExternalFunction(yielding_function(), types.int32())

    @njit
    def call() -> int:
        return yields() * 0

    assert call() == 0


FREED = DATA["FREED"]


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries give back by themselves"
)
def test_what_was_freed_goes_back_to_the_system() -> None:
    """The last of 200 MB is held, so that the heap does not shrink by itself."""
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 100e6
