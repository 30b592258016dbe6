"""Tasks of the first start, compiled by a process for every core."""

from __future__ import annotations

import json
import logging
import subprocess
import threading
import time
from pathlib import Path

import pytest
from python_environments import use_modules_of

from accel.native.python_process import python_command
from lsp_server.engine import compiling
from lsp_server.engine.compiling import CompileTask, CompilingBehind, compile_at_once

WAIT_S = 60.0

STAND_IN = """
import sys, time
from pathlib import Path

folder, name, *others = sys.argv[1:]
place = Path(folder)
missing = [other for other in others if not (place / f"{other}.done").exists()]
assert not missing, missing
(place / f"{name}.began").touch()
if name == "meets":
    while not (place / "met.began").exists():
        time.sleep(0.01)
if name == "stays":
    time.sleep(3600)
(place / f"{name}.done").touch()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for what parts leave behind, with a module that stands in for what compiles."""
    (tmp_path / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
    use_modules_of(tmp_path, monkeypatch)
    monkeypatch.setattr(compiling, "cores", lambda: 2)
    return tmp_path


def task(place: Path, name: str, seconds: float, *after: str) -> CompileTask:
    """It fails where those that it comes ``after`` were not compiled."""
    return CompileTask(name, "stand_in", (str(place), name, *after), seconds)


def done(place: Path) -> set[str]:
    return {path.stem for path in place.glob("*.done")}


def test_two_are_compiled_at_a_time(place: Path) -> None:
    """The first ends only when the second has begun."""
    compile_at_once([task(place, "met", 1), task(place, "meets", 2)], print)
    assert done(place) == {"met", "meets"}


def test_each_core_has_about_as_long_to_do(place: Path) -> None:
    """The longest is alone; the others follow one another in one process."""
    told: list[str] = []
    tasks = [task(place, "one", 5), task(place, "long", 20), task(place, "two", 4, "one")]
    compile_at_once(tasks, told.append)
    assert done(place) == {"one", "two", "long"}
    assert told[0].endswith("0 of 3 parts")


def test_one_that_fails_is_left_to_who_calls_it(
    place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tasks = [task(place, "failing", 2, "missing"), task(place, "next", 1), task(place, "good", 9)]
    with caplog.at_level(logging.WARNING):
        compile_at_once(tasks, print)
    assert done(place) == {"next", "good"}
    assert "compiling failing, next ended with code 1" in caplog.text


def test_one_that_takes_too_long_is_ended(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "LONGEST_S", 1.0)
    compile_at_once([task(place, "stays", 2), task(place, "good", 1)], print)
    assert done(place) <= {"good"}


def test_a_single_one_is_compiled_elsewhere_too(place: Path) -> None:
    compile_at_once([task(place, "alone", 1)], print)
    assert done(place) == {"alone"}


def test_one_core_compiles_where_code_is_called(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "cores", lambda: 1)
    compile_at_once([task(place, "one", 1), task(place, "two", 2)], print)
    assert done(place) == set()


def test_what_nothing_needs_yet_is_compiled_meanwhile(place: Path) -> None:
    told = threading.Event()
    behind = CompilingBehind([task(place, "meets", 2)], told.set)
    assert not behind.is_over
    assert not told.is_set()
    (place / "met.began").touch()
    assert told.wait(WAIT_S)
    assert behind.is_over
    assert done(place) == {"meets"}
    behind.close()


def test_it_ends_where_it_is_closed(place: Path) -> None:
    behind = CompilingBehind([task(place, "stays", 2)])
    behind.close()
    assert behind.is_over


def test_nothing_to_compile_is_over_at_once() -> None:
    assert CompilingBehind([]).is_over


def test_it_ends_with_the_process_that_wants_it(place: Path) -> None:
    command = ["stand_in", str(place), "stays"]
    process = subprocess.Popen(
        python_command("lsp_server.engine.compiling", json.dumps([False, [command]])),
        stdin=subprocess.PIPE,
    )
    try:
        ends = time.monotonic() + WAIT_S
        while not (place / "stays.began").exists():
            assert time.monotonic() < ends
            time.sleep(0.01)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(WAIT_S) == 1
    finally:
        process.kill()
        process.wait()
