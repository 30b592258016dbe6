"""Functions that become asynchronous or properties, or are properties no more, with their uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.parameters import calls_at, functions_at, is_decorated, name_of
from lsp_server.editor.next_edits.rewrites import is_target
from lsp_server.text.syntax.name_uses import Reference
from lsp_server.text.syntax.nodes import around, child_of, inner, kind_of, may_await, outside
from lsp_server.text.syntax.resolved_names import ResolvedNames
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit
    from lsp_server.text.syntax.tree import SyntaxTree

_HANDED_ON = re.compile(r"(?:asyncio|Promise)\.(?!sleep)\w+\(|(?:\w+\.)?(?:create_task|gather)\(")
"""What takes something to await."""
_TIGHT = re.compile("attribute|member_|subscript|call|non_null|spread_|binary_exp|unary_exp|as_exp")
"""What binds closer than ``await``, or looks so."""


def new_kind(last: RecordedEdit, before: SyntaxTree, now: SyntaxTree) -> tuple[Node, str] | None:
    """Return the name of the function that an edit made one of another kind, and that."""
    start = last.start_offset()
    # A decorator is above the line with the parameters.
    old, new = (functions_at(tree, start, tree.text.find("(", start + len(text)) + 1)
                for tree, text in ((before, last.old_text), (now, last.new_text)))  # fmt: skip
    kinds = {before.text_of(name_of(node)): _kind(before, node) for node in old}
    named = [(name, _kind(now, node)) for node in new if (name := name_of(node)) is not None]
    became = [(name, kind) for name, kind in named if kinds.get(now.text_of(name), kind) != kind]
    return became[0] if len(became) == 1 and kinds[now.text_of(became[0][0])] != "async" else None


def _kind(tree: SyntaxTree, function: Node) -> str:
    """Return ``async`` or ``property``; nothing for any other function, and for a generator."""
    words = {child.type for child in function.children}
    if "get" in words or is_decorated(tree, function, r"(?:functools\.)?(?:cached_)?property"):
        return "property"
    returned = tree.text_of(child_of(function, "return_type"))
    is_promised = tree.grammar == "python" or not returned or "Promise" in returned
    is_generator = "yield" in re.findall(r"\w+", tree.text_of(child_of(function, "body")))
    return "async" if "async" in words and is_promised and not is_generator else ""


def of_kind(names: ResolvedNames, uses: Iterable[Reference], kind: str) -> list[TextEdit[int]]:
    """Return what becomes of uses of a function of a new kind: of a property's all or none."""
    tree, edits = names.tree, list[TextEdit[int]]()
    read = [use for use in uses if not use.declares]
    for member in (outside(use.node) for use in read if kind != "async"):
        call, receiver = outside(member), tree.text_of(child_of(member, "object"))
        is_called = child_of(call, "function") == member and not inner(child_of(call, "arguments"))
        is_plain = receiver and names.class_node(receiver) is None and (is_called or not kind)
        if member is None or call is None or not is_plain or is_target(member):
            return []
        start, end = tree.end(member), tree.end(call if kind else member)
        edits.append(TextEdit(start, end, "" if kind else "()", kind or "call it"))
    return edits if kind != "async" else awaited(names, read)


def awaited(names: ResolvedNames, uses: Iterable[Reference]) -> list[TextEdit[int]]:
    """Return what becomes of the calls that are not awaited in functions that may do so."""
    tree, edits = names.tree, list[TextEdit[int]]()
    for call in sorted(calls_at(tree, uses), key=lambda call: call.end_byte - call.start_byte):
        start, end, outer = tree.start(call), tree.end(call), kind_of(call.parent)
        starts = (tree.start(node) for node in around(call))
        if "await" in outer or any(_HANDED_ON.match(tree.text, offset) for offset in starts):
            continue
        if may_await(call) and not _TIGHT.match(outer):
            edits.append(TextEdit(start, start, "await ", "await it"))
        elif may_await(call) and not any(start < edit.start < end for edit in edits):
            edits.append(TextEdit(start, end, f"(await {tree.text_of(call)})", "await it"))
    return edits
