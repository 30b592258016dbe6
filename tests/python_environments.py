"""Python environments for processes that tests start: what is ours runs isolated, so no PYTHONPATH
gives a module to it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from accel.native import python_process

REPOSITORY = Path(__file__).resolve().parents[1]


def python_environment(folder: Path, *first: Path, start: str = "") -> Path:
    """The interpreter of a new environment that has the packages of this one.

    first: folders whose modules go before those packages; start: a program that every process of
    the environment runs before anything else.
    """
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    if start:
        (packages / "start_of_tests.py").write_text(start)
        (packages / "0.pth").write_text("import start_of_tests\n")
    (packages / "1.pth").write_text("".join(f"{one}\n" for one in first))
    added = "".join(f"import site; site.addsitedir({str(one)!r})\n" for one in package_folders())
    (packages / "2.pth").write_text(f"{added}{REPOSITORY}\n")
    return folder / "bin" / "python"


def python_environment_without(folder: Path, *missing: str) -> Path:
    """The interpreter of a new environment that has the packages of this one, some of which are
    ``missing``."""
    python = python_environment(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "2.pth").write_text(f"{REPOSITORY}\n")
    described = tuple(f"{name}-" for name in missing)
    for place in package_folders():
        for entry in sorted(place.iterdir()):
            link = packages / entry.name
            is_missing = entry.name in missing or entry.name.startswith(described)
            if not (is_missing or entry.suffix == ".pth" or link.exists()):
                link.symlink_to(entry)
    return python


def package_folders() -> list[Path]:
    """Where the packages of this interpreter lie."""
    found = map(Path, sys.path)
    return [entry for entry in found if entry.name in ("site-packages", "dist-packages")]


def use_modules_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the processes that this one starts take modules from a folder, too."""
    folders = [*python_process.installation_folders(), str(folder)]
    monkeypatch.setattr(python_process, "installation_folders", lambda: folders)
