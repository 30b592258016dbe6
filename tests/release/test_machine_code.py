"""Compiled code in a wheel: what is packed, recorded and asked for."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import numba
import pytest
from packaging.metadata import parse_email
from packaging.requirements import Requirement
from text_cases import data_beside

from release.machine_code import add_machine_code, told_code

DATA = data_beside(__file__)

MACHINES = (
    *(("linux", machine) for machine in ("x86_64", "aarch64", "riscv64", "ppc64le", "s390x")),
    *(("linux", machine) for machine in ("armv7l", "i686")),
    *(("darwin", machine) for machine in ("arm64", "x86_64")),
    *(("win32", machine) for machine in ("AMD64", "ARM64", "x86")),
)
"""Systems, and what they call their machine."""

HELD: dict[str, tuple[list[str], set[tuple[str, str]], list[str]]] = {
    "nothing": ([], set(), []),
    "one machine's": (
        ["avx2.linux.py311"],
        {("linux", "x86_64")},
        ["linux-x86_64 with avx2, Python 3.11"],
    ),
    "Linux": (
        ["avx2.linux.py310", "avx2.linux.py314", "neon-i8mm.linux.py310"],
        {("linux", "x86_64"), ("linux", "aarch64")},
        [
            "linux-x86_64 with avx2, Python 3.10, 3.14",
            "linux-aarch64 with neon-i8mm, Python 3.10",
        ],
    ),
    "a Mac's": (
        ["neon-dotprod.darwin.py313"],
        {("darwin", "arm64")},
        ["darwin-arm64 with neon-dotprod, Python 3.13"],
    ),
    "all": (
        ["avx512-vnni.linux.py312", "neon-dotprod.darwin.py312", "neon-dotprod.linux.py312"],
        {("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")},
        [
            "linux-x86_64 with avx512-vnni, Python 3.12",
            "darwin-arm64 with neon-dotprod, Python 3.12",
            "linux-aarch64 with neon-dotprod, Python 3.12",
        ],
    ),
}
"""What lies in a wheel, for which machines that is, and what the wheel says of it."""

METADATA = DATA["METADATA"]


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "redraft-1.0-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("accel/module.py", "numbers = [1, 2]\n")
        made.writestr("redraft-1.0.dist-info/METADATA", METADATA)
        made.writestr("redraft-1.0.dist-info/RECORD", "accel/module.py,sha256=old,1\n")
    return file


def test_what_was_compiled_of_this_source_comes_into_the_wheel(wheel: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    add_machine_code(wheel, kept, levels=[])
    (of_source,) = kept.iterdir()
    (of_source / "avx2.linux.py311.0.tar.xz").write_bytes(b"code")
    (kept / "of another source").mkdir()
    (kept / "of another source" / "amx.linux.py311.0.tar.xz").touch()
    add_machine_code(wheel, kept, levels=[])
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        assert files.read("accel/native/compiled/avx2.linux.py311.0.tar.xz") == b"code"
        listed = files.read("redraft-1.0.dist-info/RECORD").decode().splitlines()
        recorded = dict(line.rsplit(",", 2)[:2] for line in listed)
        for name in names[:-1]:
            digest = base64.urlsafe_b64encode(hashlib.sha256(files.read(name)).digest())
            assert recorded[name] == f"sha256={digest.decode().rstrip('=')}"
    assert sorted(names) == sorted(recorded)
    assert not any("amx" in name for name in names)


@pytest.mark.parametrize("held", HELD)
def test_it_says_what_it_holds_and_asks_there_for_the_numba_that_compiled_it(
    held: str, wheel: Path, tmp_path: Path
) -> None:
    """And says so once, however often code is added."""
    names, places, told = HELD[held]
    add_machine_code(wheel, tmp_path / "kept", levels=[])
    (of_source,) = (tmp_path / "kept").iterdir()
    for name in names:
        (of_source / f"{name}.0123456789abcdef.tar.xz").write_bytes(b"code")
    for _ in range(2):
        add_machine_code(wheel, tmp_path / "kept", levels=[])
    assert told_code(wheel) == told
    with zipfile.ZipFile(wheel) as files:
        text = files.read("redraft-1.0.dist-info/METADATA").decode()
    about, unknown = parse_email(text)
    assert not unknown
    assert about.get("supported_platforms", []) == told
    asked = [Requirement(one) for one in about["requires_dist"] if "numba" in one]
    for system, machine in MACHINES:
        at = {"sys_platform": system, "platform_machine": machine}
        (found,) = [one for one in asked if one.marker is None or one.marker.evaluate(at)]
        has_code = (system, machine) in places
        assert str(found.specifier) == (f"=={numba.__version__}" if has_code else ">=0.61"), at
    assert text.endswith("# Redraft\n")


def test_a_wheel_that_holds_other_code_than_it_says_is_refused(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as files:
        files.writestr("accel/native/compiled/avx2.linux.py311.0.tar.xz", b"code")
    with pytest.raises(SystemExit, match=r"says nothing, and holds .*avx2"):
        told_code(wheel)
