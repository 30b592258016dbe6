"""Windows and macOS played on Linux: what those systems lack is gone, and what they refuse fails.

Windows refuses to replace or to delete a file that somebody has open or mapped, locks bytes instead
of files, and has neither users by number nor Unix sockets.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import sys
import types
from pathlib import Path
from typing import Any

import psutil
import pytest
import watchdog.observers  # noqa: F401 - it chooses by the system when it is imported

from operating_system import macos
from operating_system.system import is_translated

LK_UNLCK, LK_NBLCK = 0, 2
GONE_ON_WINDOWS = ("getuid", "geteuid", "nice", "uname", "sysconf", "pread", "getloadavg")
GONE_ON_MACOS = ("sched_getaffinity", "sched_setaffinity")
XDG = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME")


class FakeWindows:
    """signals: handlers by number; refused: how often a file was not given up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.signals: dict[int, Any] = {}
        self.refused = 0
        self._locked: dict[int, int] = {}
        """The descriptor that holds the first byte, by the file."""
        self.local = folder / "AppData" / "Local"
        patch = monkeypatch.setattr
        for name in ("replace", "unlink", "rename"):
            patch(os, name, self._refusing(getattr(os, name)))
        patch(sys, "platform", "win32")
        for name in (*GONE_ON_WINDOWS, *GONE_ON_MACOS):
            monkeypatch.delattr(os, name)
        monkeypatch.delattr(socket, "AF_UNIX")
        monkeypatch.delattr(signal, "SIGKILL")
        patch(signal, "SIGBREAK", 21, raising=False)
        patch(signal, "signal", self.signals.__setitem__)
        msvcrt = types.ModuleType("msvcrt")
        msvcrt.__dict__.update(LK_UNLCK=LK_UNLCK, LK_NBLCK=LK_NBLCK, locking=self._lock)
        monkeypatch.setitem(sys.modules, "msvcrt", msvcrt)
        for name in ("fcntl", "resource", "pwd"):
            monkeypatch.setitem(sys.modules, name, None)
        for name in XDG:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("LOCALAPPDATA", str(self.local))

    def _lock(self, descriptor: int, mode: int, size: int) -> None:
        assert size == 1
        file = os.fstat(descriptor).st_ino
        if mode == LK_UNLCK:
            assert self._locked.pop(file) == descriptor
        elif self._locked.get(file, descriptor) != descriptor or file in self._locked:
            raise OSError(errno.EACCES, "Permission denied")
        else:
            self._locked[file] = descriptor

    def _refusing(self, function: Any) -> Any:
        def call(*paths: Any, **more: Any) -> Any:
            if more.get("dir_fd") is None and any(map(_is_in_use, paths)):
                self.refused += 1
                raise PermissionError(errno.EACCES, "The process cannot access the file", paths[0])
            return function(*paths, **more)

        return call


def _is_in_use(path: Any) -> bool:
    """Whether this process has a file open or mapped."""
    place = os.path.realpath(path)
    if not os.path.isfile(place):
        return False
    opened = Path("/proc/self/fd")
    for link in list(opened.iterdir()):
        try:
            if os.readlink(link) == place:
                return True
        except OSError:
            continue
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    return any(line.endswith(" " + place) for line in lines)


def become_macos(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Play macOS, with this home, whose kernel answers nothing."""
    answer_sysctl(monkeypatch, {})
    monkeypatch.setattr(sys, "platform", "darwin")
    for name in GONE_ON_MACOS:
        monkeypatch.delattr(os, name)
    monkeypatch.delattr(psutil.Process, "cpu_affinity")
    for name in XDG:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))


def answer_sysctl(monkeypatch: pytest.MonkeyPatch, known: dict[str, object]) -> None:
    """Have the kernel of macOS answer these names: ``sysctl`` complains of the rest elsewhere."""

    def run(command: list[str], **_options: Any) -> Any:
        assert command[0] == "/usr/sbin/sysctl"
        told = "".join(f"{name}: {known[name]}\n" for name in command[1:] if name in known)
        return types.SimpleNamespace(stdout=told)

    monkeypatch.setattr(macos.subprocess, "run", run)
    macos.performance_cores.cache_clear()
    is_translated.cache_clear()
