"""Homes and folders as they are in containers, on build machines and behind wrong settings."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from platformdirs import user_cache_dir, user_state_dir

from lsp_server.editor.daemon.address import socket_path
from lsp_server.shared.errors import NoUserFolder
from lsp_server.shared.user_files.user_folders import replaced_message, settle
from operating_system.folders import log_folder
from repo_index.store import data_folder

REPOSITORY = Path(__file__).resolve().parents[3]
NAMES = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
Environment = dict[str, str]


def file_at(place: Path) -> str:
    place.write_text("a file")
    return str(place)


CASES: dict[str, Callable[[Path], Environment]] = {
    "an ordinary home": lambda place: {"HOME": str(place)},
    "a home that cannot be written": lambda place: {"HOME": "/proc/1"},
    "a home that is a file": lambda place: {"HOME": file_at(place / "file")},
    "a home below a file": lambda place: {"HOME": file_at(place / "file") + "/below"},
    "a home that is missing": lambda place: {"HOME": str(place / "nothing")},
    "a relative home": lambda place: {"HOME": "home"},
    "an empty home": lambda place: {"HOME": ""},
    "no home": lambda place: {},
    "a device as home": lambda place: {"HOME": "/dev/null"},
    "a home of a very long name": lambda place: {"HOME": "/" + "x" * 300},
    "a home with blanks and accents": lambda place: {"HOME": str(place / "d’été à moi")},
    "a cache that cannot be written": lambda place: {
        "HOME": str(place),
        "XDG_CACHE_HOME": "/proc/1/cache",
    },
    "data in a file": lambda place: {"HOME": str(place), "XDG_DATA_HOME": file_at(place / "file")},
    "relative folders": lambda place: {
        "HOME": str(place),
        "XDG_CACHE_HOME": "cache",
        "XDG_DATA_HOME": "./data",
        "XDG_STATE_HOME": "state",
    },
    "empty folders": lambda place: {"HOME": str(place), **dict.fromkeys(NAMES, "")},
    "a relative runtime folder": lambda place: {"HOME": str(place), "XDG_RUNTIME_DIR": "run"},
    "a runtime folder that cannot be made": lambda place: {
        "HOME": str(place),
        "XDG_RUNTIME_DIR": "/proc/1/run",
    },
    "a state folder that is a link to nothing": lambda place: {
        "HOME": str(place),
        "XDG_STATE_HOME": link_to_nothing(place / "link"),
    },
    "a relative log folder": lambda place: {"HOME": str(place), "REDRAFT_LOG_DIR": "logs"},
}


def link_to_nothing(place: Path) -> str:
    place.symlink_to("/proc/1/nothing")
    return str(place)


def without_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also undoes at the end what is settled meanwhile."""
    for name in (*NAMES, "HOME", "REDRAFT_LOG_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A short path: sockets have room for no long one."""
    with tempfile.TemporaryDirectory(prefix="uf") as name:
        yield Path(name)


def surroundings(given: Environment, temporary: Path) -> Environment:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name != "HOME" and not name.startswith(("XDG_", "REDRAFT_"))
    }
    return {**kept, "TMPDIR": str(temporary), "PYTHONPATH": str(REPOSITORY), **given}


@pytest.mark.parametrize("case", list(CASES))
def test_every_folder_can_be_used_or_is_replaced(
    case: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = temporary / "home"
    home.mkdir()
    given = surroundings(CASES[case](home), temporary)
    for name in set(os.environ) - set(given):
        monkeypatch.delenv(name)
    without_folders(monkeypatch)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.chdir(temporary)
    replaced = settle()
    said = replaced_message(replaced) if replaced else ""
    places = [
        socket_path().parent,
        log_folder(),
        data_folder(),
        Path(user_cache_dir("redraft")),
        Path(user_state_dir("redraft")),
    ]
    for place in places:
        assert place.is_absolute()
        place.mkdir(parents=True, exist_ok=True)
        (place / "tried").write_text("")
        (place / "tried").unlink()
    usual = case in ("an ordinary home", "a home that is missing", "no home", "an empty home")
    if usual or "blanks" in case or case in ("relative folders", "empty folders"):
        assert said == ""
    assert said.startswith("cannot use ") or not said
    if "cannot be written" in case or "file" in case or "device" in case:
        assert said
        assert any(str(temporary / "redraft-home-") in str(place) for place in places)


@pytest.mark.parametrize("command", [["status"], ["stop"]])
def test_commands_work_without_a_home(command: list[str], temporary: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "lsp_server", *command],
        env=surroundings({"HOME": "/proc/1"}, temporary),
        cwd=temporary,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "no daemon runs\n"
    (line,) = ran.stderr.splitlines()
    assert line.startswith("redraft: cannot use /proc/1/.cache")
    assert str(temporary) in line


def test_where_nothing_can_be_written_one_sentence_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_folders(monkeypatch)
    monkeypatch.setenv("HOME", "/proc/1")
    monkeypatch.setattr(tempfile, "tempdir", "/proc/1")
    with pytest.raises(NoUserFolder, match="set HOME to a folder of yours"):
        settle()


def test_a_spare_folder_of_somebody_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    without_folders(monkeypatch)
    monkeypatch.setenv("HOME", "/proc/1")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spare = tmp_path / f"redraft-home-{os.getuid()}"
    spare.mkdir(mode=0o755)
    with pytest.raises(NoUserFolder, match="is not yours alone"):
        settle()
    spare.chmod(0o700)
    assert all(str(spare) in one.used for one in settle())
