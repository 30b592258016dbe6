"""What marketplaces would refuse of an extension is found before."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest

from release.distributions import ROOT
from release.extension_manifest import extension_problems

Files = dict[str, bytes]
ICON = b"\x89PNG\r\n\x1a\n" + b"\0" * 8 + struct.pack(">II", 256, 256)


def packaging() -> Any:
    """The script that packs the extension, as a module."""
    file = ROOT / "editor-clients/vscode/scripts/package.py"
    spec = importlib.util.spec_from_file_location("package_of_the_extension", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "redraft-0.1.0-py3-none-any.whl"
    file.write_bytes(b"a wheel")
    return file


@pytest.fixture
def files(wheel: Path) -> Files:
    """A sound extension: the real manifest and page, and a small server."""
    script = packaging()
    package = script.package_json()
    about = {"wheel": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    return {
        "extension.vsixmanifest": script.vsix_manifest(package).encode(),
        "extension/package.json": json.dumps(package).encode(),
        "extension/README.md": script.readme().encode(),
        "extension/LICENSE.txt": b"Apache",
        "extension/dist/extension.js": b"",
        "extension/media/icon.png": ICON,
        "extension/server/server.json": json.dumps(about).encode(),
        f"extension/server/{wheel.name}": wheel.read_bytes(),
        "extension/server/requirements.txt": b"numba==1 --hash=sha256:00\n",
    }


def problems(files: Files, wheel: Path) -> list[str]:
    file = wheel.with_name("redraft.vsix")
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return extension_problems(file, wheel)


def with_package(files: Files, **changes: Any) -> Files:
    package = json.loads(files["extension/package.json"]) | changes
    return files | {"extension/package.json": json.dumps(package).encode()}


def test_ours_has_none(files: Files, wheel: Path) -> None:
    assert problems(files, wheel) == []
    icon = (ROOT / "editor-clients/vscode/media/icon.png").read_bytes()
    assert problems(files | {"extension/media/icon.png": icon}, wheel) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"version": "9.9.9"}, "the manifest's version is 0.1.0, the package's 9.9.9"),
        ({"publisher": "other"}, "the manifest's publisher is redraft, the package's other"),
        ({"main": "./dist/gone.js"}, "extension/dist/gone.js is missing"),
        ({"categories": ["Wizardry"]}, "Wizardry is no category"),
        ({"keywords": ["word"] * 31}, "more than 30 keywords"),
        ({"license": ""}, "the package names no license"),
        ({"enabledApiProposals": []}, "proposed interfaces are used, which no marketplace takes"),
    ],
)
def test_a_fault_of_the_package_is_found(
    changes: dict[str, Any], told: str, files: Files, wheel: Path
) -> None:
    assert problems(with_package(files, **changes), wheel) == [told]


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("README.md", b"![x](../media/x.png)", "the page leads to ../media/x.png"),
        ("media/icon.png", ICON[:16] + struct.pack(">I", 64), "the icon is no PNG of 128"),
        ("server/requirements.txt", b"numba==1\n", "what the server needs has no hashes"),
        (
            "server/requirements.txt",
            b"torch==2 --hash=sha256:00\n",
            "what the server needs holds torch",
        ),
    ],
)
def test_a_fault_of_a_file_is_found(
    name: str, content: bytes, told: str, files: Files, wheel: Path
) -> None:
    (found,) = problems(files | {f"extension/{name}": content}, wheel)
    assert found.startswith(told)


def test_another_server_is_found(files: Files, wheel: Path) -> None:
    assert problems(files | {f"extension/server/{wheel.name}": b"another"}, wheel) == [
        f"the server that it carries is not {wheel.name}",
        "the server that it carries is not the one of this release",
    ]
    wheel.write_bytes(b"a newer wheel")
    assert problems(files, wheel) == ["the server that it carries is not the one of this release"]
