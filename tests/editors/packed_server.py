"""Packages of a server as extensions carry them, small enough to be installed many times."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import zipfile
from pathlib import Path

from installed import CLIENTS, Server

INSTALLER = CLIENTS / "server/install.py"
REWRITING = Path(__file__).with_name("rewritten_version.py")


class PackedServer:
    """A folder with ``install.py``, the wheel of a server, and the hashes of what it needs.

    What it needs lies in ``registry``, a folder that stands for one.
    """

    def __init__(self, folder: Path, *, version: str = "0.1.0", script: str | None = None) -> None:
        """``script``: what the command ``redraft`` runs in a shell but for ``--version``."""
        self.folder, self.registry, self.version = folder / "server", folder / "registry", version
        for one in (self.folder, self.registry):
            one.mkdir(parents=True)
        shutil.copy(INSTALLER, self.folder)
        needed = write_wheel(
            self.registry, "tiny-need", "1.0", {"tiny_need.py": "WORD = 'found'\n"}
        )
        said = f'[ "$1" = --version ] && echo "redraft {version}" && exit\n'
        command = f"#!/bin/sh\n{said}{script or 'exit 2'}\n"
        wheel = write_wheel(
            self.folder, "redraft", version,
            {f"redraft-{version}.data/scripts/redraft": command}, needs="tiny-need",
        )  # fmt: skip
        self.write_pins(hashlib.sha256(needed.read_bytes()).hexdigest())
        told = {"version": version, "protocol": 1, "wheel": wheel.name, "pinned_from": [3, 10]}
        told["model"] = "a small one (98 MB)"
        (self.folder / "server.json").write_text(json.dumps(told), encoding="utf-8")

    def write_pins(self, digest: str) -> None:
        """Pin what is needed by a hash."""
        pins = f"tiny-need==1.0 --hash=sha256:{digest}\n"
        (self.folder / "requirements.txt").write_text(pins, encoding="utf-8")
        (self.folder / "constraints.txt").write_text("tiny-need==1.0\n", encoding="utf-8")

    @property
    def surroundings(self) -> dict[str, str]:
        """Variables by which pip, pipx and uv ask the folder in place of a registry."""
        return {
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.registry),
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(self.registry),
            "UV_NO_CACHE": "1",
        }

    def put_into(self, vsix: Path, out: Path) -> Path:
        """The extension with this server in place of the real one."""
        with zipfile.ZipFile(vsix) as real, zipfile.ZipFile(out, "w") as made:
            for entry in real.infolist():
                if not entry.filename.startswith("extension/server/"):
                    made.writestr(entry, real.read(entry))
            for file in sorted(self.folder.iterdir()):
                made.write(file, f"extension/server/{file.name}")
        return out


def proxy_of(server: Server, version: str | None = None) -> str:
    """A script that is the tests' server, where asked with another version in its first answer."""
    if version is None:
        return f"exec '{server.command}' \"$@\""
    return f"exec '{sys.executable}' '{REWRITING}' {version} '{server.command}' \"$@\""


def write_wheel(
    folder: Path, name: str, version: str, files: dict[str, str], needs: str = ""
) -> Path:
    """A wheel with these files; scripts are executable."""
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    contents[f"{info}/RECORD"] = "".join(f"{one},,\n" for one in [*contents, f"{info}/RECORD"])
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for one, text in contents.items():
            entry = zipfile.ZipInfo(one)
            entry.external_attr = 0o100755 << 16  # a command must be executable
            archive.writestr(entry, text)
    return path
