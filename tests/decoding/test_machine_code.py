"""Levels of instructions, and code that an installation brings for them."""

from __future__ import annotations

import platform
import subprocess
import sys
import tarfile
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from numba.core.caching import UserProvidedCacheLocator
from text_cases import data_beside

from accel.native.levels import LEVELS, X86_LEVELS, level_here, level_in_use
from accel.native.machine_code import MADE_FOR, folder_of, pack, packed_code, unpack
from accel.native.processor import processor

DATA = data_beside(__file__)

PROCESSORS = DATA["PROCESSORS"]
"""The level of each, and what it has besides what Haswell has."""

ARM_PROCESSORS = DATA["ARM_PROCESSORS"]
"""Processors of Arm by name, and the features beside those that all with 64 bits have."""

on_linux = pytest.mark.skipif(
    sys.platform != "linux" or level_here() is None, reason="this processor has no level"
)
on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="another family")


@pytest.mark.skipif(sys.platform != "linux", reason="the file is Linux's")
@pytest.mark.parametrize("name", ARM_PROCESSORS)
def test_a_processor_of_arm_has_a_level(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level, features = ARM_PROCESSORS[name]
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\nFeatures\t: fp asimd evtstrm crc32 cpuid {features}\n")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert level_here(processor(file)) == level


@pytest.mark.parametrize("machine", ["aarch64", "riscv64", "armv7l"])
def test_an_emulated_processor_has_no_level_of_its_hosts(machine: str) -> None:
    """QEMU shows the file of the system that it runs on."""
    flags = " ".join(LEVELS["avx512-vnni"].flags)
    assert level_here(f"{machine}\nflags\t\t: {flags}") is None
    assert level_here(f"x86_64\nflags\t\t: {flags}") == "avx512-vnni"


@on_linux
@on_x86
@pytest.mark.parametrize("name", PROCESSORS)
def test_a_processor_has_the_fastest_level_of_which_it_has_all(name: str, tmp_path: Path) -> None:
    level, flags = PROCESSORS[name]
    common = "" if name == "Sandy Bridge" else PROCESSORS["Haswell"][1]
    file = tmp_path / "cpuinfo"
    file.write_text(
        f"processor\t: 0\nflags\t\t: fpu {common} {flags}\n\nprocessor\t: 1\nflags\t\t: fpu\n"
    )
    assert level_here(processor(file)) == level
    assert level_here(processor(tmp_path / "none")) is None


@on_linux
@on_x86
def test_linux_and_llvm_mean_the_same_by_their_names() -> None:
    """Both find the features of this processor's level."""
    here = {name for name, has in llvm.get_host_cpu_features().items() if has}
    names = list(X86_LEVELS)
    chosen = level_here()
    assert chosen is not None
    wider = [
        name for name in names[names.index(chosen) :] if name != "avx-vnni" or "avxvnni" in here
    ]
    for name in wider:
        assert {feature[1:] for feature in LEVELS[name].features.split(",")} <= here, name


@on_linux
def test_a_process_of_ours_chooses_a_level_and_the_users_choice_stands() -> None:
    assert level_in_use() == level_here(), "the tests are held to it, too"


def test_what_is_packed_is_unpacked_where_numba_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, archives, target = (tmp_path / name for name in ("cache", "archives", "target"))
    made, installed = tmp_path / "made", tmp_path / "installed"
    for root in (made, installed):
        (root / "accel" / "inner").mkdir(parents=True)
        for module in ("accel/outer.py", "accel/inner/module.py"):
            (root / module).touch()
    for package, name in (("accel", "outer.f.1.nbc"), ("accel/inner", "module.g.nbi")):
        folder = cache / folder_of(made / package)
        folder.mkdir(parents=True)
        (folder / name).write_text(name)
    (cache / folder_of(made / "accel") / "compiled.lock").touch()
    archive = pack(cache, archives, "avx2", made)
    for name, setting in LEVELS["avx2"].settings.items():
        monkeypatch.setenv(name, setting)
    assert packed_code(archives) == archive
    unpack(target, archives, installed)
    actual = {file.read_text(): file for file in target.rglob("*.nb[ci]")}
    assert set(actual) == {"outer.f.1.nbc", "module.g.nbi"}
    for name, module in (
        ("outer.f.1.nbc", "accel/outer.py"),
        ("module.g.nbi", "accel/inner/module.py"),
    ):
        subpath = UserProvidedCacheLocator.get_suitable_cache_subpath(str(installed / module))
        assert actual[name] == target / subpath / name

    actual["module.g.nbi"].write_text("compiled here since")
    unpack(target, archives, installed)
    assert actual["module.g.nbi"].read_text() == "compiled here since"
    archive.rename(archive.with_name(archive.name.replace(".tar", "0.tar")))
    unpack(target, archives, installed)
    assert actual["module.g.nbi"].read_text() == "module.g.nbi", "another version brings its own"


def test_another_level_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "avx2.py311.0.tar.xz"
    with tarfile.open(archive, "w:xz"):
        pass
    for name, setting in LEVELS["avx512-vnni"].settings.items():
        monkeypatch.setenv(name, setting)
    unpack(tmp_path / "cache", tmp_path)
    assert not (tmp_path / "cache").exists()


def test_a_library_in_a_process_of_others_keeps_its_code_in_the_users_folder(
    tmp_path: Path,
) -> None:
    """And leaves that of others where it would be."""
    program = (
        "from accel.planning import acceptance_rate\n"
        "from numba import njit\n"
        "from numba.core import config\n"
        "from accel.drafting.copy.kernels import draft_in\n"
        "print(draft_in._cache.cache_path)\n"
        "print(config.CACHE_DIR == '')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"XDG_CACHE_HOME": str(tmp_path), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    position, is_untouched = done.stdout.split()
    assert Path(position).is_relative_to(tmp_path / "redraft" / "machine-code")
    assert is_untouched == "True"


@pytest.mark.parametrize("level", LEVELS)
def test_code_of_another_system_or_python_is_passed_over(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Mac and a Linux machine may have the same level."""
    for name, setting in LEVELS[level].settings.items():
        monkeypatch.setenv(name, setting)
    others = [f"{level}.{system}.py311.0" for system in ("linux", "darwin", "win32")]
    others += [f"{other}.{MADE_FOR}.0" for other in LEVELS if other != level]
    for other in others:
        if not other.startswith(f"{level}.{MADE_FOR}."):
            (tmp_path / f"{other}.tar.xz").touch()
    assert packed_code(tmp_path) is None
    own = tmp_path / f"{level}.{MADE_FOR}.0.tar.xz"
    own.touch()
    assert packed_code(tmp_path) == own
