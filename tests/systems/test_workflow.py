"""The workflow for three systems, which cannot be run here, says what exists."""

from __future__ import annotations

import argparse
import importlib
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from lsp_server.commands.cli.argument_parser import COMMANDS
from release.resolving import promised_pythons

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / ".github" / "workflows" / "systems.yml"
PROJECT = (ROOT / "pyproject.toml").read_text("utf-8")


@pytest.fixture(scope="module")
def job() -> Any:
    whole = yaml.safe_load(FILE.read_text("utf-8"))
    # YAML takes the word "on" for true.
    assert set(whole[True]) == {"push", "pull_request", "workflow_dispatch"}
    assert whole["permissions"] == {"contents": "read"}
    (only,) = whole["jobs"].values()
    return only


def lines(job: Any) -> list[list[str]]:
    """The commands of all steps, in words."""
    return [
        shlex.split(line)
        for step in job["steps"]
        for line in step.get("run", "").splitlines()
        if line.strip()
    ]


def test_three_systems_and_the_oldest_python_are_among_them(job: Any) -> None:
    matrix = job["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["system"]} == {"ubuntu", "macos", "windows"}
    assert any(name.endswith("-arm") for name in matrix["system"])
    pythons = {*matrix["python"], *(one["python"] for one in matrix["include"])}
    oldest = re.search(r'^requires-python = ">=(.*)"$', PROJECT, re.MULTILINE)
    assert oldest is not None
    assert oldest[1] in pythons
    assert all(isinstance(version, str) for version in pythons)


def test_its_commands_are_those_that_there_are(job: Any) -> None:
    ours = [words[1:] for words in lines(job) if words[0] == "redraft"]
    assert ["demo"] in ours
    for words in ours:
        command = COMMANDS[words[0]]
        parser = argparse.ArgumentParser()
        importlib.import_module(command.module).add_arguments(parser)
        parser.parse_args(words[1:])
        for path in (word for word in words if word.endswith(".py")):
            assert (ROOT / path).is_file()


def test_the_tests_that_it_names_are_there(job: Any) -> None:
    (words,) = [words for words in lines(job) if "pytest" in words]
    paths = [word for word in words if word.startswith("tests/")]
    assert "tests/systems" in paths
    assert all((ROOT / path).exists() for path in paths)


def test_what_it_installs_has_a_name(job: Any) -> None:
    installed = [words[-1] for words in lines(job) if "install" in words]
    assert installed == [".", ".[dev]"]
    assert "\ndev = [" in PROJECT


def test_every_system_compiles_what_it_alone_compiles_and_starts_from_it() -> None:
    """A release has code of each promised Python, compiled with the same Numba."""
    jobs = yaml.safe_load((FILE.with_name("release.yml")).read_text("utf-8"))["jobs"]
    matrix = jobs["compile"]["strategy"]["matrix"]
    assert {name.partition("-")[0] for name in matrix["system"]} == {"ubuntu", "macos"}
    assert matrix["python"] == [f"3.{minor}" for minor in promised_pythons()]
    for job in jobs.values():
        installs = [line for line in lines(job) if line[:4] == ["python", "-m", "pip", "install"]]
        assert all(line[4] == "$(grep ^numba== constraints.txt)" for line in installs)
    uploaded = {
        step["with"]["name"] for step in jobs["compile"]["steps"] if "name" in step.get("with", {})
    }
    assert uploaded == {"machine-code-${{ matrix.system }}-${{ matrix.python }}"}
    assert any(name.endswith("-arm") for name in jobs["start"]["strategy"]["matrix"]["system"])
    (start,) = [line for line in lines(jobs["start"]) if line[:3] == ["python", "-m", "release"]]
    assert start[3] == "first-start"
    assert (ROOT / start[-1]).is_dir()
