"""The role of a syntax node: comment, string, text, identifier or code, by the names that grammars
give their nodes. What is written inside of a string but runs is code."""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING

from lsp_server.text.syntax.languages import TABLE, load_grammar

if TYPE_CHECKING:
    from tree_sitter import Query


class Role(Enum):
    """The role of a piece of text in its language."""

    COMMENT = "comment"
    STRING = "string"
    TEXT = "text"
    """Prose: between tags, in a document."""
    CODE = "code"


PROSE = {"csv", "gitcommit", "markdown", "markdown_inline", "org", "pem", "po", "psv", "rst", "tsv"}
"""Grammars of documents: what is nothing else is text there."""

MARKUP = {*TABLE["kinds of nodes"]["markup"].split()}
"""Grammars of marked text and of data: most words there are no identifiers."""

_COMMENT = re.compile(r"comment|^shebang|^hash_bang|^(?:pod|marginalia|haddock)$")
_STRING = re.compile(TABLE["patterns"]["string"])
_NO_STRING = re.compile(r"^(?:concatenated_string|bit_string|info_string)$|^unquoted_")
_RUNS = re.compile(r"interpol|substitution$|expansion$|sub_expression|_eval$|^template_directive")
_RUNS_NOT = re.compile(r"escape|(?:_start|_quote|_end|_brace|_clause)$")
_NAME = re.compile(TABLE["patterns"]["name"])
_NAMES_IN_STRINGS = {"cmake", "groovy", "perl", "php", "powershell"}
"""Grammars whose strings hold names and expressions without a node around them."""
_NO_IDENTIFIER = re.compile(TABLE["patterns"]["no identifier"])


def role_of_kind(grammar: str, kind: str) -> Role | None:
    """Return the role of a named node type and of what it holds; None where it changes nothing."""
    if kind in _words(grammar, "types named as strings"):
        return None
    if kind in _words(grammar, "strings"):
        return Role.STRING
    if kind in _words(grammar, "texts"):
        return Role.TEXT
    name = _snake(kind)
    is_comment = _COMMENT.search(name) and not name.endswith(("_statement", "_entry"))
    if is_comment or kind in _words(grammar, "comments"):
        return Role.COMMENT
    if _STRING.search(name) and not _NO_STRING.search(name):
        return Role.STRING
    if _RUNS.search(name) and not _RUNS_NOT.search(name):
        return Role.CODE
    return None


def _words(grammar: str, table: str) -> list[str]:
    return TABLE[table].get(grammar, "").split()


def is_name_in_string(grammar: str, kind: str) -> bool:
    """Return whether a node inside of a string is code, though not marked as such."""
    if grammar not in _NAMES_IN_STRINGS or _RUNS_NOT.search(kind):
        return False
    return role_of_kind(grammar, kind) is None and _NAME.search(kind) is not None


@lru_cache(maxsize=1024)
def may_be_identifier(kind: str) -> bool:
    """Return whether a leaf of this named type may be a name, no number or keyword."""
    return _NO_IDENTIFIER.search(_snake(kind)) is None


def is_quoted(text: str) -> bool:
    """Return whether a leaf is in quotes: some grammars tell strings from names by that alone."""
    return len(text) >= 2 and text[0] in "\"'`" and text[-1] == text[0]


@lru_cache(maxsize=64)
def role_query(grammar: str) -> Query:
    """Return the question for all nodes of a grammar that have a role of their own: ``comment``,
    ``string``, ``text``, ``code`` (what runs inside of a string) and ``literal`` (a string where it
    is in quotes)."""
    from tree_sitter import Query

    language = load_grammar(grammar)
    assert language is not None, f"no grammar {grammar}"
    patterns: list[str] = []
    kinds: set[str] = set()
    for number in range(language.node_kind_count):
        kind = language.node_kind_for_id(number)
        if not kind or kind in kinds or not language.node_kind_is_visible(number):
            continue
        if not language.node_kind_is_named(number):
            if len(kind) > 2 and is_quoted(kind) and kind.strip("\"'`"):
                escaped = kind.replace("\\", "\\\\").replace('"', '\\"')
                patterns.append(f'"{escaped}" @string')
            continue
        kinds.add(kind)
        role = role_of_kind(grammar, kind)
        if role is not None:
            patterns.append(f"({kind}) @{role.value}")
        if kind in {"literal", "atom"}:
            patterns.append(f"({kind}) @literal")
    return Query(language, "\n".join(patterns))


def _snake(kind: str) -> str:
    """``literalString`` as ``literal_string``, in lower case."""
    if kind.isupper():
        return kind.lower()
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()
