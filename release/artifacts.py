"""``python -m release build FOLDER``: everything that is released of one version."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from pathlib import Path

from accel.native.levels import level_here
from release.bill_of_materials import bill_of_materials
from release.distributions import (
    EPOCH,
    ROOT,
    build_sdist,
    build_wheel,
    constant,
    without_local_links,
)
from release.machine_code import add_machine_code, told_code

CLIENTS = ROOT / "editor-clients"
SUMS = "SHA256SUMS"


def build(folder: Path, *, with_extension: bool = True, levels: list[str] | None = None) -> None:
    """Build into an empty or former folder of a release. The extension needs npm. levels: of
    instructions, for which the wheel brings compiled code; by default all that this machine
    compiles for."""
    folder.mkdir(parents=True, exist_ok=True)
    version = str(constant("lsp_server/shared/version.py", "VERSION"))
    wheel, _ = build_wheel(folder), build_sdist(folder)
    if level_here() is not None and levels != []:
        add_machine_code(wheel, ROOT / "build" / "machine-code", levels)
    with tempfile.TemporaryDirectory() as scratch:
        server = Path(scratch) / "server"
        pack_server(server, wheel)
        write_neovim_tree(folder / f"redraft.nvim-{version}.tar.gz", version, server)
        if with_extension:
            build_extension(folder / f"redraft-{version}.vsix", wheel)
        notes = release_notes((ROOT / "CHANGELOG.md").read_text("utf-8"), version)
        (folder / f"redraft-{version}-notes.md").write_text(notes, "utf-8")
        site_packages = install_alone(Path(scratch) / "environment", wheel)
        lock = json.loads((CLIENTS / "vscode/package-lock.json").read_text("utf-8"))
        requirements = (server / "requirements.txt").read_text("utf-8")
        bill = bill_of_materials(site_packages, requirements, lock)
        (folder / f"redraft-{version}.cdx.json").write_text(bill, "utf-8")
    write_sums(folder)
    for file in sorted(folder.iterdir()):
        print(f"{file.stat().st_size:>12,}  {file.name}")
    for line in told_code(wheel):
        print(f"the wheel has code for {line}")


def pack_server(folder: Path, wheel: Path) -> None:
    """Write what editors' plug-ins carry: the wheel, its installer, and what it needs by hashes."""
    run(sys.executable, CLIENTS / "server/pack.py", folder, wheel)
    if not (folder / "requirements.txt").is_file():
        raise SystemExit("release: what the server needs has no hashes; uv gives them")


def build_extension(file: Path, wheel: Path) -> None:
    """One ``.vsix`` for both marketplaces."""
    run(CLIENTS / "vscode/build.sh", file, REDRAFT_WHEEL=str(wheel.resolve()))


def write_neovim_tree(file: Path, version: str, server: Path) -> None:
    """The plug-in as a tree of its own, as plug-in managers unpack it, with the server beside it
    and the entry for Mason's registry."""
    plugin = CLIENTS / "neovim"
    files = [path for path in plugin.rglob("*") if "server" not in path.relative_to(plugin).parts]
    entries = {
        str(path.relative_to(plugin)): path.read_bytes()
        for path in files
        if path.is_file() and path.name[0] != "." and path.name != "tags"
    }
    text = entries["README.md"].decode("utf-8")
    for picture in re.findall(r"\]\(\.\./(media/[^)]+)\)", text):
        entries[picture] = (CLIENTS / picture).read_bytes()
    text = without_local_links(text.replace("](../media/", "](media/"), "media/")
    entries["README.md"] = text.encode("utf-8")
    entries["LICENSE"] = (ROOT / "LICENSE").read_bytes()
    entries["mason/package.yaml"] = mason_package(version).encode("utf-8")
    for path in server.iterdir():
        if not path.name.startswith("."):
            entries[f"server/{path.name}"] = path.read_bytes()
    with (
        file.open("wb") as stream,
        gzip.GzipFile("", "wb", 9, stream, int(EPOCH)) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name in sorted(entries):
            info = tarfile.TarInfo(f"redraft.nvim-{version}/{name}")
            info.size, info.mtime, info.mode = len(entries[name]), int(EPOCH), 0o644
            archive.addfile(info, io.BytesIO(entries[name]))


def mason_package(version: str) -> str:
    """The server's entry in Mason's registry."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    (description,) = re.findall(r'^description = "(.*)"$', project, re.MULTILINE)
    return (
        "---\n"
        "name: redraft\n"
        f"description: {json.dumps(description)}\n"
        "licenses: [Apache-2.0]\n"
        "languages: []\n"
        "categories: [LSP]\n"
        "source:\n"
        f"  id: pkg:pypi/redraft@{version}\n"
        "bin:\n"
        "  redraft: pypi:redraft\n"
    )


def release_notes(changelog: str, version: str) -> str:
    """Return what the changelog says of a version, and of what came into it since it was named.

    Raises SystemExit where it says nothing.
    """
    _, *sections = re.split(r"^## ", changelog, flags=re.MULTILINE)
    texts = []
    for section in sections:
        title, _, text = section.partition("\n")
        if title == "Unreleased" or title.split()[0] == version:
            texts.append(text.strip())
    if not any(texts):
        raise SystemExit(f"release: CHANGELOG.md says nothing of {version}")
    return without_local_links(f"# Redraft {version}\n\n" + "\n\n".join(filter(None, texts)) + "\n")


def install_alone(folder: Path, wheel: Path) -> Path:
    """Install a wheel with what it needs, in the pinned versions; the packages' folder."""
    venv.create(folder, with_pip=True)
    run(
        *(folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--constraint", ROOT / "constraints.txt", wheel),
    )
    (site_packages,) = folder.glob("lib/python*/site-packages")
    return site_packages


def write_sums(folder: Path) -> None:
    """A line for each file, as ``sha256sum --check`` reads it."""
    (folder / SUMS).unlink(missing_ok=True)
    (folder / SUMS).write_text(
        "".join(f"{sha256(file)}  {file.name}\n" for file in sorted(folder.iterdir())), "utf-8"
    )


def sha256(file: Path) -> str:
    """Of a file's content, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def run(*command: object, **surroundings: str) -> None:
    """Run a command. Raises SystemExit where it fails."""
    words = [str(word) for word in command]
    environment = {**os.environ, "REDRAFT_UV": shutil.which("uv") or "", **surroundings}
    beside = Path(sys.executable).with_name("uv")
    if not environment["REDRAFT_UV"] and beside.is_file():
        environment["REDRAFT_UV"] = str(beside)
    if code := subprocess.run(words, check=False, env=environment).returncode:
        raise SystemExit(f"release: `{' '.join(words)}` ended with {code}")
