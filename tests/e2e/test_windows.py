"""A whole session where every process meets what Windows refuses, played on Linux: files that some
process has open or mapped are not replaced or deleted, there are no Unix sockets, and locks are
of bytes. What is compiled, and what talks to the system's own libraries, is Linux's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from own_folder import own_folder
from python_environments import python_environment

from .client import (
    PYTHON,
    Driver,
    command,
    inline,
    private_environment,
    profile,
    status,
    wait_until,
)
from .conftest import READY_S, SHAPES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="Windows is played on Linux"),
]

PLAYED = '''
import ctypes, errno, fcntl, glob, importlib.machinery, os, signal, sys, types

HOME = os.environ["HOME"]
NOTES = os.environ["REDRAFT_TEST_NOTES"]

def is_in_use(path):
    place = os.path.realpath(path)
    if not place.startswith(HOME) or not os.path.isfile(place):
        return False
    for link in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.readlink(link) == place:
                return True
        except OSError:
            continue
    for maps in glob.glob("/proc/[0-9]*/maps"):
        try:
            with open(maps, errors="replace") as lines:
                if any(line.rstrip("\\n").endswith(" " + place) for line in lines):
                    return True
        except OSError:
            continue
    return False

def refusing(function):
    def call(*paths, **more):
        if more.get("dir_fd") is None and any(map(is_in_use, paths[:2])):
            with open(NOTES, "a") as notes:
                notes.write(f"{function.__name__} {paths!r}\\n")
            raise PermissionError(errno.EACCES, "The process cannot access the file", str(paths[0]))
        return function(*paths, **more)
    return call

for name in ("replace", "rename", "unlink", "remove"):
    setattr(os, name, refusing(getattr(os, name)))

def locking(descriptor, mode, size):
    fcntl.flock(descriptor, fcntl.LOCK_UN if mode == 0 else fcntl.LOCK_EX | fcntl.LOCK_NB)

msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_UNLCK, msvcrt.LK_NBLCK, msvcrt.locking = 0, 2, locking
signal.SIGBREAK = signal.SIGUSR1

def played_system(module):
    module.is_windows, module.is_linux = lambda: True, lambda: False

def played_lock(module):
    module.sys = types.SimpleNamespace(platform="win32")
    def beside_msvcrt(function):
        def call(*arguments):
            # Other modules take this for Windows if they find it.
            sys.modules["msvcrt"] = msvcrt
            try:
                return function(*arguments)
            finally:
                del sys.modules["msvcrt"]
        return call
    module._locked = beside_msvcrt(module._locked)
    module.LockFile.release = beside_msvcrt(module.LockFile.release)

def played_processes(module):
    import subprocess
    def popen(command, creationflags, **options):
        assert creationflags & 0x08000000
        return subprocess.Popen(command, start_new_session=True, **options)
    names = {**vars(subprocess), "Popen": popen}
    module.subprocess = types.SimpleNamespace(**names)

PLAYED = {
    "operating_system.system": played_system,
    "operating_system.file_lock": played_lock,
    "operating_system.processes": played_processes,
}
COMPILED = ("repo_index.matching", "accel.models.cpu.barrier")
"""Compiled code is the same as in all other tests."""

class Player(importlib.machinery.PathFinder):
    def find_spec(self, name, path=None, target=None):
        if name not in PLAYED and name not in COMPILED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module
        def play(module):
            if name in COMPILED:
                system = sys.modules["operating_system.system"]
                before, system.is_windows = system.is_windows, lambda: False
                execute(module)
                system.is_windows = before
            else:
                execute(module)
                PLAYED[name](module)
        spec.loader.exec_module = play
        return spec

sys.meta_path.insert(0, Player())
'''


@pytest.fixture(scope="module")
def windows() -> Iterator[dict[str, str]]:
    with own_folder("e2e") as folder:
        python = python_environment(folder / "python", start=PLAYED)
        notes = folder / "refused"
        made = private_environment(folder, **{PYTHON: str(python)}, REDRAFT_TEST_NOTES=str(notes))
        yield made
        command(made, "stop")


@pytest.mark.timeout(3 * READY_S)
def test_a_session_where_open_files_stay(windows: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "shapes.py").write_bytes(SHAPES.replace("\n", "\r\n").encode())
    first, second = Driver(windows), Driver(windows)
    for driver in (first, second):
        patient = {"completion": {"timeoutMs": 120_000}}
        driver.initialize(profile("vscode"), tmp_path, settings=patient)
    first.wait_for_state("ready", timeout=READY_S)
    text = SHAPES.partition("        total += ")[0] + "        total += "
    uri = (tmp_path / "total.py").as_uri()
    for driver in (first, second):
        driver.open(uri, text)
        place = inline(uri, text.count("\n"), len("        total += "))
        answer = driver.request("textDocument/inlineCompletion", place, READY_S)
        assert answer["items"], (driver is second, driver.request("redraft/status", {})["reason"])
    (address,) = Path(windows["XDG_RUNTIME_DIR"], "redraft").glob("*.sock")
    assert set(json.loads(address.read_text())) == {"port", "token"}

    def files() -> int:
        (store,) = status(windows)["workspaces"]
        return int(store["files"])

    wait_until(lambda: files() == 1, READY_S)
    for number in range(4):
        (tmp_path / f"more{number}.py").write_bytes(SHAPES.encode() + b"# %d\r\n" % number)
        wait_until(lambda seen=number: files() == seen + 2, READY_S)  # type: ignore[misc]
    assert second.close() == 0
    assert first.close() == 0
    assert command(windows, "stop").stdout == "stopped\n"
    logs = "".join(file.read_text() for file in Path(windows["HOME"]).rglob("*.log"))
    assert "Traceback" not in logs
    removed = command(windows, "uninstall", "--yes", "--keep-models")
    assert removed.returncode == 0, removed.stdout + removed.stderr
    left = [path for path in Path(windows["HOME"]).rglob("*") if path.suffix == ".segment"]
    assert left == []
