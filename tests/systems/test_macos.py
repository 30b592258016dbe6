"""What macOS does otherwise, played on Linux: see ``fake_systems``."""

from __future__ import annotations

import ctypes
import os
import queue
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest
from fake_systems import answer_sysctl
from platformdirs.macos import MacOS
from text_cases import data_beside

from accel.models.llama_cpp.library_files import library_names
from lsp_server.text.documents.workspace_folders import Folders
from operating_system import folders
from operating_system.file_systems import most_watches, path_below, remote_file_system
from operating_system.machine import cores, free_bytes
from operating_system.macos import asked
from operating_system.processes import allow_many_files, is_same_user, stay_quick, watched
from repo_index.files import FileRules, Limits
from repo_index.folder_watch import ObserverWatch, start_watch

DATA = data_beside(__file__)

ROOT = Path(__file__).resolve().parents[2]


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


CHIPS = DATA["CHIPS"]
"""Processors of Apple's: their cores, and the fast ones among them."""


@pytest.mark.parametrize("chip", CHIPS)
def test_a_forward_is_shared_by_the_fast_cores(
    chip: str, macos: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    every, fast = CHIPS[chip]
    monkeypatch.setattr(os, "cpu_count", lambda: every)
    answer_sysctl(monkeypatch, {"hw.perflevel0.physicalcpu": fast})
    assert cores() == fast
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert cores() == 2


@pytest.mark.parametrize("answer", [None, 0, "", "-1", "many"])
def test_where_macos_names_no_fast_cores_all_count(
    answer: object, macos: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of Intel before macOS 12."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    known = {} if answer is None else {"hw.perflevel0.physicalcpu": answer}
    answer_sysctl(monkeypatch, known)
    assert cores() == os.cpu_count()


PAGES: dict[str, object] = DATA["PAGES"]
PRESSURE = "kern.memorystatus_vm_pressure_level"


@pytest.mark.parametrize(
    ("change", "pages"),
    [
        ({PRESSURE: 1}, 215_000),
        ({PRESSURE: 1, "vm.page_purgeable_count": 0}, 210_000),
        ({PRESSURE: 1, "vm.page_purgeable_count": None}, 210_000),
        ({PRESSURE: 1, "vm.page_pageable_external_count": None}, 15_000),
        ({PRESSURE: 2}, 10_000),
        ({PRESSURE: 2, "vm.page_free_count": 0}, 0),
        ({PRESSURE: 4}, 0),
        ({}, None),
        ({PRESSURE: "?"}, None),
        ({PRESSURE: 1, "hw.pagesize": None}, None),
        ({PRESSURE: 1, "vm.page_free_count": None}, None),
    ],
)
def test_free_memory_goes_by_what_macos_is_short_of(
    change: dict[str, object], pages: int | None, macos: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hardly a page of a Mac is ever free: most hold copies of files."""
    told = {name: value for name, value in (PAGES | change).items() if value is not None}
    answer_sysctl(monkeypatch, told)
    available = SimpleNamespace(available=123)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: available)
    assert free_bytes() == (123 if pages is None else 16384 * pages)


def test_without_sysctl_nothing_is_told(macos: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError("/usr/sbin/sysctl")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert asked("hw.pagesize") == {}
    assert cores() == os.cpu_count()


@pytest.mark.parametrize(
    ("soft", "hard", "then"),
    [
        (256, -1, 4096),
        (256, 10240, 4096),
        (256, 1024, 1024),
        (256, 256, 256),
        (1024, 1 << 20, 4096),
        (1024, 4096, 4096),
        (4096, -1, 4096),
        (10240, -1, 10240),
        (-1, -1, -1),
        (64, 65, 65),
    ],
)
def test_a_process_may_open_more_than_launchd_lets_it(
    soft: int, hard: int, then: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor that is started by its icon has 256 files."""
    import resource

    limits = [(soft, hard)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, found: limits.append(found))
    allow_many_files()
    assert limits[-1] == (then, hard)


def test_a_system_that_refuses_to_raise_the_limit_is_left_as_it_is() -> None:
    code = (
        "import resource\n"
        "from operating_system.processes import allow_many_files\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128))\n"
        "allow_many_files()\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE))\n"
        "def refuse(*_): raise ValueError('above the limit of the kernel')\n"
        "resource.setrlimit = refuse\n"
        "resource.getrlimit = lambda _: (64, 128)\n"
        "allow_many_files()\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "(128, 128)\n"


class FakeObjc:
    """The run time of Objective-C: objects are numbers, calls are noted."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.types: list[list[Any]] = []
        self._names: list[str] = [""]
        self.objc_getClass = self._function(lambda name: self._number(name.decode()))
        self.sel_registerName = self._function(lambda name: self._number(name.decode()))
        self.objc_msgSend = self._function(self._send)

    @staticmethod
    def _function(called: Any) -> Any:
        def function(*arguments: Any) -> Any:
            return called(*arguments)

        return function

    def _number(self, name: str) -> int:
        self._names.append(name)
        return len(self._names) - 1

    def _send(self, receiver: int, message: int, *arguments: Any) -> int:
        self.types.append(self.objc_msgSend.argtypes)
        values = [getattr(one, "value", one) for one in arguments]
        values = [self._names[one] if type(one) is int and one < 99 else one for one in values]
        self.calls.append((self._names[receiver], self._names[message], *values))
        return self._number(f"{self._names[receiver]}.{self._names[message]}")


def test_app_nap_leaves_a_process_as_quick_as_it_is(
    macos: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    objc = FakeObjc()

    def library(path: str) -> FakeObjc:
        loaded.append(path)
        return objc

    monkeypatch.setattr(ctypes, "CDLL", library)
    stay_quick("completes code")
    assert [Path(path).name for path in loaded] == ["Foundation", "libobjc.A.dylib"]
    assert objc.calls == [
        ("NSString", "stringWithUTF8String:", b"completes code"),
        ("NSProcessInfo", "processInfo"),
        (
            *("NSProcessInfo.processInfo", "beginActivityWithOptions:reason:"),
            *(0x00EFFFFF, "NSString.stringWithUTF8String:"),
        ),
        ("NSProcessInfo.processInfo.beginActivityWithOptions:reason:", "retain"),
    ]
    # A pointer that ctypes takes for an int loses its upper half.
    pointer = ctypes.c_void_p
    assert objc.types[2] == [pointer, pointer, ctypes.c_uint64, pointer]
    assert objc.objc_msgSend.restype is objc.objc_getClass.restype is pointer


def test_without_that_library_a_process_goes_on(macos: None) -> None:
    stay_quick("completes code")


class FakeStream:
    """FSEvents, whose notices the test makes."""

    running: list[Any] = []  # noqa: RUF012

    def __init__(self, paths: list[str], latency: float) -> None:
        self.paths = paths
        self._ended = threading.Event()

    def run(self, callback: Any, started: Any) -> None:
        self.running.append((self, callback))
        started()
        self._ended.wait()

    def stop(self) -> None:
        self._ended.set()


class FakeNotice:
    """One notice of FSEvents, with its flags as Apple numbers them."""

    def __init__(self, path: str, inode: int, flags: int, _number: int) -> None:
        self.path, self.inode = path, inode
        self.is_root_changed = bool(flags & 0x20)
        self.is_created, self.is_removed = bool(flags & 0x100), bool(flags & 0x200)
        self.is_inode_meta_mod, self.is_renamed = bool(flags & 0x400), bool(flags & 0x800)
        self.is_modified, self.is_owner_change = bool(flags & 0x1000), bool(flags & 0x4000)
        self.is_xattr_mod, self.is_directory = bool(flags & 0x8000), bool(flags & 0x20000)


@dataclass
class FsEvents:
    """Notices below a folder that is watched, and what comes of them."""

    root: Path
    changed: queue.Queue[str]
    lost: queue.Queue[str]

    def tell(self, path: str, flags: int) -> None:
        (_, callback) = FakeStream.running[-1]
        callback([path], [1], [flags], [1])


@pytest.fixture
def fsevents(macos: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FsEvents]:
    library = ModuleType("_watchdog_fsevents")
    library.__dict__.update(Stream=FakeStream, NativeEvent=FakeNotice)
    monkeypatch.setitem(sys.modules, "_watchdog_fsevents", library)
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: [])
    work = tmp_path / "work"
    work.mkdir()
    found = FsEvents(work, queue.Queue(), queue.Queue())
    watch = start_watch(FileRules(work, Limits()), found.changed.put, found.lost.put)
    assert isinstance(watch, ObserverWatch)
    yield found
    watch.stop()
    sys.modules.pop("watchdog.observers.fsevents", None)


def test_changes_are_announced_of_the_whole_tree(fsevents: FsEvents) -> None:
    for flags in (0x100, 0x200, 0x400, 0x1000, 0x100 | 0x1000, 0x800, 0x8000):
        fsevents.tell(f"{fsevents.root}/deep/{flags}.py", flags | 0x10000)
        while fsevents.changed.get(timeout=60) != f"deep/{flags}.py":
            continue
    assert fsevents.lost.empty()


@pytest.mark.parametrize("flags", [0x1, 0x3, 0x5, 0x7, 0x2, 0x4, 0x1 | 0x20000, 0x1 | 0x1000])
def test_notices_that_macos_dropped_have_everything_looked_at(
    flags: int, fsevents: FsEvents
) -> None:
    """As a checkout of thousands of files does, of which watchdog says nothing."""
    fsevents.tell(str(fsevents.root), flags)
    assert fsevents.lost.get(timeout=60) == ""


def test_a_folder_that_is_moved_away_is_looked_through_from_then_on(fsevents: FsEvents) -> None:
    fsevents.tell(str(fsevents.root), 0x20)
    assert fsevents.lost.get(timeout=60) == "the folder was moved or deleted"


@pytest.mark.parametrize(
    "name", ["Café", "Übung", "naïve", "Zażółć", "Ελληνικά", "プロジェクト", "Ångström"]
)
@pytest.mark.parametrize("told", ["NFC", "NFD"])
def test_a_folder_may_be_spelt_with_its_accents_apart(macos: None, name: str, told: str) -> None:
    """HFS+ keeps names so, and APFS as whoever made them."""
    for asked_for in ("NFC", "NFD"):
        root = Path("/Users/ann") / unicodedata.normalize(asked_for, name)
        place = unicodedata.normalize(told, f"/Users/ann/{name}") + "/lib/a.py"
        assert path_below(root, place) == "lib/a.py"
        assert path_below(root, unicodedata.normalize(told, f"/Users/ann/{name}x/a.py")) is None


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
