"""``python -m release.settings_page`` makes ``lsp_server/SETTINGS.md`` of the settings."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from lsp_server.shared.contract.codec import camel_case
from lsp_server.shared.settings import Settings

PAGE = Path(__file__).resolve().parents[1] / "lsp_server" / "SETTINGS.md"


def settings_page() -> str:
    """Markdown page of all settings."""
    lines = ["# Settings", "", "All in the section `redraft`. Generated; do not edit.", ""]
    lines += ["| setting | default | meaning |", "| --- | --- | --- |"]
    lines += [f"| `{row.name}` | `{row.default}` | {row.doc} |" for row in settings_rows()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Row:
    """One setting of the page."""

    name: str
    default: str
    doc: str


def settings_rows(kind: type[Any] = Settings, path: str = "redraft") -> list[Row]:
    """All settings, in the order of the tree."""
    rows: list[Row] = []
    hints = get_type_hints(kind)
    defaults = kind()
    for item in dataclasses.fields(kind):
        name = f"{path}.{camel_case(item.name)}"
        if dataclasses.is_dataclass(hints[item.name]):
            rows += settings_rows(hints[item.name], name)
            continue
        doc = item.metadata["doc"]
        if item.metadata["choices"]:
            doc += (
                " One of " + ", ".join(f"`{choice}`" for choice in item.metadata["choices"]) + "."
            )
        rows.append(Row(name, json.dumps(getattr(defaults, item.name)), doc))
    return rows


if __name__ == "__main__":
    PAGE.write_text(settings_page(), "utf-8")
