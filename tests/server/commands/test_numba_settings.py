"""Settings of Numba that a user has for code of their own change nothing in processes of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_model import choose_small_model
from text_cases import data_beside, data_cases

from accel.native.levels import LEVELS, level_here
from accel.native.python_process import python_command

DATA = data_beside(__file__)
SETTINGS = DATA["SETTINGS"]
STAY = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2", "NUMBA_CACHE_DIR": "/no/place"}
YAML = "disable_jit: 1\nopt: 0\nboundscheck: 1\ndebug: 1\n"
CODE = "def total(prices):\n    result = 0\n    for price in prices:\n        result += "
SHOWS = """
import json, os
from numba.core import config
names = ["DISABLE_JIT", "OPT", "BOUNDSCHECK", "DEBUG", "ENABLE_CUDASIM", "CPU_NAME", "CACHE_DIR"]
config.reload_config()
print(json.dumps([os.getcwd(), {name: getattr(config, name) for name in names}]))
"""
LEVEL = level_here()
USUAL = {
    "DISABLE_JIT": 0, "OPT": 3, "BOUNDSCHECK": None, "DEBUG": 0, "ENABLE_CUDASIM": 0,
    "CPU_NAME": LEVELS[LEVEL].cpu if LEVEL is not None else None,
    "CACHE_DIR": str(Path(os.environ["XDG_CACHE_HOME"], "redraft", "machine-code")),
}  # fmt: skip
"""Where code lies and what it is for, as a process chooses by itself."""


def plain() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}


def settings_under(environment: dict[str, str], folder: Path, *, isolated: bool = True) -> object:
    """Where a process works, and what Numba's settings are in it."""
    package = folder / "package"
    package.mkdir(exist_ok=True)
    (package / "shows.py").write_text(SHOWS)
    command = python_command("shows") if isolated else [sys.executable, str(package / "shows.py")]
    if isolated:
        command[-2] += f"\n{package}"
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_settings_are_passed_over(tmp_path: Path) -> None:
    assert settings_under({**plain(), **SETTINGS}, tmp_path) == [str(tmp_path), USUAL]


def test_where_code_lies_and_what_it_is_for_stays(tmp_path: Path) -> None:
    found = settings_under({**plain(), **STAY}, tmp_path)
    assert found == [str(tmp_path), USUAL | {"CPU_NAME": "haswell", "CACHE_DIR": "/no/place"}]


@pytest.mark.parametrize("text", [YAML, "{{{"])
def test_a_file_of_the_folder_is_not_read(text: str, tmp_path: Path) -> None:
    (tmp_path / ".numba_config.yaml").write_text(text)
    assert settings_under(plain(), tmp_path) == [str(tmp_path), USUAL]


def test_a_process_that_is_not_ours_obeys_both(tmp_path: Path) -> None:
    """The control."""
    environment = {**plain(), "NUMBA_DISABLE_JIT": "1"}
    _, found = settings_under(environment, tmp_path, isolated=False)  # type: ignore[misc]
    assert found["DISABLE_JIT"] == 1
    (tmp_path / ".numba_config.yaml").write_text(YAML)
    _, found = settings_under(plain(), tmp_path, isolated=False)  # type: ignore[misc]
    assert (found["DISABLE_JIT"], found["BOUNDSCHECK"]) == (1, 1)


@pytest.mark.timeout(600)
@pytest.mark.slow
def test_a_completion_is_the_same_with_all_of_them(tmp_path: Path) -> None:
    choose_small_model(tmp_path)
    (tmp_path / "code.py").write_text(CODE)
    texts, kept = [], {"NUMBA_CACHE_DIR": os.environ["NUMBA_CACHE_DIR"]}
    for more, config in (({}, ""), (SETTINGS, YAML)):
        (tmp_path / ".numba_config.yaml").write_text(config)
        program = "import sys; from lsp_server.commands.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", program, "complete", "code.py", "--line", "4", "--character",
             "19", "--threads", "1"],
            cwd=tmp_path, env={**plain(), **kept, "XDG_CONFIG_HOME": str(tmp_path), **more},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        texts.append(done.stdout)
    assert texts[0]
    assert texts[0] == texts[1]


@data_cases()
def test_the_library_alone_says_in_one_line_what_cannot_be(setting: str, message: str) -> None:
    name, _, value = setting.partition("=")
    done = subprocess.run(
        [sys.executable, "-c", "import accel.models.cpu.matmul"], env={**plain(), name: value},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("accel.errors.InvalidEnvironment: ")
    assert message in last
