"""Which packages can be installed for every promised Python and system, tried on small wheels."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from release.resolving import promised_pythons, resolve

LINUX, MACOS, WINDOWS = "x86_64-manylinux_2_28", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"
TAGS = {LINUX: "manylinux_2_28_x86_64", MACOS: "macosx_11_0_arm64", WINDOWS: "win_amd64"}


def wheel(folder: Path, version: str, tag: str = "py3-none-any", needs: str = ">=3.8") -> None:
    """A package that holds nothing. needs: the Pythons that it says it runs on."""
    info = f"part-{version}.dist-info"
    with zipfile.ZipFile(folder / f"part-{version}-{tag}.whl", "w") as archive:
        archive.writestr(
            f"{info}/METADATA",
            f"Metadata-Version: 2.1\nName: part\nVersion: {version}\nRequires-Python: {needs}\n",
        )
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")


def compiled(folder: Path, minors: list[int], systems: list[str]) -> None:
    """Wheels of compiled code, one for each Python and system."""
    for minor in minors:
        for system in systems:
            wheel(folder, "1", f"cp3{minor}-cp3{minor}-{TAGS[system]}")


def pure(folder: Path) -> None:
    wheel(folder, "1")


def stable(folder: Path) -> None:
    for tag in TAGS.values():
        wheel(folder, "1", f"cp310-abi3-{tag}")


def two(folder: Path) -> None:
    """A new version that wants a newer Python than the one before."""
    wheel(folder, "1")
    wheel(folder, "2", needs=">=3.11")


def write_project(folder: Path, oldest: int, needs: str, pin: str) -> None:
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "whole"\nversion = "1"\nrequires-python = ">=3.{oldest}"\n'
        f'dependencies = ["part{needs}"]\n\n[project.optional-dependencies]\nserver = []\n'
    )
    (folder / "constraints.txt").write_text(f"part=={pin}\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that needs ``part``, of which the only index is the folder ``wheels``."""
    (tmp_path / "wheels").mkdir()
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path


Case = tuple[Callable[[Path], object], str, str, list[str]]
WHOLE: dict[str, Case] = {
    "pure": (pure, ">=1", "1", [LINUX]),
    "compiled for all": (lambda at: compiled(at, [13, 14], [*TAGS]), ">=1", "1", [LINUX, MACOS]),
    "the stable ABI": (stable, ">=1", "1", [LINUX, WINDOWS]),
    "a version that is no longer the newest": (two, ">=1", "1", [LINUX]),
}
MISSING: dict[str, tuple[Case, list[tuple[int, str]]]] = {
    "not the newest Python": (
        (lambda at: compiled(at, [13], [*TAGS]), ">=1", "1", [LINUX]),
        [(14, LINUX)],
    ),
    "older Pythons alone": (
        (lambda at: compiled(at, [11, 12], [*TAGS]), ">=1", "1", [MACOS]),
        [(13, MACOS), (14, MACOS)],
    ),
    "a Python dropped": (
        (lambda at: wheel(at, "1", needs=">=3.14"), ">=1", "1", [LINUX]),
        [(13, LINUX)],
    ),
    "no Windows": (
        (lambda at: compiled(at, [13, 14], [LINUX, MACOS]), ">=1", "1", [LINUX, WINDOWS]),
        [(13, WINDOWS), (14, WINDOWS)],
    ),
    "no macOS": (
        (lambda at: compiled(at, [13, 14], [LINUX, WINDOWS]), ">=1", "1", [LINUX, MACOS]),
        [(13, MACOS), (14, MACOS)],
    ),
    "source alone": (
        (lambda at: (at / "part-1.tar.gz").write_bytes(b""), ">=1", "1", [LINUX]),
        [(13, LINUX), (14, LINUX)],
    ),
    "a pin that is not there": ((pure, ">=1", "3", [LINUX]), [(13, LINUX), (14, LINUX)]),
    "nothing in range": ((pure, ">=2", "2", [LINUX]), [(13, LINUX), (14, LINUX)]),
}


@pytest.mark.parametrize("case", WHOLE.values(), ids=WHOLE)
def test_what_is_there_for_all_is_no_problem(project: Path, case: Case) -> None:
    make, needs, pin, systems = case
    write_project(project, 13, needs, pin)
    make(project / "wheels")

    assert resolve(project, systems) == []


@pytest.mark.parametrize(("case", "missing"), MISSING.values(), ids=MISSING)
def test_what_some_python_or_system_has_no_wheel_of_is_named(
    project: Path, case: Case, missing: list[tuple[int, str]]
) -> None:
    make, needs, pin, systems = case
    write_project(project, 13, needs, pin)
    make(project / "wheels")

    problems = resolve(project, systems)

    assert [problem.partition(":")[0] for problem in problems] == [
        f"Python 3.{python} on {system}" for python, system in missing
    ]
    assert all("part" in problem for problem in problems)


@pytest.mark.parametrize(("needs", "missing"), [(">=1", []), (">=2", ["Python 3.10"])])
def test_a_python_before_the_pinned_versions_takes_what_is_in_range(
    project: Path, needs: str, missing: list[str]
) -> None:
    write_project(project, 10, needs, "2")
    two(project / "wheels")

    assert [problem[:11] for problem in resolve(project, [LINUX])] == missing


def test_the_oldest_python_is_the_one_that_the_project_promises(tmp_path: Path) -> None:
    for oldest in range(8, 15):
        write_project(tmp_path, oldest, ">=1", "1")
        assert promised_pythons(tmp_path) == [*range(oldest, 15)]
