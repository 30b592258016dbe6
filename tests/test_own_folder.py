"""Temporary folders of tests."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from own_folder import own_folder

MAKES_ONE = """
import sys, tempfile
tempfile.tempdir = {parent!r}
sys.path.insert(0, {tests!r})
from own_folder import own_folder
with own_folder("home") as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    sys.stdin.read()
"""


def printed_by(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().strip()


def test_what_a_killed_run_left_goes_and_what_another_uses_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    script = MAKES_ONE.format(parent=str(tmp_path), tests=str(Path(__file__).parent))
    command = [sys.executable, "-c", script]
    pipe = subprocess.PIPE
    killed, running = (subprocess.Popen(command, stdin=pipe, stdout=pipe) for _ in range(2))
    left, used = (Path(printed_by(process)) for process in (killed, running))
    killed.kill()
    killed.communicate()
    with own_folder("home") as folder:
        assert set(tmp_path.iterdir()) == {used, folder}
        assert (used / "file").exists()
    running.communicate()
    assert not left.exists()
    assert not list(tmp_path.iterdir())
