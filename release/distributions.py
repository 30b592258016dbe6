"""The wheel and the source distribution, built from a copy of the source."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("accel", "lsp_server", "operating_system", "repo_index")
PARTS = (*PACKAGES, "pyproject.toml", "README.md", "LICENSE")
OLDEST_BACKEND = 77
"""The first part of the version of setuptools, as in ``pyproject.toml``."""
EPOCH = "1577836800"
"""All files in archives are of this second: the same source gives the same bytes."""


def build_wheel(folder: Path) -> Path:
    """The wheel for every platform, in place of older ones."""
    pip = ["pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command = [*pip, *_without("--no-build-isolation"), "--wheel-dir"]
    return _build(folder, "redraft-*-py3-none-any.whl", command)


def build_sdist(folder: Path) -> Path:
    """The source distribution, in place of older ones."""
    command = ["build", "--sdist", "--quiet", *_without("--no-isolation"), "--outdir"]
    return _build(folder, "redraft-*.tar.gz", command)


def constant(file: str, name: str) -> object:
    """The value of a constant of a module, which is not imported for it."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == name:
            return ast.literal_eval(statement.value)
    raise AssertionError(f"{file} has no {name}")


def _build(folder: Path, pattern: str, command: list[str]) -> Path:
    """Return what a module builds into a folder; command: ends with the option that names it."""
    for old in folder.glob(pattern):
        old.unlink()
    with _copied_source() as copy:
        words = [sys.executable, "-m", *command, str(folder), str(copy)]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
        subprocess.run(words, check=True, env=environment, stdout=sys.stderr)
    (built,) = folder.glob(pattern)
    return built


def _without(isolation: str) -> list[str]:
    """The option that leaves isolation out, where this environment has the build backend: then
    nothing is fetched."""
    try:
        version = int(metadata.version("setuptools").partition(".")[0])
    except metadata.PackageNotFoundError:
        return []
    return [isolation] if version >= OLDEST_BACKEND else []


@contextmanager
def _copied_source() -> Iterator[Path]:
    """Copy the source without the files that an earlier build left in it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "redraft"
        copy.mkdir()
        for name in PARTS:
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, copy / name, ignore=ignored)
            else:
                shutil.copy(ROOT / name, copy)
        page = copy / "README.md"
        page.write_text(without_local_links(page.read_text("utf-8")), "utf-8")
        yield copy


def without_local_links(page: str, *others: str) -> str:
    """A page that leaves the source tree: without the pictures that lie there, with what stands
    below them, and without links but to ``https:`` and what begins like ``others``."""
    away = rf"\]\((?!{'|'.join(('https:', *others))})[^)]*\)"
    page = re.sub(rf"^!\[.*{away}\n\n?(?:\*.*\*\n\n)?", "", page, flags=re.MULTILINE)
    return re.sub(rf"\[([^\[\]]+){away}", r"\1", page)
