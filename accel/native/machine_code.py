"""The folder of compiled code: in the user's cache folder, never in the installation. Loads no
compiler.

An installation may come with code that was compiled elsewhere, in one archive for each level of
instructions, system and version of Python, named LEVEL.SYSTEM.pyXY.HASH.tar.xz. The first process
that compiles unpacks it; then it counts as compiled on this machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sys
from pathlib import Path, PurePosixPath

from accel.native.levels import level_in_use
from operating_system.file_lock import LockFile
from operating_system.files import replace_file
from operating_system.folders import cache_folder
from operating_system.system import system_name

LONGEST_S = 120.0
"""Longest time of unpacking, in seconds."""
CACHE_DIR = "NUMBA_CACHE_DIR"
INSTALLATION = Path(__file__).parents[2]
"""The folder that the packages lie in."""
PACKED = Path(__file__).with_name("compiled")
MADE_FOR = f"{system_name()}.py{sys.version_info[0]}{sys.version_info[1]}"
"""System and Python of the code, beside its level. A level of Arm is of several systems, whose code
differs."""


def code_folder() -> Path:
    """Return the folder of compiled code."""
    folder = os.environ.get(CACHE_DIR)
    return Path(folder) if folder else cache_folder() / "machine-code"


def use_cache() -> None:
    """Have Numba keep compiled code there, and what came with the installation, too. Numba must not
    be loaded yet."""
    folder = code_folder()
    os.environ[CACHE_DIR] = str(folder)
    # On a disk that is full or cannot be written it is compiled for this process alone.
    with contextlib.suppress(OSError):
        unpack(folder)


def packed_code(packed: Path = PACKED) -> Path | None:
    """Return the archive of compiled code that fits this process, where the installation has
    one."""
    level = level_in_use()
    return next(packed.glob(f"{level}.{MADE_FOR}.*.tar.xz"), None) if level else None


def unpack(cache: Path, packed: Path = PACKED, installation: Path = INSTALLATION) -> None:
    """Unpack the archive that fits this process into a cache, once. Raises OSError."""
    if (archive := packed_code(packed)) is None:
        return
    name = hashlib.sha256(str(installation).encode()).hexdigest()[:16]
    done = cache / f"{name}.{archive.name.removesuffix('.tar.xz')}"
    if done.exists():
        return
    cache.mkdir(parents=True, exist_ok=True)
    lock = LockFile(cache / "unpacking.lock")
    lock.acquire(LONGEST_S)
    try:
        if not done.exists():
            _unpack_all(archive, cache, installation)
            done.touch()
    finally:
        lock.release()


def _unpack_all(archive: Path, cache: Path, installation: Path) -> None:
    import tarfile

    try:
        with tarfile.open(archive) as files:
            for each in files:
                path, stream = installation / each.name, files.extractfile(each)
                target = cache / folder_of(path.parent) / path.name
                target.parent.mkdir(exist_ok=True)
                unfinished = target.with_suffix(".unfinished")
                assert stream is not None, "files alone"
                unfinished.write_bytes(stream.read())
                replace_file(unfinished, target)
    except tarfile.TarError as error:
        raise OSError(f"{archive} is damaged ({error}); install again") from error


def pack(cache: Path, target: Path, level: str, installation: Path = INSTALLATION) -> Path:
    """Pack the compiled code of an installation in a cache into an archive in a folder."""
    import tarfile

    target.mkdir(parents=True, exist_ok=True)
    unnamed = target / f"{level}.tar.xz"
    folders = {folder_of(each.parent): each.parent for each in installation.glob("*/**/*.py")}
    with tarfile.open(unnamed, "w:xz", preset=9) as files:
        for name, package in sorted(folders.items()):
            # An index is written after the files that it names.
            for file in sorted((cache / name).glob("*.nb[ci]")):
                path = PurePosixPath(package.relative_to(installation).as_posix()) / file.name
                info = tarfile.TarInfo(str(path))
                info.size, info.mode = file.stat().st_size, 0o644
                with file.open("rb") as stream:
                    files.addfile(info, stream)
    digest = hashlib.sha256(unnamed.read_bytes()).hexdigest()[:16]
    return Path(shutil.move(unnamed, target / f"{level}.{MADE_FOR}.{digest}.tar.xz"))


def folder_of(package: Path) -> str:
    """Numba's name, in its cache, for a folder of modules."""
    return f"{package.name}_{hashlib.sha1(str(package).encode()).hexdigest()}"
