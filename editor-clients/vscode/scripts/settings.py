"""Writes the server's settings into package.json, so that they stand in one place.

python scripts/settings.py [--check]    (needs the package lsp_server)
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lsp_server.shared.settings import Settings, camel_case

FOLDER = Path(__file__).resolve().parent.parent
MANIFEST = FOLDER / "package.json"
CLIENT_ONLY = ("redraft.serverPath", "redraft.trace.server")
SECTIONS = {
    "Redraft": ("enabled", "power", "languages", "folders", "serverPath"),
    "Model": ("model",),
    "Suggestions": ("completion",),
    "Next Edits": ("nextEdits",),
    "Edits with Instruction": ("edit",),
    "Index and Context": ("index", "context"),
    "A Team's Server": ("server",),
    "Log": ("log", "trace"),
}
"""The groups of the settings' page, and the first words of what stands in each."""
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def properties(kind: type[Any] = Settings, path: str = "redraft") -> dict[str, Any]:
    """The server's settings as VS Code describes them, by full name."""
    found: dict[str, Any] = {}
    hints = get_type_hints(kind)
    defaults = kind()
    for item in dataclasses.fields(kind):
        name = f"{path}.{camel_case(item.name)}"
        if dataclasses.is_dataclass(hints[item.name]):
            found |= properties(hints[item.name], name)
        elif not item.metadata.get("secret"):
            # Secrets are kept in the editor's secret storage and never stand in a file.
            found[name] = _property(item, hints[item.name], getattr(defaults, item.name))
    return found


def sections(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings in groups, in the order in which the page shows them."""
    by_word: dict[str, dict[str, Any]] = {}
    for name, described in found.items():
        by_word.setdefault(name.split(".")[1], {})[name] = described
    return [
        {
            "title": title,
            "order": order,
            "properties": {
                name: {**described, "order": place}
                for place, (name, described) in enumerate(
                    setting for word in words for setting in by_word.pop(word).items()
                )
            },
        }
        for order, (title, words) in enumerate(SECTIONS.items())
    ]


def _property(item: dataclasses.Field[Any], hint: Any, default: Any) -> dict[str, Any]:
    # A workspace cannot set those of the scope machine.
    scope = "machine" if item.metadata.get("own") else "window"
    described: dict[str, Any] = {**_type(hint), "default": default, "scope": scope}
    choices, low, high = (item.metadata[key] for key in ("choices", "low", "high"))
    if choices:
        described["enum"] = list(choices)
    limits = {"minimum": low, "maximum": high}
    described |= {name: limit for name, limit in limits.items() if limit is not None}
    return {**described, "markdownDescription": item.metadata["doc"]}


def _type(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is Union:
        return {"anyOf": [_type(one) for one in get_args(hint)]}
    if get_origin(hint) is Literal:
        return {"type": "string", "enum": list(get_args(hint))}
    if get_origin(hint) is list:
        return {"type": "array", "items": _type(get_args(hint)[0])}
    if get_origin(hint) is dict:
        return {"type": "object", "additionalProperties": _type(get_args(hint)[1])}
    return {"type": TYPES[hint]}


def manifest_text() -> str:
    """package.json as it should be."""
    manifest = json.loads(MANIFEST.read_text(encoding="utf-8"))
    before = {
        name: described
        for section in manifest["contributes"]["configuration"]
        for name, described in section["properties"].items()
    }
    found = {name: before[name] for name in CLIENT_ONLY} | properties()
    manifest["contributes"]["configuration"] = sections(found)
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Exit code 1 when --check finds that the file is behind."""
    wanted = manifest_text()
    if "--check" not in sys.argv[1:]:
        MANIFEST.write_text(wanted, encoding="utf-8")
    elif wanted != MANIFEST.read_text(encoding="utf-8"):
        print("settings.py: package.json is behind; run it without --check")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
