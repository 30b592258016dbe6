"""The grammar of a language, by the editor's language id (LSP 3.18) or else by a file's suffix."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language

TABLE: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)
GRAMMAR_OF_ID = TABLE["grammars"]
"""Language ids that are not the name of their grammar; an empty name is: none."""
ID_OF_ENDING = TABLE["endings"]
"""Language ids by the file's ending, in lower case."""
ID_OF_NAME = TABLE["names"]
"""Language ids by the file's whole name, in lower case."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NOT_FOR_FILES = {"comment", "doxygen", "jsdoc", "luadoc", "luap", "printf", "regex", "test"}
"""Grammars of parts of files."""


def language_of_path(path: str) -> str:
    """Return the language id of a file by its name; empty where the name does not tell."""
    name = PurePosixPath(path.replace("\\", "/")).name.lower()
    return ID_OF_NAME.get(name) or ID_OF_ENDING.get(name.rpartition(".")[2], "")


def grammar_of(language_id: str, path: str = "") -> str:
    """Return the name of the grammar for a language id, else for a path, if any."""
    language_id = language_id.lower()
    grammar = GRAMMAR_OF_ID.get(language_id, language_id)
    if grammar and load_grammar(grammar) is not None:
        return grammar
    if path and (by_path := language_of_path(path)):
        return grammar_of(by_path)
    return ""


@lru_cache(maxsize=64)
def load_grammar(name: str) -> Language | None:
    """Return the grammar of that name; None where the library has none. Costs milliseconds once."""
    if not _NAME.fullmatch(name) or name in _NOT_FOR_FILES:
        return None
    from tree_sitter_language_pack import get_language

    try:
        return get_language(name)  # type: ignore[arg-type]
    except LookupError:
        return None
