"""Anti-unification of syntax trees: the least general pattern that two terms are instances of
(Plotkin 1970, "A note on inductive generalization").

Where the terms differ the pattern has a hole. Equal pairs of differing terms share one hole, so
that what two patterns have in common goes from an instance of one into the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_BODY = re.compile(r"(?:^|_)(?:block|body|suite|declaration_list)$|compound_statement")
_LITERAL = re.compile(r"string|integer|float|number|true|false|none|null|literal|char")
_INNER = re.compile(r"_(?:content|fragment|start|end)$|escape_sequence")
_FIRST = re.compile(r"_*(?:[A-Z]+(?![a-z])|[A-Za-z][a-z]*)_?")
_DUNDER, _UPPER = re.compile(r"__\w+__"), re.compile(r"[A-Z][A-Z0-9_]*")


@dataclass(frozen=True, slots=True)
class Term:
    """A node of a syntax tree as a value: its kind, its text and what it consists of."""

    kind: str
    text: str
    start: int
    """Of the text that it was read from."""
    parts: tuple[Term | Hole, ...] = ()
    is_named: bool = True
    field: str = ""

    @property
    def end(self) -> int:
        """After its last character."""
        return self.start + len(self.text)

    def leaves(self) -> Iterator[Term]:
        """What it consists of in the end, without holes."""
        if not self.parts:
            yield self
        for part in self.parts:
            if isinstance(part, Term):
                yield from part.leaves()

    def holes(self) -> Iterator[Hole]:
        """The holes in it, from left to right."""
        for part in self.parts:
            if isinstance(part, Hole):
                yield part
            else:
                yield from part.holes()


@dataclass(frozen=True, slots=True)
class Hole:
    """A place where the terms of a pattern differ."""

    number: int
    start: int
    end: int
    """Where it is in the first of the terms."""
    kinds: frozenset[str] = frozenset()
    """Those that may be here; empty for any expression."""
    shape: str = ""
    """Of the names that may be here."""
    is_sequence: bool = False


Pattern = Term | Hole
Spans = tuple[int, int]
Substitution = dict[int, tuple[str, int, int]]
"""What is in the holes of a pattern: text and place."""


def term_of(tree: SyntaxTree, node: Node, field: str = "") -> Term:
    """A node as a term. Blocks, comments and literals that nothing runs in are leaves, as are words
    with a node around them."""
    start, end = tree.index(node.start_byte), tree.index(node.end_byte)
    parts: tuple[Term, ...] = ()
    is_leaf = node.child_count == 1 and not node.named_child_count
    if not (is_leaf or _BODY.search(node.type) or is_literal(node) or "comment" in node.type):
        parts = tuple(
            term_of(tree, child, node.field_name_for_child(number) or "")
            for number, child in enumerate(node.children)
        )
    return Term(node.type, tree.text[start:end], start, parts, node.is_named, field)


def is_literal(node: Node) -> bool:
    """Whether a node is a number, a string that nothing runs in, or another constant."""
    if not node.is_named or not _LITERAL.search(node.type) or _INNER.search(node.type):
        return False
    return not any(one.is_named and not _INNER.search(one.type) for one in node.children) and (
        node.type not in ("literal_value", "string_type")
    )


def is_literal_kind(kind: str) -> bool:
    """Return whether a kind of node is one of literals."""
    return _LITERAL.search(kind) is not None


def is_body(node: Node) -> bool:
    """Whether a node holds statements or members: it is compared as a whole."""
    return _BODY.search(node.type) is not None


class Generalisation:
    """Anti-unifies pairs of terms; all of them share their holes."""

    def __init__(self) -> None:
        self._holes: dict[tuple[str, str], int] = {}

    def of(self, one: Term, other: Term) -> Pattern:
        """The least general pattern of two terms; holes are placed as in the first."""
        if (one.kind, one.text) == (other.kind, other.text):
            return one
        if one.kind != other.kind or not one.parts or not other.parts:
            hole = self._hole(one.text, other.text, one.start)
            is_strict = not (one.is_named and other.is_named)
            kinds = frozenset((one.kind, other.kind)) if is_strict else hole.kinds
            return replace(hole, kinds=kinds, shape=_common_shape(one, other))
        return replace(one, parts=tuple(self._sequence(one, other)))

    def _sequence(self, one: Term, other: Term) -> Iterator[Pattern]:
        left, right = _terms(one), _terms(other)
        if len(left) == len(right):
            yield from map(self.of, left, right)
            return
        head = _common(left, right)
        tail = _common(left[head:][::-1], right[head:][::-1])
        texts = _between(one, head, len(left) - tail), _between(other, head, len(right) - tail)
        start = left[head].start if head < len(left) - tail else left[head - 1].end
        yield from left[:head]
        yield replace(self._hole(*texts, start), is_sequence=True)
        yield from left[len(left) - tail :]

    def _hole(self, one: str, other: str, start: int) -> Hole:
        number = self._holes.setdefault((one, other), len(self._holes))
        return Hole(number, start, start + len(one))


def matches(pattern: Pattern, term: Term, found: Substitution) -> bool:
    """Whether a term is an instance of a pattern; ``found`` gets what is in its holes."""
    if isinstance(pattern, Hole):
        if pattern.kinds and term.kind not in pattern.kinds:
            return False
        if not term.is_named and not pattern.kinds:
            return False
        shape, _, word = pattern.shape.partition(" ")
        if shape and (_shape(term) != shape or not term.text.startswith(word)):
            return False
        return _put(pattern, (term.text, term.start, term.end), found)
    if pattern.kind != term.kind:
        return False
    if not pattern.parts:
        return pattern.text == term.text
    parts = _terms(term)
    at = next((n for n, one in enumerate(pattern.parts)
               if isinstance(one, Hole) and one.is_sequence), -1)  # fmt: skip
    if at < 0:
        return len(parts) == len(pattern.parts) and all(
            matches(one, other, found) for one, other in zip(pattern.parts, parts, strict=True)
        )
    behind = len(pattern.parts) - at - 1
    if len(parts) < at + behind:
        return False
    hole, end = pattern.parts[at], len(parts) - behind
    assert isinstance(hole, Hole)
    pairs = [*zip(pattern.parts[:at], parts[:at], strict=True),
             *zip(pattern.parts[at + 1 :], parts[end:], strict=True)]  # fmt: skip
    start = parts[at].start if at < end else parts[at - 1].end if at else term.start
    text = _between(term, at, end)
    return all(matches(one, other, found) for one, other in pairs) and _put(
        hole, (text, start, start + len(text)), found
    )


def _put(hole: Hole, place: tuple[str, int, int], found: Substitution) -> bool:
    return found.setdefault(hole.number, place)[0] == place[0]


def _terms(term: Term) -> list[Term]:
    return [one for one in term.parts if isinstance(one, Term)]


def _common(left: list[Term], right: list[Term]) -> int:
    """How many terms both begin with."""
    pairs = zip(left, right, strict=False)
    return next(
        (
            n
            for n, (one, other) in enumerate(pairs)
            if (one.kind, one.text) != (other.kind, other.text)
        ),
        min(len(left), len(right)),
    )


def _between(whole: Term, first: int, end: int) -> str:
    parts = _terms(whole)
    if first >= end:
        return ""
    return whole.text[parts[first].start - whole.start : parts[end - 1].end - whole.start]


def _shape(term: Term) -> str:
    """How a declared name is written: other kinds of names are other kinds of things."""
    if term.field != "name":
        return ""
    if _DUNDER.fullmatch(term.text):
        return "dunder"
    if _UPPER.fullmatch(term.text):
        return "upper"
    return "private" if term.text.startswith(("_", "#")) else "plain"


def _common_shape(one: Term, other: Term) -> str:
    """How both are written, with the word that both begin with: what is called ``test_…``."""
    if _shape(one) != _shape(other) or not _shape(one):
        return ""
    words = [_FIRST.match(term.text) for term in (one, other)]
    same = {word.group() if word else "" for word in words}
    is_part = all(word and word.end() < len(term.text)
                  for word, term in zip(words, (one, other), strict=True))  # fmt: skip
    return f"{_shape(one)} {same.pop() if len(same) == 1 and is_part else ''}"
