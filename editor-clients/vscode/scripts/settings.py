"""Writes the server's settings into package.json and README.md, so that they stand in one place.

python scripts/settings.py [--check]    (needs the package lsp_server)
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lsp_server.settings import Settings, camel_case, settings_rows

FOLDER = Path(__file__).resolve().parent.parent
MANIFEST = FOLDER / "package.json"
PAGE = FOLDER / "README.md"
TABLE_START, TABLE_END = "<!-- settings: generated -->\n", "<!-- end of settings -->"
CLIENT_ONLY = ("redraft.serverPath", "redraft.trace.server")
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
    configuration = manifest["contributes"]["configuration"]
    own = {name: configuration["properties"][name] for name in CLIENT_ONLY}
    configuration["properties"] = own | properties()
    return json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"


def page_text() -> str:
    """README.md as it should be."""
    before, rest = PAGE.read_text(encoding="utf-8").split(TABLE_START)
    _, after = rest.split(TABLE_END)
    rows = ["| setting | default | |", "| --- | --- | --- |"]
    shown = [row for row in settings_rows() if row.name in properties()]
    rows += [f"| `{row.name}` | `{row.default}` | {row.doc} |" for row in shown]
    return before + TABLE_START + "\n".join(rows) + "\n" + TABLE_END + after


def main() -> int:
    """Exit code 1 when --check finds a file that is behind."""
    wanted = {MANIFEST: manifest_text(), PAGE: page_text()}
    if "--check" in sys.argv[1:]:
        behind = [
            file.name for file, text in wanted.items() if text != file.read_text(encoding="utf-8")
        ]
        if behind:
            print(f"settings.py: {', '.join(behind)} behind; run it without --check")
        return int(bool(behind))
    for file, text in wanted.items():
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
