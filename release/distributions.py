"""The wheel and the source distribution, built from a copy of the source."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("accel", "lsp_server", "operating_system", "repo_index")
PARTS = (*PACKAGES, "pyproject.toml", "README.md", "LICENSE")
EPOCH = "1577836800"
"""All files in archives are of this second: the same source gives the same bytes."""


def build_wheel(folder: Path) -> Path:
    """The wheel for every platform, in place of older ones."""
    return _build(folder, "wheel", "redraft-*-py3-none-any.whl")


def build_sdist(folder: Path) -> Path:
    """The source distribution, in place of older ones."""
    return _build(folder, "sdist", "redraft-*.tar.gz")


def constant(file: str, name: str) -> object:
    """The value of a constant of a module, which is not imported for it."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name:
            return ast.literal_eval(statement.value)
    raise AssertionError(f"{file} has no {name}")


def _build(folder: Path, kind: str, pattern: str) -> Path:
    for old in folder.glob(pattern):
        old.unlink()
    with _copied_source() as copy:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        command = {
            "wheel": ["pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
                      "--wheel-dir", str(folder), str(copy)],
            "sdist": ["build", "--sdist", "--quiet", "--outdir", str(folder), str(copy)],
        }[kind]  # fmt: skip
        subprocess.run(
            [sys.executable, "-m", *command], check=True, env=environment, stdout=sys.stderr
        )
    (built,) = folder.glob(pattern)
    return built


@contextmanager
def _copied_source() -> Iterator[Path]:
    """What an earlier build left behind in the source does not come into a distribution."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "redraft"
        copy.mkdir()
        for part in PARTS:
            if (ROOT / part).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / part, copy / part, ignore=ignored)
            else:
                shutil.copy(ROOT / part, copy)
        yield copy
