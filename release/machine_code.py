"""Puts compiled code into the wheel, so that no one who installs it on Linux, or on a Mac of
Apple's processors, waits for a compiler.

What the parts of a first start call is compiled for this processor, in order to learn the types
that it is called with, and then by these types, without running, for every other level. So any
processor of x86 compiles for all of them, and for Linux on Arm; a Mac compiles for Macs. It is
compiled by the Python that runs this, for that version of Python. Run as a program this file does
one of both.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import pickle
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

PACKAGES = ("accel", "repo_index")
COMPILED = Path("accel", "native", "compiled")
PLATFORM = "Supported-Platform: "
"""The field of a wheel's metadata for what it was compiled for."""
ARM_TRIPLE = "aarch64-unknown-linux-gnu"
"""As LLVM calls a process there, which Numba compares."""
DATE = (2020, 1, 1, 0, 0, 0)
"""All files are of it, as ``distributions.EPOCH`` says."""
VOCABULARIES = (1 << 15, 1 << 17)
"""One with ids of 16 bits, and one with more."""


def add_machine_code(wheel: Path, cache: Path, levels: list[str] | None = None) -> None:
    """Compile what is in a wheel for some levels, by default for all, and add it to the wheel.

    kept: a folder in which archives stay for the next time; those of the same source that other
    versions of Python left there come into the wheel, too.
    """
    with tempfile.TemporaryDirectory() as scratch:
        unpacked = Path(scratch)
        with zipfile.ZipFile(wheel) as files:
            files.extractall(unpacked)
        of_source = cache / _digest(unpacked)
        of_source.mkdir(parents=True, exist_ok=True)
        compile_levels(unpacked, of_source, levels)
        shutil.rmtree(unpacked / COMPILED, ignore_errors=True)
        shutil.copytree(of_source, unpacked / COMPILED)
        _describe(unpacked)
        _write_wheel(unpacked, wheel)


def compile_levels(installation: Path, packed: Path, levels: list[str] | None) -> None:
    """Compile what an installation has for some levels, by default for all, where it was not."""
    from accel.native.levels import ARM_LEVELS, LEVELS, level_here
    from accel.native.machine_code import MADE_FOR, pack
    from operating_system.machine import cores

    here = level_here()
    assert here is not None, "this needs Linux with AVX2, or a processor of Arm with dot products"
    usual = ARM_LEVELS if here in ARM_LEVELS else LEVELS
    missing = [
        name
        for name in (usual if levels is None else levels)
        if not [*packed.glob(f"{name}.{MADE_FOR}.*")]
    ]
    with tempfile.TemporaryDirectory() as scratch:
        signatures = Path(scratch, "signatures")

        def compile_level(name: str) -> None:
            print(f"compiling for {name}", flush=True)
            cache = Path(scratch, name)
            settings = LEVELS[name].settings | {"NUMBA_CACHE_DIR": str(cache)}
            plain = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA")}
            work = "record" if name == here else "compile"
            command = [sys.executable, "-I", __file__, work, str(installation), str(signatures)]
            subprocess.run(command, env=plain | settings, check=True)
            if name in missing:
                libraries = metadata.distribution("numba").locate_file("")
                hide_folders(cache, [str(installation), str(libraries).rstrip("/")])
                print(pack(cache, packed, name, installation), flush=True)

        if missing:
            compile_level(here)
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(compile_level, (name for name in missing if name != here)))


def hide_folders(cache: Path, folders: Sequence[str]) -> None:
    """Take the names of this machine's folders out of compiled code: Numba keeps listings of source
    for people there. What stands for a name is as long, so that all else stays where it is."""
    for file in cache.rglob("*.nb[ci]"):
        data = file.read_bytes()
        for folder in map(str.encode, folders):
            data = data.replace(folder, b"/".ljust(len(folder), b"-"))
        file.write_bytes(data)


def record(file: Path) -> None:
    """Compile what a first start calls, by running it, and write the types it is called with."""
    from accel.decoding import precompile
    from accel.files.model_options import KvType

    for stage in precompile.SECONDS:
        for kv_type in get_args(KvType):
            sys.argv = ["accel.decoding.precompile", stage, kv_type]
            precompile.main()
    warming: Any = importlib.import_module("repo_index.warming")
    for stage in warming.SECONDS:
        for vocabulary_size in VOCABULARIES:
            sys.argv = ["repo_index.warming", stage, str(vocabulary_size)]
            warming.main()
    files = {}
    for module, name, function in _functions():
        if kinds := [key[0] for key in function._cache._cache_file._load_index()]:
            files[module, name] = kinds
    indexes = len([*Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*.nbi")])
    assert indexes == len(files), f"{indexes} functions are compiled, {len(files)} have a name"
    file.write_bytes(pickle.dumps(files))


def compile_by_types(file: Path) -> None:
    """Compile without running what ``record`` ran."""
    from accel.native.levels import ARM_LEVELS, level_here, level_in_use

    if level_in_use() in ARM_LEVELS and level_here() not in ARM_LEVELS:
        answer_as_arm()
    from numba import types

    from accel.decoding import precompile

    for (module, name), signatures in pickle.loads(file.read_bytes()).items():
        function = getattr(importlib.import_module(module), name)
        for kinds in signatures:
            # Constants follow from the level.
            if not any(isinstance(kind, types.Literal) for kind in kinds):
                function.compile(kinds)
    precompile.compile_products()


def answer_as_arm() -> None:
    """Have this process, on x86, compile for Linux on Arm. Numba must not be loaded yet.

    LLVM writes for every processor, and Numba's code for a type is the same on both: what it asks
    about this process is answered for another. What it compiles is kept, and cannot be called.
    """
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(ARM_TRIPLE)
    llvm.get_process_triple = llvm.get_default_triple = lambda: ARM_TRIPLE
    llvm.Target.from_default_triple = lambda: target
    platform.machine = lambda: "aarch64"


def _functions() -> Iterator[tuple[str, str, Any]]:
    """Functions that Numba keeps compiled: module, name, and the function."""
    from numba.core.caching import FunctionCache

    for module in list(sys.modules.values()):
        if module.__name__.split(".")[0] in PACKAGES:
            for name, value in vars(module).items():
                is_kept = isinstance(getattr(value, "_cache", None), FunctionCache)
                if is_kept and value.__module__ == module.__name__:
                    yield module.__name__, name, value


def _digest(installation: Path) -> str:
    """Return a hash of what is compiled and by what, the same for all versions of Python."""
    digest = hashlib.sha256(metadata.version("numba").encode())
    for package in PACKAGES:
        for file in sorted((installation / package).rglob("*.py")):
            digest.update(file.relative_to(installation).as_posix().encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def held_code(names: Iterable[str]) -> dict[tuple[str, str, str], list[str]]:
    """Return the code that archives hold, by their names: by system and machine, as environment
    markers call them, and level, the versions of Python."""
    from accel.native.levels import ARM_LEVELS

    versions: dict[tuple[str, str, str], list[str]] = {}
    for name in sorted(names):
        level, system, python = name.split(".")[:3]
        arm = "arm64" if system == "darwin" else "aarch64"
        machine = arm if level in ARM_LEVELS else "x86_64"
        versions.setdefault((system, machine, level), []).append(f"{python[2]}.{python[3:]}")
    return versions


def told_code(wheel: Path) -> list[str]:
    """Return the code that a wheel says it holds. Raises SystemExit where it holds another."""
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        (metadata_name,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        lines = files.read(metadata_name).decode().splitlines()
    platforms = [line for line in lines if line.startswith(PLATFORM)]
    held = [Path(name).name for name in names if Path(name).parent == COMPILED]
    if platforms != _platform_lines(held_code(held)):
        raise SystemExit(f"release: {wheel.name} says {platforms or 'nothing'}, and holds {held}")
    return [line.removeprefix(PLATFORM) for line in platforms]


def _platform_lines(held: dict[tuple[str, str, str], list[str]]) -> list[str]:
    return [
        f"{PLATFORM}{system}-{machine} with {level}, Python {', '.join(pythons)}"
        for (system, machine, level), pythons in held.items()
    ]


def _describe(unpacked: Path) -> None:
    """Have a wheel's metadata say which code it holds, and ask, where it holds some, for the Numba
    that reads it."""
    (file,) = unpacked.glob("*.dist-info/METADATA")
    held = held_code(archive.name for archive in (unpacked / COMPILED).glob("*.tar.xz"))
    lines = [line for line in file.read_text("utf-8").splitlines() if not line.startswith(PLATFORM)]
    numba_lines = [n for n, line in enumerate(lines) if line.startswith("Requires-Dist: numba")]
    required = [lines[numba_lines[-1]].partition(";")[0]]
    if machines := dict.fromkeys((system, machine) for system, machine, _ in held):
        here = " or ".join(_at(*names, "==", "and") for names in machines)
        elsewhere = " and ".join(_at(*names, "!=", "or") for names in machines)
        pinned = f"Requires-Dist: numba=={metadata.version('numba')}"
        required = [f"{pinned}; {here}", f"{required[0]}; {elsewhere}"]
    lines[numba_lines[0] : numba_lines[-1] + 1] = [*required, *_platform_lines(held)]
    file.write_text("\n".join(lines) + "\n", "utf-8")


def _at(system: str, machine: str, compared: str, joined: str) -> str:
    return f'(sys_platform {compared} "{system}" {joined} platform_machine {compared} "{machine}")'


def _write_wheel(unpacked: Path, target: Path) -> None:
    """Pack a wheel, with the hash of each file in its record."""
    (listed,) = unpacked.glob("*.dist-info/RECORD")
    files = sorted(file for file in unpacked.rglob("*") if file.is_file() and file != listed)
    lines = []
    for file in files:
        digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
        name, size = file.relative_to(unpacked).as_posix(), file.stat().st_size
        lines.append(f"{name},sha256={digest.decode().rstrip('=')},{size}")
    lines.append(f"{listed.relative_to(unpacked).as_posix()},,")
    listed.write_text("\n".join(lines) + "\n", "utf-8")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in [*files, listed]:
            entry = zipfile.ZipInfo(file.relative_to(unpacked).as_posix(), DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, file.read_bytes())


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    {"record": record, "compile": compile_by_types}[sys.argv[1]](Path(sys.argv[3]))
