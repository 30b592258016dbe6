"""Finds the function, class or module around a position, in which a name has its meaning."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lsp_server.text.syntax.languages import TABLE
from lsp_server.text.syntax.nodes import child_of, kind_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_SCOPE = re.compile(TABLE["patterns"]["scope"])
_BLOCKS = TABLE["blocks"]
"""What else opens a scope, by grammar."""
_CLASS = re.compile(TABLE["patterns"]["class"])
_NO_NAME = re.compile(r"lambda|closure|arrow|anonymous|literal|_initializer$")
"""Scopes that have no name: all that is in them belongs to them."""
_CALLS = re.compile(r"[({]")


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """A function, class, block or other scope, by its place in the text."""

    start: int
    end: int
    kind: str
    """The type of its node in the grammar."""

    @property
    def is_class(self) -> bool:
        """True if what it declares are members."""
        return _CLASS.search(self.kind) is not None


class _Around(NamedTuple):
    """A scope, and up to where it holds its own name and what is before that, but for the
    receiver of a method."""

    scope: Scope
    named_until: int
    receiver: tuple[int, int]

    def holds(self, offset: int) -> bool:
        """Return whether a word lies in the scope."""
        return offset >= self.named_until or self.receiver[0] <= offset < self.receiver[1]


class ScopeFinder:
    """Finds the scopes around words of a text, the outermost first. The name of a function or class
    belongs to the scope around the definition. blocks: blocks and loops count as scopes, too."""

    def __init__(self, tree: SyntaxTree, *, blocks: bool = False) -> None:
        self._tree = tree
        self._also = frozenset(_BLOCKS.get(tree.grammar, "").split() if blocks else ())
        self._known: dict[int, tuple[_Around, ...]] = {}
        """By the node: many words have most of the nodes around them in common."""

    def at(self, start: int, end: int) -> tuple[Scope, ...]:
        """Return the scopes around the word there."""
        node = self._tree.node(start, end)
        if node is None:
            return ()
        offset = self._tree.start(node)
        return tuple(around.scope for around in self._around(node) if around.holds(offset))

    def _around(self, node: Node) -> tuple[_Around, ...]:
        path: list[Node] = []
        outer: Node | None = node
        while outer is not None and outer.id not in self._known:
            path.append(outer)
            outer = outer.parent
        around = self._known[outer.id] if outer is not None else ()
        for scope_node in reversed(path):
            own = self._opened(scope_node)
            around = (*around, own) if own is not None else around
            self._known[scope_node.id] = around
        return around

    def _opened(self, node: Node) -> _Around | None:
        """Return the scope that a node opens."""
        if not node.is_named:
            return None
        # In Go parameters are declared in the body's block.
        is_body = self._tree.grammar == "go" and "func" in kind_of(node.parent)
        if node.type in self._also and not is_body:
            return _Around(scope_of(self._tree, node), -1, (0, 0))
        return _around(self._tree, node) if _is_scope(node) else None


def function_named(tree: SyntaxTree, name: str, start: int, end: int) -> Scope | None:
    """Return the scope that bears a name between two offsets, the first of them."""
    for name_start, name_end in tree.identifiers(name):
        node = tree.node(name_start, name_end) if start <= name_start < end else None
        while node is not None and not (node.is_named and _is_scope(node)):
            node = node.parent
        if node is not None and not _around(tree, node).holds(name_start):
            return scope_of(tree, node)
    return None


def _is_scope(node: Node) -> bool:
    if node.type == "function_declarator":
        # The declaration of a function without its body.
        outer = node.parent
        while outer is not None and outer.type.endswith("declarator"):
            outer = outer.parent
        return kind_of(outer) != "function_definition"
    return _SCOPE.match(node.type) is not None


def _around(tree: SyntaxTree, node: Node) -> _Around:
    """Return the scope of a node, where its own name ends, before anything that lies in it, and
    where its receiver is, which does lie in it."""
    scope, name = scope_of(tree, node), child_of(node, "name")
    if node.parent is None or _NO_NAME.search(node.type):
        return _Around(scope, -1, (0, 0))
    if name is None:
        opened = _CALLS.search(tree.text, scope.start, scope.end)
        return _Around(scope, opened.start() if opened else scope.end, (0, 0))
    receiver = child_of(node, "receiver")
    span = (tree.start(receiver), tree.end(receiver)) if receiver is not None else (0, 0)
    return _Around(scope, tree.end(name), span)


def scope_of(tree: SyntaxTree, node: Node) -> Scope:
    """Return the scope that a node is."""
    return Scope(tree.start(node), tree.end(node), node.type)
