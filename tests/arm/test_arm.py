"""Redraft on an emulated Arm, made and called by ``make test-arm``: it shows what is computed, not
how fast, nor what weakly ordered memory does between threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from e2e.client import PYTHON, Driver, command, inline, private_environment, profile

pytestmark = [pytest.mark.arm, pytest.mark.timeout(3600)]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("REDRAFT_ARM", ROOT / "build" / "arm"))
ARM = FOLDER / "python"
PROCESSORS = {"max": "neon-i8mm", "neoverse-n1": "neon-dotprod"}
"""QEMU's names, as Graviton 3 and Graviton 2 have them, and the level of each."""
START_S, DAEMON_S = 600, 40
COMPUTED = """
from tests.compiled_code import use_code_of_tests
use_code_of_tests()
from tests.arm.computed import main
main()
"""


def as_on(processor: str) -> dict[str, str]:
    """Settings for a process on such a processor, with the code that was compiled for it."""
    return {
        "QEMU_CPU": processor,
        "NUMBA_CACHE_DIR": str(FOLDER / "compiled" / PROCESSORS.get(processor, "none")),
    }


def output_of(python: Path | str, *arguments: str, **settings: str) -> str:
    """What a program of this checkout prints."""
    environment = {name: value for name, value in os.environ.items() if "NUMBA_" not in name}
    done = subprocess.run(
        [python, *arguments], env=environment | settings, cwd=ROOT,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("processor", "level"), [*PROCESSORS.items(), ("cortex-a72", None)])
def test_a_level_is_found(processor: str, level: str | None) -> None:
    """A Raspberry Pi 4 has none."""
    code = "from accel.native.levels import level_here; print(level_here())"
    assert output_of(ARM, "-c", code, **as_on(processor)).strip() == str(level)


@pytest.mark.parametrize("processor", PROCESSORS)
def test_products_are_those_of_a_slow_reference(processor: str) -> None:
    file, name = "tests/decoding/test_quantised_products.py", PROCESSORS[processor]
    said = output_of(
        *(ARM, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "3000", file),
        *("-k", f"(reference or how_many) and {name} or read_back or eight_bits"),
        **as_on(processor),
    )
    assert "40 passed" in said


@pytest.fixture(scope="module")
def computed_here() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output_of(sys.executable, "-c", COMPUTED))
    return found


@pytest.mark.parametrize("processor", PROCESSORS)
def test_forwards_and_sessions_give_what_they_give_here(
    processor: str, computed_here: dict[str, Any]
) -> None:
    there = json.loads(output_of(ARM, "-c", COMPUTED, **as_on(processor)))
    assert there["level"] == there["instructions"] == PROCESSORS[processor]
    assert {**there, "level": "", "instructions": ""} == {
        **computed_here, "level": "", "instructions": "",
    }  # fmt: skip


def started(environment: dict[str, str]) -> Driver:
    """The front of a server whose daemon is there: it waits half a minute for one, and an emulated
    daemon may need longer to start. The next one finds it."""
    for _ in range(10):
        driver = Driver(environment)
        try:
            driver.process.wait(DAEMON_S)
        except subprocess.TimeoutExpired:
            return driver
    raise AssertionError("no daemon starts")


def completion(folder: Path, workspace: Path, settings: Mapping[str, str]) -> str:
    """Of an editor's server, daemon and engine that begin with nothing."""
    folder.mkdir()
    private = private_environment(folder, **{**settings, "REDRAFT_IDLE_EXIT_S": "900"})
    # The tests' own process is held to a level of x86.
    environment = {name: value for name, value in private.items() if "NUMBA_CPU" not in name}
    driver = started(environment)
    uri = workspace.as_uri()
    try:
        folders = [{"uri": uri, "name": "workspace"}]
        about = {
            **profile("vscode"),
            "processId": None,
            "rootUri": uri,
            "workspaceFolders": folders,
        }
        settings_of = {"gate": "off", "timeoutMs": 1000 * START_S}
        about["initializationOptions"] = {"settings": {"completion": settings_of}}
        driver.request("initialize", about, START_S)
        driver.notify("initialized", {})
        driver.wait_for_state("ready", timeout=START_S)
        text = (
            "def double(rectangle):\n    width = rectangle.width * 2\n    height = rectangle.hei\n"
        )
        driver.open(f"{uri}/double.py", text)
        asked = inline(f"{uri}/double.py", 2, len("    height = rectangle.hei"))
        items: list[dict[str, Any]] = []
        for _ in range(30):  # a slow machine answers the first ones too early
            if items := driver.request("textDocument/inlineCompletion", asked, START_S)["items"]:
                break
            reason = driver.request("redraft/status", {}, START_S)["reason"]
            print("no completion:", reason)
            time.sleep(2)
        assert driver.close(START_S) == 0
        return str(items[0]["insertText"])
    finally:
        driver.kill()
        command(environment, "stop")


def test_an_editor_gets_the_same_completion(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    here = completion(tmp_path / "here", tmp_path / "work", {PYTHON: sys.executable})
    there = completion(tmp_path / "arm", tmp_path / "work", {PYTHON: str(ARM), **as_on("max")})
    assert here == there
    assert here
