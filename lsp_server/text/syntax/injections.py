"""Language injections: scripts and styles, fenced blocks and other text of a second language."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from lsp_server.text.syntax.languages import TABLE, load_grammar
from lsp_server.text.syntax.offsets import Offsets

if TYPE_CHECKING:
    from tree_sitter import Node, Query

_QUERIES = TABLE["injections"]
"""What to look for. A capture that is named by a language is a text of it; the language of
``text`` is told by the tag or the fence before it."""
_LANGUAGE = re.compile(r"\blang(?:uage)?\s*=\s*[\"']?([\w-]+)|\btype\s*=\s*[\"']?\w+/([\w-]+)")
_SHORT = TABLE["short names"]


class Injection(NamedTuple):
    """``text[start:end]`` is of another language; its id may be unknown."""

    start: int
    end: int
    language: str


def injections(
    root: Node, grammar: str, offsets: Offsets, start: int = 0, end: int | None = None
) -> list[Injection]:
    """Return the injections of a tree that touch a range of offsets, in order."""
    if grammar not in _QUERIES:
        return []
    from tree_sitter import QueryCursor

    cursor = QueryCursor(_query(grammar))
    cursor.set_byte_range(offsets.byte(start), root.end_byte if end is None else offsets.byte(end))
    regions = []
    for _, captures in cursor.matches(root):
        named = "text" if "text" in captures else next(iter(captures))
        language = _language(captures) if named == "text" else named
        for node in captures[named]:
            first, last = offsets.index(node.start_byte), offsets.index(node.end_byte)
            regions.append(Injection(first, last, language))
    return sorted(regions)


@lru_cache(maxsize=8)
def _query(grammar: str) -> Query:
    from tree_sitter import Query

    language = load_grammar(grammar)
    assert language is not None, f"no grammar {grammar}"
    return Query(language, _QUERIES[grammar])


def _language(captures: dict[str, list[Node]]) -> str:
    """Return the language id that the tag or the fence names."""
    for name, usual in (("script", "javascript"), ("style", "css")):
        if name in captures:
            match = _LANGUAGE.search(_text(captures[name][0]))
            language = (match[1] or match[2]) if match else usual
            return _SHORT.get(language, language)
    if "info" not in captures:
        return ""
    language = re.split(r"[\s,{}:]", _text(captures["info"][0]).strip("{. "))[0].lower()
    return _SHORT.get(language, language)


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-16-le", "replace")
