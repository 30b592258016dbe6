"""Checks of a ``.vsix``: the rules of both marketplaces of extensions, and what ours has to
hold."""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

CATEGORIES = {
    *("AI", "Azure", "Chat", "Data Science", "Debuggers", "Education", "Extension Packs"),
    *("Formatters", "Keymaps", "Language Packs", "Linters", "Machine Learning", "Notebooks"),
    *("Other", "Programming Languages", "SCM Providers", "Snippets", "Testing", "Themes"),
    "Visualization",
}
MOST_KEYWORDS = 30
LEAST_ICON = 128
"""Pixels of its width."""
_SPACE = "{http://schemas.microsoft.com/developer/vsx-schema/2011}"
_LINK = re.compile(r"\]\(([^)#][^)]*)\)")


def extension_problems(extension: Path, wheel: Path) -> list[str]:
    """Yield what is wrong with an extension that carries this wheel."""
    with zipfile.ZipFile(extension) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    package = json.loads(files["extension/package.json"])
    return [*_manifest(files, package), *_page(files, package), *_server(files, wheel)]


def _manifest(files: dict[str, bytes], package: dict[str, Any]) -> Iterator[str]:
    root = ElementTree.fromstring(files["extension.vsixmanifest"])
    identity = root.find(f"{_SPACE}Metadata/{_SPACE}Identity")
    assert identity is not None
    values = {"name": identity.get("Id")}
    values |= {name: identity.get(name.capitalize()) for name in ("version", "publisher")}
    yield from (
        f"the manifest's {name} is {value}, the package's {package.get(name)}"
        for name, value in values.items()
        if value != package.get(name)
    )
    paths = [asset.get("Path") or "" for asset in root.iter(f"{_SPACE}Asset")]
    paths += [f"extension/{package['main'].removeprefix('./')}", f"extension/{package['icon']}"]
    yield from (f"{path} is missing" for path in paths if path not in files)


def _page(files: dict[str, bytes], package: dict[str, Any]) -> Iterator[str]:
    if unknown := set(package["categories"]) - CATEGORIES:
        yield f"{min(unknown)} is no category"
    if len(package.get("keywords", ())) > MOST_KEYWORDS:
        yield f"more than {MOST_KEYWORDS} keywords"
    yield from (
        f"the package names no {name}"
        for name in ("displayName", "description", "license")
        if not package.get(name)
    )
    if "enabledApiProposals" in package:
        yield "proposed interfaces are used, which no marketplace takes"
    icon = files.get(f"extension/{package['icon']}", b"")
    if icon[:8] != b"\x89PNG\r\n\x1a\n" or struct.unpack(">I", icon[16:20])[0] < LEAST_ICON:
        yield f"the icon is no PNG of {LEAST_ICON} pixels or more"
    links = _LINK.findall(files["extension/README.md"].decode("utf-8"))
    yield from (
        f"the page leads to {link}, which is not there"
        for link in links
        if not link.startswith("https:") and f"extension/{link}" not in files
    )


def _server(files: dict[str, bytes], wheel: Path) -> Iterator[str]:
    server = json.loads(files["extension/server/server.json"])
    carried = files.get(f"extension/server/{server['wheel']}", b"")
    if hashlib.sha256(carried).hexdigest() != server["sha256"]:
        yield f"the server that it carries is not {server['wheel']}"
    if carried != wheel.read_bytes():
        yield "the server that it carries is not the one of this release"
    requirements = files.get("extension/server/requirements.txt", b"").decode("utf-8")
    if "--hash=sha256:" not in requirements:
        yield "what the server needs has no hashes"
    if re.search(r"^(torch|transformers)==", requirements, re.MULTILINE):
        yield "what the server needs holds torch"
