"""The software bill of materials (CycloneDX 1.6): what comes with an installation and in the
extension, by version, licence and hash."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_REQUIRED = re.compile(r"^[A-Za-z0-9][\w.-]*")


def bill_of_materials(site_packages: Path, requirements: str, lock: dict[str, Any]) -> str:
    """The bill as JSON.

    site_packages: of an environment that holds Redraft and what it needs, and nothing else;
    requirements: the pinned ones, with the hashes of their files; lock: ``package-lock.json`` of
    the extension.
    """
    installed = {
        _name(distribution.name): distribution
        for distribution in metadata.distributions(path=[str(site_packages)])
    }
    own = installed["redraft"]
    needed = _reached(
        "redraft", {name: _needs(distribution) for name, distribution in installed.items()}
    )
    hashes = _hashes(requirements)
    python = [_python_component(installed[name], hashes.get(name, [])) for name in needed]
    packages = [_npm_component(name, lock["packages"][path]) for name, path in bundled(lock)]
    components = [*python, *packages]
    bill = {
        "$schema": SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**_python_component(own, []), "type": "application"}},
        "components": components,
        "dependencies": [
            {"ref": _purl("pypi", "redraft", own.version),
             "dependsOn": [each["bom-ref"] for each in components]},
        ],
    }  # fmt: skip
    return json.dumps(bill, indent=1) + "\n"


def _name(written: str) -> str:
    return re.sub(r"[-_.]+", "-", written).lower()


def _needs(distribution: metadata.Distribution) -> set[str]:
    """Return what a distribution may need, on any system, without its extras."""
    lines = [line for line in distribution.requires or [] if "extra ==" not in line]
    return {_name(match[0]) for line in lines if (match := _REQUIRED.match(line))}


def _reached(start: str, graph: dict[str, set[str]]) -> list[str]:
    reached, waiting = {start}, [start]
    while waiting:
        for name in (graph[waiting.pop()] & graph.keys()) - reached:
            reached.add(name)
            waiting.append(name)
    return sorted(reached - {start})


def _hashes(requirements: str) -> dict[str, list[str]]:
    """sha256 of the files of each requirement, by its name."""
    hashes: dict[str, list[str]] = {}
    for requirement in requirements.replace("\\\n", " ").splitlines():
        if match := _REQUIRED.match(requirement):
            hashes[_name(match[0])] = _HASH.findall(requirement)
    return hashes


def _python_component(distribution: metadata.Distribution, hashes: list[str]) -> dict[str, Any]:
    purl = _purl("pypi", _name(distribution.name), distribution.version)
    files = [{"type": "distribution", "url": purl, "hashes": [_hash("SHA-256", digest)]}
             for digest in hashes]  # fmt: skip
    return {
        "type": "library",
        "bom-ref": purl,
        "name": distribution.name,
        "version": distribution.version,
        "purl": purl,
        "licenses": _licences(distribution.metadata),
        "externalReferences": files,
    }


def _licences(package: metadata.PackageMetadata) -> list[dict[str, Any]]:
    """As an expression, else by the names that are told, the most exact ones first."""
    if expressions := package.get_all("License-Expression"):
        return [{"expression": expressions[0]}]
    lines = [line for line in package.get_all("Classifier") or [] if line.startswith("License ::")]
    names = [line.rpartition(" :: ")[2] for line in lines] or package.get_all("License") or []
    return [{"license": {"name": name.strip().partition("\n")[0]}} for name in names if name]


def bundled(lock: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and place in the lock of each package that the extension's bundle holds: its client
    library and what that needs."""
    packages = lock["packages"]
    graph = {
        path: {f"node_modules/{name}" for name in package.get("dependencies", {})}
        for path, package in packages.items()
    }
    start = "node_modules/vscode-languageclient"
    for path in [start, *_reached(start, graph)]:
        yield path.removeprefix("node_modules/"), path


def _npm_component(name: str, package: dict[str, Any]) -> dict[str, Any]:
    kind, _, digest = package["integrity"].partition("-")
    purl = _purl("npm", name.replace("@", "%40"), package["version"])
    return {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": package["version"],
        "purl": purl,
        "licenses": [{"expression": package["license"]}],
        "hashes": [_hash(kind.replace("sha", "SHA-"), base64.b64decode(digest).hex())],
    }


def _hash(kind: str, digest: str) -> dict[str, str]:
    return {"alg": kind, "content": digest}


def _purl(kind: str, name: str, version: str) -> str:
    return f"pkg:{kind}/{name}@{version}"
