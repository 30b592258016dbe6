"""Compiled code in a wheel: what is packed, recorded and asked for."""

from __future__ import annotations

import base64
import hashlib
import zipfile
from pathlib import Path

import numba
import pytest
from packaging.requirements import Requirement

from release.machine_code import add_machine_code

MACHINES = (
    *(("linux", machine, True) for machine in ("x86_64", "aarch64")),
    *(("linux", machine, False) for machine in ("riscv64", "ppc64le", "s390x", "armv7l", "i686")),
    *(("darwin", machine, False) for machine in ("arm64", "x86_64")),
    *(("win32", machine, False) for machine in ("AMD64", "ARM64", "x86")),
)
"""Systems, what they call their machine, and whether the wheel has code for it."""

METADATA = """Metadata-Version: 2.4
Name: redraft
Requires-Dist: filelock>=3.12
Requires-Dist: numba>=0.61
Provides-Extra: torch

# Redraft
"""


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
    (of_source / "avx2.py311.0.tar.xz").write_bytes(b"code")
    (kept / "of another source").mkdir()
    (kept / "of another source" / "amx.py311.0.tar.xz").touch()
    add_machine_code(wheel, kept, levels=[])
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        assert files.read("accel/native/compiled/avx2.py311.0.tar.xz") == b"code"
        listed = files.read("redraft-1.0.dist-info/RECORD").decode().splitlines()
        recorded = dict(line.rsplit(",", 2)[:2] for line in listed)
        for name in names[:-1]:
            digest = base64.urlsafe_b64encode(hashlib.sha256(files.read(name)).digest())
            assert recorded[name] == f"sha256={digest.decode().rstrip('=')}"
    assert sorted(names) == sorted(recorded)
    assert not any("amx" in name for name in names)


def test_on_linux_it_asks_for_the_numba_that_compiled_it(wheel: Path, tmp_path: Path) -> None:
    """And says so once, however often code is added."""
    for _ in range(2):
        add_machine_code(wheel, tmp_path / "kept", levels=[])
    with zipfile.ZipFile(wheel) as files:
        text = files.read("redraft-1.0.dist-info/METADATA").decode()
    pinned, other = (line for line in text.splitlines() if "numba" in line)
    with_code, without = (Requirement(one.partition(": ")[2]) for one in (pinned, other))
    assert (str(with_code.specifier), str(without.specifier)) == (
        f"=={numba.__version__}",
        ">=0.61",
    )
    for system, machine, has_code in MACHINES:
        at = {"sys_platform": system, "platform_machine": machine}
        assert with_code.marker is not None
        assert without.marker is not None
        assert with_code.marker.evaluate(at) == has_code, at
        assert without.marker.evaluate(at) != has_code, at
    assert text.endswith("# Redraft\n")
