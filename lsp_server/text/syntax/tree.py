"""The syntax tree of a text: comments, strings, prose, identifiers and code. Offsets are indices of
the text. Texts inside of others (a script in a web page) have a tree of their own."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from lsp_server.text.syntax.injections import Injection, injections
from lsp_server.text.syntax.languages import grammar_of, load_grammar
from lsp_server.text.syntax.offsets import Offsets, encoded, end_point
from lsp_server.text.syntax.roles import (
    PROSE,
    Role,
    is_name_in_string,
    is_quoted,
    may_be_identifier,
    role_query,
)

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    from lsp_server.text.text_edit import TextEdit

_OPAQUE = re.compile(r"[\s()\[\]{};,=+*/<>|\"]")
"""A leaf with such characters holds more than a name: the grammar does not look inside."""

_SIGIL = re.compile(r"^\W+")
_WORD = re.compile(r"[^\W\d]\w*")

_SOFT = re.compile(r"identifier|(?:^|_)name$")
"""Nodes that are names, although their only leaf is a keyword."""


class RolePiece(NamedTuple):
    """``text[start:end]`` has one role."""

    start: int
    end: int
    role: Role


class SyntaxTree:
    """A tree-sitter tree of a text. Nothing in it changes."""

    def __init__(self, text: str, grammar: str, tree: Tree, offsets: Offsets) -> None:
        self.text = text
        self.grammar = grammar
        self._tree = tree
        self._offsets = offsets
        self._known: dict[tuple[str, int, int], list[tuple[int, int]]] = {}
        """Identifiers that were looked for, by name and range."""

    @classmethod
    def of(cls, text: str, language_id: str, path: str = "") -> SyntaxTree | None:
        """Parse a text; None where neither the language id nor the path has a grammar."""
        grammar = grammar_of(language_id, path)
        return cls.parsed(text, grammar) if grammar else None

    @classmethod
    def parsed(cls, text: str, grammar: str) -> SyntaxTree:
        """Parse a text by a grammar that there is (:func:`grammar_of`)."""
        from tree_sitter import Parser

        tree = Parser(load_grammar(grammar)).parse(encoded(text), encoding="utf16le")
        return cls(text, grammar, tree, Offsets(text))

    def edited(self, changes: Sequence[TextEdit[int]]) -> SyntaxTree:
        """Return the tree of the text with changes that are in order and apart. What they do not
        reach is not parsed again."""
        from tree_sitter import Parser

        text, tree = self.text, self._tree.copy()
        # From the last on, so that the offsets of the others stay true.
        for change in reversed(changes):
            above = text[: change.start]
            start, end = self._offsets.byte(change.start), self._offsets.byte(change.end)
            points = map(end_point, (above, text[: change.end], above + change.text))
            tree.edit(start, end, start + len(encoded(change.text)), *points)
            text = above + change.text + text[change.end :]
        parser = Parser(load_grammar(self.grammar))
        tree = parser.parse(encoded(text), tree, encoding="utf16le")
        return SyntaxTree(text, self.grammar, tree, Offsets(text))

    @property
    def has_errors(self) -> bool:
        """True if a part of the text does not fit the grammar. Some grammars lag behind."""
        return self._tree.root_node.has_error

    def first_error(self) -> int | None:
        """Return the line, from 0, of the first part that does not fit the grammar, if any."""
        node = self._tree.root_node
        if not node.has_error:
            return None
        while (inner := next((child for child in node.children if child.has_error), None)) and not (
            node.is_error or node.is_missing
        ):
            node = inner
        return node.start_point[0]

    def pieces(self, start: int = 0, end: int | None = None) -> list[RolePiece]:
        """Return comments, strings and prose between two offsets, in order, cut at both; between
        them is code. Code inside of strings is no part of them."""
        end = len(self.text) if end is None else end
        base = Role.TEXT if self.grammar in PROSE else Role.CODE
        marks = [(0, len(self.text), base), *self._marks(start, end)]
        return _flattened(marks, start, end)

    def role_at(self, offset: int) -> Role:
        """Return the role of the character at ``offset``; code for blanks between."""
        return next((piece.role for piece in self.pieces(offset, offset + 1)), Role.CODE)

    def comments(self) -> list[tuple[int, int]]:
        """Return where comments are, with their signs."""
        return [(piece.start, piece.end) for piece in self.pieces() if piece.role is Role.COMMENT]

    def strings(self) -> list[tuple[int, int]]:
        """Return where strings are, with their quotes and without code inside of them."""
        return [(piece.start, piece.end) for piece in self.pieces() if piece.role is Role.STRING]

    def injections(self, start: int = 0, end: int | None = None) -> list[Injection]:
        """Return where texts of other languages are that touch a range of offsets."""
        return injections(self._tree.root_node, self.grammar, self._offsets, start, end)

    def identifiers(
        self, name: str, start: int = 0, end: int | None = None
    ) -> list[tuple[int, int]]:
        """Return where ``name`` occurs as an identifier between two offsets: in code, whole,
        without a sigil, and not a keyword. Where the grammar leaves code unread, words count."""
        key = (name, start, len(self.text) if end is None else end)
        if key not in self._known:
            self._known[key] = self._identifiers(*key)
        return self._known[key]

    def _identifiers(self, name: str, start: int, end: int) -> list[tuple[int, int]]:
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
        spans = [match.span() for match in word.finditer(self.text, start, end)] if name else []
        if not spans:
            return []
        pieces = self.pieces(spans[0][0], spans[-1][1])
        code = [span for span in spans if not _any_overlaps(pieces, span)]
        inner = self.injections(spans[0][0], spans[-1][1])
        named: list[tuple[int, int]] = []
        for span in code:
            inside = any(injection.start <= span[0] < injection.end for injection in inner)
            if not inside and self._names(name, *span):
                named.append(span)
        for injection in inner:
            tree = SyntaxTree.of(self.text[injection.start : injection.end], injection.language)
            if tree is not None:
                own = tree.identifiers(name)
                moved = ((first + injection.start, to + injection.start) for first, to in own)
                named += [(first, to) for first, to in moved if start <= first and to <= end]
            else:
                named += [span for span in code if injection.start <= span[0] < injection.end]
        return sorted(named)

    def has_identifiers(self, start: int, end: int) -> bool:
        """Return whether any word between two offsets is an identifier."""
        pieces = self.pieces(start, end)
        inner = self.injections(start, end)
        for word in _WORD.finditer(self.text, start, end):
            inside = any(injection.start <= word.start() < injection.end for injection in inner)
            read = inside or self._names(word.group(), *word.span())
            if read and not _any_overlaps(pieces, word.span()):
                return True
        return False

    def node(self, start: int, end: int) -> Node | None:
        """Return the smallest node that holds ``text[start:end]``."""
        root, offsets = self._tree.root_node, self._offsets
        return root.descendant_for_byte_range(offsets.byte(start), offsets.byte(end))

    def start(self, node: Node) -> int:
        """Return the offset at which a node begins."""
        return self._offsets.index(node.start_byte)

    def end(self, node: Node) -> int:
        """Return the offset at which a node ends."""
        return self._offsets.index(node.end_byte)

    def text_of(self, node: Node | None) -> str:
        """Return the text of a node; empty without one."""
        return self.text[self.start(node) : self.end(node)] if node is not None else ""

    def _names(self, name: str, start: int, end: int) -> bool:
        """Return whether the word there is a leaf of its own that may be a name."""
        offsets = self._offsets
        node = self.node(start, end)
        if node is not None and not node.is_named and node.parent is not None:
            # A word that is a keyword elsewhere and a name here: data, value, open.
            parent = node.parent
            same = (node.start_byte, node.end_byte) == (parent.start_byte, parent.end_byte)
            if same and _SOFT.search(parent.type):
                return True
        if node is None or node.child_count:
            # Between the leaves: the grammar did not read it.
            return node is not None and not _has_leaf_at(node, offsets.byte(start))
        if node.is_error:
            return True
        if not node.is_named or not may_be_identifier(node.type):
            return False
        text = self.text_of(node)
        return text == name or bool(_OPAQUE.search(text)) or _bare(text) == _bare(name)

    def _marks(self, start: int, end: int) -> list[tuple[int, int, Role]]:
        """Return nodes with a role that touch the range; outer ones before inner ones."""
        from tree_sitter import QueryCursor

        offsets = self._offsets
        cursor = QueryCursor(role_query(self.grammar))
        cursor.set_byte_range(offsets.byte(start), offsets.byte(end))
        marks: list[tuple[int, int, Role]] = []
        for name, nodes in cursor.captures(self._tree.root_node).items():
            for node in nodes:
                role = Role.STRING if name == "literal" else Role(name)
                if name != "literal" or is_quoted(self.text_of(node)):
                    marks.append((self.start(node), self.end(node), role))
                    marks += [(self.start(child), self.end(child), Role.CODE)
                              for child in node.named_children if role is Role.STRING
                              and is_name_in_string(self.grammar, child.type)]  # fmt: skip
        for injection in injections(self._tree.root_node, self.grammar, offsets, start, end):
            marks.append((injection.start, injection.end, Role.CODE))
            tree = SyntaxTree.of(self.text[injection.start : injection.end], injection.language)
            if tree is not None:
                by, pieces = injection.start, tree.pieces()
                marks += [(piece.start + by, piece.end + by, piece.role) for piece in pieces]
        return sorted(marks, key=lambda mark: (mark[0], -mark[1]))


def _flattened(marks: list[tuple[int, int, Role]], start: int, end: int) -> list[RolePiece]:
    """Nested marks as pieces side by side: the innermost counts."""
    pieces: list[RolePiece] = []
    open_marks: list[tuple[int, Role]] = []
    offset = start

    def add(to: int) -> None:
        nonlocal offset
        to = min(to, end)
        if to <= offset:
            return
        role = open_marks[-1][1] if open_marks else Role.CODE
        if role is not Role.CODE:
            if pieces and pieces[-1].role is role and pieces[-1].end == offset:
                pieces[-1] = RolePiece(pieces[-1].start, to, role)
            else:
                pieces.append(RolePiece(offset, to, role))
        offset = to

    for own_start, own_end, own in marks:
        while open_marks and open_marks[-1][0] <= own_start:
            add(open_marks[-1][0])
            open_marks.pop()
        add(own_start)
        outer = open_marks[-1][1] if open_marks else Role.CODE
        # Nothing is told apart inside of a comment, and inside of a string only what runs.
        stays = outer is Role.COMMENT or (outer is Role.STRING and own is not Role.CODE)
        role = outer if stays else own
        open_marks.append((min(own_end, open_marks[-1][0]) if open_marks else own_end, role))
    while open_marks:
        add(open_marks[-1][0])
        open_marks.pop()
    return pieces


def _any_overlaps(pieces: list[RolePiece], span: tuple[int, int]) -> bool:
    number = bisect_right(pieces, span[0], key=lambda piece: piece.start) - 1
    return number >= 0 and pieces[number].end > span[0]


def _has_leaf_at(node: Node, byte: int) -> bool:
    """Return whether a child of ``node`` that the grammar understood holds the byte."""
    read = (child for child in node.children if not child.is_error)
    return any(child.start_byte <= byte < child.end_byte for child in read)


def _bare(name: str) -> str:
    """Return a name without the sigil before it."""
    return _SIGIL.sub("", name)
