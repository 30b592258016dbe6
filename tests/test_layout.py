"""The walls of the house: who imports whom, what is loaded when, and how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = {"accel", "repo_index", "lsp_server"}
FORBIDDEN = {
    "accel": {"repo_index", "lsp_server", "pygls", "lsprotocol"},
    "repo_index": {"accel", "lsp_server", "torch", "transformers", "pygls", "lsprotocol"},
    "lsp_server": {"torch", "transformers"},
}
JOINS_ACCEL_AND_INDEX = ("engine_process.py", "bench/")
"""The only places of lsp_server that may import both ``accel`` and ``repo_index``."""


def imports(path: Path) -> set[str]:
    """Top-level names of all modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def python_files(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", sorted(FORBIDDEN))
def test_packages_import_only_what_they_may(package: str) -> None:
    offences = {
        str(path.relative_to(ROOT)): sorted(imports(path) & FORBIDDEN[package])
        for path in python_files(package)
        if imports(path) & FORBIDDEN[package]
    }
    assert offences == {}


def test_accel_and_repo_index_meet_in_one_place() -> None:
    meeting = [
        str(path.relative_to(ROOT / "lsp_server"))
        for path in python_files("lsp_server")
        if {"accel", "repo_index"} <= imports(path) and path.name != "cli.py"
    ]
    assert [path for path in meeting if not path.startswith(JOINS_ACCEL_AND_INDEX)] == []


LIGHT = [
    "lsp_server",
    "lsp_server.cli",
    "lsp_server.serve_command",
    "lsp_server.daemon.front",
    "lsp_server.daemon.host",
    "lsp_server.server",
    "repo_index.indexer",
    "accel",
]


@pytest.mark.parametrize("module", LIGHT)
def test_importing_loads_no_torch(module: str) -> None:
    code = (
        f"import sys, {module}; print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert loaded.stdout.strip() == "[]"


@pytest.mark.parametrize("module", ["lsp_server.serve_command", "lsp_server.daemon.front"])
def test_the_front_needs_the_standard_library_alone(module: str) -> None:
    code = (
        f"import sys, {module}; ours = {sorted(OURS)!r}; "
        "print(sorted({m.split('.')[0] for m in sys.modules} "
        "- set(sys.stdlib_module_names) - set(ours) - {'__main__'}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert loaded.stdout.strip() == "[]"


def test_files_are_of_readable_length() -> None:
    files = [path for package in [*OURS, "tests"] for path in python_files(package)]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in files}
    assert {path: length for path, length in lengths.items() if length > 400} == {}


def test_the_version_stands_in_one_way() -> None:
    from lsp_server.version import VERSION

    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{VERSION}"\n' in project
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
