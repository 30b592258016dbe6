#!/usr/bin/env python3
"""Installs the pinned server that an editor's extension carries into an environment of its own.

Standard library alone, Python 3.10 or newer. Beside this file lie what ``pack.py`` made: our wheel,
``server.json`` and, where they are known, the hashes of everything that the wheel needs. No name of
ours is asked of a registry.

install.py install --folder FOLDER [--from FILE] [--by uv|venv|pipx] [--project CLONE]
install.py download FILE.zip     what an installation without a network needs, for this machine

An environment is made beside the former one and chosen by ``current.json`` once its server answers,
so that an upgrade that fails changes nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CURRENT = "current.json"
WINDOWS = os.name == "nt"
FOREIGN = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET", "PIP_USER")
"""What would lead an installation to another place than its own."""


class InstallationError(Exception):
    """What went wrong, and what to do."""


@dataclass(frozen=True)
class Package:
    """What is installed: the wheel, its version, and whether the pins are for this Python."""

    wheel: Path
    version: str
    is_pinned: bool

    @classmethod
    def beside_this_file(cls) -> Package:
        """Raises InstallationError."""
        try:
            told = json.loads((HERE / "server.json").read_text(encoding="utf-8"))
        except OSError:
            raise InstallationError("no server lies beside install.py; pack.py makes it") from None
        is_pinned = sys.version_info[:2] >= tuple(told["pinned_from"])
        return cls(HERE / told["wheel"], told["version"], is_pinned)

    def arguments(self, offline: Path | None, with_hashes: bool) -> list[list[str]]:
        """What pip is told, one call after the other: first what the server needs."""
        source = ["--no-index", "--find-links", str(offline)] if offline else []
        hashes = HERE / "requirements.txt"
        if with_hashes and self.is_pinned and hashes.is_file():
            needed = [*source, "--require-hashes", "--requirement", str(hashes)]
            return [needed, ["--no-index", "--no-deps", str(self.wheel)]]
        pins = ["--constraint", str(HERE / "constraints.txt")] if self.is_pinned else []
        return [[*source, *pins, str(self.wheel)]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 when the server answers, 1 when not."""
    parser = argparse.ArgumentParser(description="Installs Redraft's server for an editor.")
    commands = parser.add_subparsers(dest="command", required=True)
    install = commands.add_parser("install", help="make an environment and install the server")
    install.add_argument("--folder", type=Path, required=True, help="where environments lie")
    install.add_argument(
        "--from", type=Path, dest="offline", metavar="FILE",
        help="a file made by `install.py download`, or a folder of wheels: no network is used",
    )  # fmt: skip
    install.add_argument("--by", choices=list(WAYS), help="what makes it (default: what is found)")
    install.add_argument("--project", type=Path, help="a clone, in place of the wheel")
    download = commands.add_parser("download", help="fetch what an installation needs into a file")
    download.add_argument("file", type=Path)
    given = parser.parse_args(arguments)
    try:
        if given.command == "download":
            fetch(given.file)
        else:
            install_server(given.folder, given.offline, given.by, given.project)
    except (InstallationError, OSError) as error:
        print(f"\nRedraft's server was not installed: {error}", file=sys.stderr)
        return 1
    return 0


def install_server(
    folder: Path, offline: Path | None, by: str | None, project: Path | None
) -> None:
    """Make an environment, choose it when its server answers, and remove those before the last.

    Raises InstallationError.
    """
    way = by or found_way()
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    package = None if project else Package.beside_this_file()
    version = package.version if package else "clone"
    environment = Path(tempfile.mkdtemp(prefix=f"{version}-", dir=folder))
    try:
        with wheels_of(offline) as wheels:
            # pipx takes one package by name, and no file with hashes.
            with_hashes = way != "pipx"
            calls = (
                package.arguments(wheels, with_hashes) if package else of_project(project, wheels)
            )
            command = WAYS[way](environment, calls)
        say("asks the new server for its version")
        answer = run([str(command), "--version"], quiet=True).strip()
        if package and answer != f"redraft {version}":
            raise InstallationError(f"{command} says {answer!r} and not redraft {version}")
    except BaseException:
        shutil.rmtree(environment, ignore_errors=True)
        raise
    former = current(folder)
    told = {"command": str(command), "version": answer.split()[-1], "by": way}
    new = folder / f"{CURRENT}.{os.getpid()}"
    new.write_text(json.dumps(told), encoding="utf-8")
    new.replace(folder / CURRENT)
    # A server of the last one may still run.
    for other in folder.iterdir():
        if other.is_dir() and other != environment and other not in former.parents:
            shutil.rmtree(other, ignore_errors=True)
    say(f"done: {answer}")


def current(folder: Path) -> Path:
    """The command of the environment that is chosen; the folder itself where there is none."""
    try:
        told = json.loads((folder / CURRENT).read_text(encoding="utf-8"))
        return Path(told["command"])
    except (OSError, ValueError, KeyError):
        return folder


def of_project(project: Path | None, offline: Path | None) -> list[list[str]]:
    """What pip is told of a clone."""
    assert project is not None
    pins = project / "constraints.txt"
    if not pins.is_file():
        raise InstallationError(f"{project} is no clone of Redraft")
    source = ["--no-index", "--find-links", str(offline)] if offline else []
    return [[*source, "--constraint", str(pins), str(project)]]


# What makes an environment


def found_way() -> str:
    """What is found on this machine. Raises InstallationError."""
    if on_path("uv"):
        return "uv"
    if importlib.util.find_spec("venv") and importlib.util.find_spec("ensurepip"):
        return "venv"
    if on_path("pipx"):
        return "pipx"
    raise InstallationError("found neither uv nor pipx nor Python's venv; install one of them")


def by_uv(environment: Path, calls: list[list[str]]) -> Path:
    """Install by uv; the command of the server."""
    uv = on_path("uv")
    if not uv:
        raise InstallationError("uv is not on PATH")
    say("makes an environment by uv")
    run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(environment)])
    python = in_environment(environment, "python")
    for call in calls:
        say(f"installs {what_of(call)} by uv")
        run([uv, "pip", "install", "--python", str(python), *call])
    return in_environment(environment, "redraft")


def by_venv(environment: Path, calls: list[list[str]]) -> Path:
    """Install by Python's own venv and pip; the command of the server."""
    say("makes an environment by venv")
    run([sys.executable, "-I", "-m", "venv", "--clear", str(environment)])
    python = in_environment(environment, "python")
    for call in calls:
        say(f"installs {what_of(call)} by pip")
        run([str(python), "-I", "-m", "pip", "install", "--disable-pip-version-check", *call])
    return in_environment(environment, "redraft")


def by_pipx(environment: Path, calls: list[list[str]]) -> Path:
    """Install by pipx, into a home of its own; the command of the server."""
    pipx = on_path("pipx")
    if not pipx:
        raise InstallationError("pipx is not on PATH")
    own = {"HOME": "home", "BIN_DIR": "bin", "MAN_DIR": "man"}
    surroundings = {f"PIPX_{name}": str(environment / part) for name, part in own.items()}
    surroundings["PIPX_DEFAULT_PYTHON"] = sys.executable
    ((*options, package),) = calls
    say("installs the server and what it needs by pipx, with versions pinned, without hashes")
    given = " ".join(shlex.quote(one) for one in options)
    run([pipx, "install", *([f"--pip-args={given}"] if given else []), package], surroundings)
    return environment / "bin" / ("redraft.exe" if WINDOWS else "redraft")


WAYS: dict[str, Callable[[Path, list[list[str]]], Path]] = {
    "uv": by_uv,
    "venv": by_venv,
    "pipx": by_pipx,
}


def what_of(call: list[str]) -> str:
    """What a call of pip installs, for people."""
    return "what the server needs" if "--requirement" in call else "the server"


def in_environment(environment: Path, name: str) -> Path:
    """A command of an environment."""
    return environment / ("Scripts" if WINDOWS else "bin") / (f"{name}.exe" if WINDOWS else name)


def on_path(name: str) -> str | None:
    """A command on PATH. A relative entry would run what lies in the folder that is open."""
    entries = os.environ.get("PATH", "").split(os.pathsep)
    return shutil.which(name, path=os.pathsep.join(one for one in entries if os.path.isabs(one)))


# Without a network


@contextmanager
def wheels_of(offline: Path | None) -> Iterator[Path | None]:
    """The folder with the wheels of an installation without a network; None for one with it."""
    if offline is None or offline.is_dir():
        yield offline.absolute() if offline else None
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(offline) as archive:
                archive.extractall(folder)
        except zipfile.BadZipFile:
            raise InstallationError(f"{offline} is no file of `install.py download`") from None
        yield Path(folder)


def fetch(file: Path) -> None:
    """Fetch what the server needs on a machine like this one. Raises InstallationError."""
    package = Package.beside_this_file()
    with tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder) / "wheels"
        say("fetches what the server needs")
        pip = [sys.executable, "-I", "-m", "pip", "download", "--disable-pip-version-check"]
        needed = package.arguments(None, True)[0]
        run([*pip, "--dest", str(wheels), *needed])
        with zipfile.ZipFile(file, "w") as archive:
            for wheel in sorted(wheels.iterdir()):
                archive.write(wheel, wheel.name)
    say(f"done: {file}, {file.stat().st_size / 1e6:,.0f} MB")


def run(command: list[str], surroundings: dict[str, str] | None = None, quiet: bool = False) -> str:
    """Run a command where the folder that is open means nothing. Raises InstallationError."""
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    environment |= surroundings or {}
    with tempfile.TemporaryDirectory() as neutral:
        result = subprocess.run(
            command, cwd=neutral, env=environment, stdin=subprocess.DEVNULL, text=True, check=False,
            stdout=subprocess.PIPE if quiet else None,
        )  # fmt: skip
    if result.returncode != 0:
        raise InstallationError(f"{Path(command[0]).name} ended with {result.returncode}")
    return result.stdout or ""


def say(text: str) -> None:
    """Tell what is done."""
    print(f"redraft: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
