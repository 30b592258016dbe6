"""Configuration snippets for editors and agents, from ``recipes.md`` beside this file."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

_RECIPE = re.compile(r"^## (.+)\nnames: (.+)\nfile: (.+)\n\n```\w*\n((?:.*\n)+?)```$", re.M)


@dataclass(frozen=True, slots=True)
class EditorSnippet:
    """file: where ``text`` goes; names: those by which ``--editor`` knows it, programs among
    them."""

    name: str
    names: list[str]
    file: str
    text: str


def all_snippets() -> list[EditorSnippet]:
    """Return the snippets of all editors that are known."""
    page = Path(__file__).with_name("recipes.md").read_text("utf-8")
    return [
        EditorSnippet(name, names.split(), file, text.rstrip())
        for name, names, file, text in _RECIPE.findall(page)
    ]


def snippets_here() -> list[EditorSnippet]:
    """Return those of the editors that are on PATH."""
    return [snippet for snippet in all_snippets() if any(map(shutil.which, snippet.names))]
