"""Anti-unification of syntax trees: the least general pattern that two terms are instances of
(Plotkin 1970, "A note on inductive generalization").

Where the terms differ the pattern has a hole. Equal pairs of differing terms share one hole, so
that what two patterns have in common goes from an instance of one into the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_BODY = re.compile(r"(?:^|_)(?:block|body|suite|declaration_list)$|compound_statement")
_LITERAL = re.compile(r"string|integer|float|number|true|false|none|null|literal|char")
_OPERATION = re.compile(r"binary|boolean|comparison|assignment")
_QUOTED = re.compile(r"""(["'`])([^\W\d]\w*)\1""")
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
        """Return what it consists of in the end, without holes."""
        return (term for term in (self, *parts_of(self)) if not term.parts)

    def holes(self) -> Iterator[Hole]:
        """Return the holes in it, from left to right."""
        return (hole for hole, _ in self.holes_with_kinds())

    def holes_with_kinds(self) -> Iterator[tuple[Hole, str]]:
        """Yield its holes, each with the kind of the node around it."""
        for child in self.parts:
            if isinstance(child, Hole):
                yield child, self.kind
            else:
                yield from child.holes_with_kinds()


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
    form: int = 0
    """Of ``forms``, in which a template has what is here in the pattern."""


Pattern = Term | Hole
Substitution = dict[int, tuple[str, int, int]]
"""What is in the holes of a pattern: text and place."""


def term_of(tree: SyntaxTree, node: Node, field: str = "") -> Term:
    """Return a node as a term. Blocks, comments and literals that nothing runs in are leaves."""
    start, end = tree.start(node), tree.end(node)
    terms: tuple[Term, ...] = ()
    is_leaf = node.child_count == 1 and not node.named_child_count
    if not (is_leaf or _BODY.search(node.type) or is_literal(node) or "comment" in node.type):
        names = (node.field_name_for_child(number) or "" for number in range(node.child_count))
        terms = tuple(map(partial(term_of, tree), node.children, names))
    return Term(node.type, tree.text[start:end], start, terms, node.is_named, field)


def parts_of(term: Term) -> Iterator[Term]:
    """Yield what a term consists of, on each level."""
    for child in term.parts:
        if isinstance(child, Term):
            yield child
            yield from parts_of(child)


def is_literal(node: Node) -> bool:
    """Return whether a node is a number, a string that nothing runs in, or another constant."""
    if not node.is_named or not _LITERAL.search(node.type) or _INNER.search(node.type):
        return False
    is_outer = any(child.is_named and not _INNER.search(child.type) for child in node.children)
    return not is_outer and node.type not in ("literal_value", "string_type")


def respelt(term: Term, function: str, other: str) -> str:
    """Return the text of a term; where a literal has the name of a function, with the other's."""
    is_named = function and is_literal_kind(term.kind)
    return re.sub(rf"\b{function}\b", other, term.text) if is_named else term.text


def forms(text: str) -> tuple[str, ...]:
    """Return ``text``, and for a string of one word what is in its quotes, as it is and in small
    letters; empty where it is none."""
    word = _QUOTED.fullmatch(text)
    return (text, word[2], word[2].lower()) if word else (text, "", "")


def is_literal_kind(kind: str) -> bool:
    """Return whether a kind of node is one of literals."""
    return _LITERAL.search(kind) is not None


def is_body(node: Node) -> bool:
    """Return whether a node holds statements or members: it is compared as a whole."""
    return _BODY.search(node.type) is not None


class Generalisation:
    """Anti-unifies pairs of terms; all of them share their holes. Literals are equal where each
    has the name of its own function in the same place."""

    def __init__(self, function: str = "", other: str = "") -> None:
        self._holes: dict[tuple[str, str], int] = {}
        self._forms: dict[tuple[str, str], tuple[int, int]] = {}
        self._functions = function, other

    def template(self, term: Term, other: Term) -> Pattern:
        """Return the template of what both became, after ``of`` what they were: its holes may have
        a part of a word, or a form of what a hole of the pattern has."""
        for pair, number in self._holes.items():
            for form, words in enumerate(zip(*map(forms, pair), strict=True)):
                if all(words):
                    self._forms.setdefault(words, (number, form))
        return self.of(term, other)

    def of(self, term: Term, other: Term) -> Pattern:
        """Return the least general pattern of two terms; holes are placed as in the first."""
        # The name of the error that is the cause is that of its clause.
        is_cause = term.field == other.field == "cause" and term.kind == other.kind == "identifier"
        if is_cause or (term.kind, respelt(term, *self._functions)) == (other.kind, other.text):
            return term
        is_text = "string" in term.kind
        if term.kind != other.kind or is_text or not term.parts or not other.parts:
            hole = self._hole(without_brackets(term)[0], without_brackets(other)[0], term)
            is_strict = not (term.is_named and other.is_named)
            kinds = frozenset((term.kind, other.kind)) if is_strict else hole.kinds
            return replace(hole, kinds=kinds, shape=_common_shape(term, other))
        return replace(term, parts=tuple(self._sequence(term, other)))

    def _sequence(self, term: Term, other: Term) -> Iterator[Pattern]:
        terms, right = _terms(term), _terms(other)
        if len(terms) == len(right):
            yield from map(self.of, terms, right)
            return
        head = _common(terms, right)
        # What is between has the comma before it, as behind the last of a list.
        head -= head > 0 and terms[head - 1].text == ","
        tail = _common(terms[head:][::-1], right[head:][::-1])
        texts = _between(term, head, len(terms) - tail), _between(other, head, len(right) - tail)
        end = terms[-tail].start if tail else term.end
        bare = texts[0].lstrip(", "), texts[1].lstrip(", ")
        texts = bare if bare in self._holes else texts
        yield from terms[:head]
        yield Hole(self._number(*texts), end - len(texts[0]), end, is_sequence=True)
        yield from terms[len(terms) - tail :]

    def _hole(self, text: str, other: str, term: Term) -> Hole:
        if (text, other) not in self._holes:
            for (word, its), (number, form) in self._forms.items():
                head, is_within, tail = text.partition(word)
                if is_within and other == head + its + tail:
                    start = term.start + len(head)
                    return Hole(number, start, start + len(word), form=form)
        return Hole(self._number(text, other), term.start, term.end)

    def _number(self, text: str, other: str) -> int:
        return self._holes.setdefault((text, other), len(self._holes))


def without_brackets(term: Term) -> tuple[str, int, int]:
    """Return the text and place of ``term``, or of the operation that its brackets hold."""
    is_bracketed = term.kind.startswith("parenthesized") and len(term.parts) == len("(a)")
    inner = term.parts[1] if is_bracketed else term
    inner = inner if isinstance(inner, Term) and _OPERATION.search(inner.kind) else term
    return inner.text, inner.start, inner.end


def matches(pattern: Pattern, term: Term, substitution: Substitution) -> bool:
    """Return whether a term is an instance of a pattern, with what is in the pattern's holes."""
    if isinstance(pattern, Hole):
        if pattern.kinds and term.kind not in pattern.kinds:
            return False
        if not term.is_named and not pattern.kinds:
            return False
        shape, _, word = pattern.shape.partition(" ")
        if shape and (_shape(term) != shape or not term.text.startswith(word)):
            return False
        return _put(pattern, without_brackets(term), substitution)
    if pattern.kind != term.kind:
        return False
    if not pattern.parts:
        return pattern.text == term.text
    terms = _terms(term)
    offset = next((n for n, item in enumerate(pattern.parts)
               if isinstance(item, Hole) and item.is_sequence), -1)  # fmt: skip
    if offset < 0:
        same = zip(pattern.parts, terms, strict=False)
        return len(terms) == len(pattern.parts) and all(
            matches(*pair, substitution) for pair in same
        )
    after = len(pattern.parts) - offset - 1
    if len(terms) < offset + after:
        return False
    hole, end = pattern.parts[offset], len(terms) - after
    assert isinstance(hole, Hole)
    pairs = [*zip(pattern.parts[:offset], terms[:offset], strict=True),
             *zip(pattern.parts[offset + 1 :], terms[end:], strict=True)]  # fmt: skip
    start = terms[offset].start if offset < end else terms[offset - 1].end if offset else term.start
    text = _between(term, offset, end)
    is_instance = all(matches(item, other, substitution) for item, other in pairs)
    return is_instance and _put(hole, (text, start, start + len(text)), substitution)


def _put(hole: Hole, piece: tuple[str, int, int], substitution: Substitution) -> bool:
    return substitution.setdefault(hole.number, piece)[0] == piece[0]


def _terms(term: Term) -> list[Term]:
    return [item for item in term.parts if isinstance(item, Term)]


def _common(terms: list[Term], right: list[Term]) -> int:
    """Return how many terms both begin with."""
    pairs = zip(terms, right, strict=False)
    same = ((term.kind, term.text) == (other.kind, other.text) for term, other in pairs)
    return sum(1 for _ in takewhile(bool, same))


def _between(term: Term, first: int, end: int) -> str:
    terms = _terms(term)
    if first >= end:
        return ""
    return term.text[terms[first].start - term.start : terms[end - 1].end - term.start]


def _shape(term: Term) -> str:
    """Return how a declared name is written: other kinds of names are other kinds of things."""
    if term.field != "name":
        return ""
    if _DUNDER.fullmatch(term.text):
        return "dunder"
    if _UPPER.fullmatch(term.text):
        return "upper"
    return "private" if term.text.startswith(("_", "#")) else "plain"


def _common_shape(item: Term, other: Term) -> str:
    """Return how both are written, with the word that both begin with: ``test_…``."""
    if _shape(item) != _shape(other) or not _shape(item):
        return ""
    words = [_FIRST.match(term.text) for term in (item, other)]
    same = {word.group() if word else "" for word in words}
    is_part = all(word and word.end() < len(term.text)
                  for word, term in zip(words, (item, other), strict=True))  # fmt: skip
    return f"{_shape(item)} {same.pop() if len(same) == 1 and is_part else ''}"
