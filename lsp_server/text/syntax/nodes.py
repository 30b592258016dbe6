"""Steps from a node of a syntax tree to those around and in it. Each takes None for a node that is
not there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

_FUNCTION = "function|method_d|lambda|closure|class|generator_expression"
_ASYNC = "async".encode("utf-16-le")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node


def child_of(node: Node | None, *names: str) -> Node | None:
    """Return the child that a node has in the first of some fields."""
    if node is None:
        return None
    for name in names:
        if (child := node.child_by_field_name(name)) is not None:
            return child
    return None


def outside(node: Node | None, levels: int = 1) -> Node | None:
    """Return the node that is ``levels`` around one."""
    for _ in range(levels):
        node = node.parent if node is not None else None
    return node


def kind_of(node: Node | None) -> str:
    """Return the type of a node."""
    return node.type if node is not None else ""


def around(node: Node | None) -> Iterator[Node]:
    """Yield the nodes around one, the innermost first."""
    while (node := outside(node)) is not None:
        yield node


def inner(node: Node | None) -> list[Node]:
    """Return the named children of a node."""
    return node.named_children if node is not None else []


def may_await(node: Node) -> bool:
    """Return whether the innermost function around a node is asynchronous."""
    function = enclosing(node.parent, _FUNCTION)
    body = child_of(function, "body")
    if function is None or body is None or node.start_byte < body.start_byte:
        return False
    return _ASYNC in (function.text or b"")[: body.start_byte - function.start_byte]


def enclosing(
    node: Node | None, kinds: re.Pattern[str] | str, until: re.Pattern[str] | str = "(?!)"
) -> Node | None:
    """Return the innermost of a node and those around it whose type matches ``kinds``; None where
    one of ``until`` is further in."""
    while node is not None and not re.search(kinds, node.type):
        if re.search(until, node.type):
            return None
        node = node.parent
    return node


def enclosing_with(node: Node | None, name: str) -> Node | None:
    """Return the innermost of a node and those around it that has a field."""
    while node is not None and node.child_by_field_name(name) is None:
        node = node.parent
    return node
