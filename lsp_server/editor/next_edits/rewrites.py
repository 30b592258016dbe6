"""Reads from an edit which nodes of the tree it rewrote, from the smallest to its statement."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.anti_unification import Term, is_body, is_literal, term_of
from lsp_server.editor.next_edits.parameters import name_of
from lsp_server.text.line_diff import opcodes
from lsp_server.text.syntax.nodes import around, child_of, enclosing, inner, kind_of, outside

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit
    from lsp_server.text.syntax.tree import SyntaxTree

LARGEST_NODE = 4_000
"""Characters of a node that is compared with others."""
MOST_TOKENS = 2_000
MOST_CHANGES = 6
"""Of more changes in a statement, it is looked at all together, and at each alone."""
_TOKEN = re.compile(r"\d[\w.]*|\w+|\s+|[<>]=?|[=!&|+*/%^~?-]+>?|.", re.DOTALL)
_BLANKS = re.compile(r"[ \t]*")
_MODIFIER = re.compile(r"decorator|attribute|annotation|modifier")
_CALL = re.compile(r"^call$|call_expression|invocation")
_STATEMENT = re.compile(r"(?:statement|declaration|definition|_item|directive|assignment)$")
_ENDS = re.compile(r"(?:statement|block|module|program|definition|body)$")
_LISTS = {"list", "tuple", "array"}
_TARGETS = {"delete", "delete_statement", "update_expression", "inc_statement", "dec_statement"}
_TARGET = re.compile("assign|for|short_var")
_NAMING = ("name", "key", "left", "function", "property", "field")


@dataclass(frozen=True, slots=True)
class RewrittenNode:
    """A node and what it became."""

    old: Term
    new: Term
    role: tuple[str, ...]
    """What a literal or called function is for; empty for anything else."""
    parent: tuple[str, int]
    """Kind and start of the node around it."""
    is_target: bool
    """Whether it is assigned to."""
    is_whole: bool
    """Whether nothing else of its statement changed."""
    function: str
    """The name of the function around it."""


Rewrite = tuple[RewrittenNode, ...]
"""One change of an edit: the nodes around it, the smallest first."""


@dataclass(frozen=True, slots=True)
class _Hunk:
    start: int
    end: int
    new_start: int
    new_end: int

    @property
    def by(self) -> int:
        return (self.new_end - self.new_start) - (self.end - self.start)


def rewrites(edit: RecordedEdit, before: SyntaxTree, now: SyntaxTree) -> list[Rewrite]:
    """Return what an edit rewrote: all changes of a statement together, then fewer, then each."""
    hunks = _hunks(edit, before, now)
    groups: dict[tuple[int, int], list[_Hunk]] = {}
    for hunk in hunks:
        groups.setdefault(_statement(before, hunk), []).append(hunk)
    result = []
    for group in groups.values():
        sizes = range(len(group), 0, -1) if len(group) <= MOST_CHANGES else (len(group), 1)
        runs = (group[first : first + n] for n in sizes for first in range(len(group) - n + 1))
        for some in runs:
            levels = tuple(_levels(before, now, hunks, some, is_whole=len(some) == len(group)))
            result += [levels] if levels else []
    return result


def indent_at(text: str, offset: int) -> str:
    """Return the blanks with which a line begins."""
    blanks = _BLANKS.match(text, text.rfind("\n", 0, offset) + 1)
    return blanks.group() if blanks else ""


def _hunks(edit: RecordedEdit, before: SyntaxTree, now: SyntaxTree) -> list[_Hunk]:
    """Return the stretches in which the texts differ, by tokens; blanks as far back as they go."""
    old, new = _TOKEN.findall(edit.old_text), _TOKEN.findall(edit.new_text)
    if len(old) > MOST_TOKENS or len(new) > MOST_TOKENS:
        return []
    start = edit.start_offset()
    starts, ends = ([*accumulate(map(len, tokens), initial=start)] for tokens in (old, new))
    hunks, was, new_text = [], before.text, now.text
    for kind, i, j, k, m in opcodes(old, new):
        if kind == "equal":
            continue
        a, b, c, d = starts[i], starts[j], ends[k], ends[m]
        while a < b and c < d and was[a].isspace() and was[a] == new_text[c]:
            a, c = a + 1, c + 1
        while a < b and c < d and was[b - 1].isspace() and was[b - 1] == new_text[d - 1]:
            b, d = b - 1, d - 1
        while a == b and new_text[c : c + 1].isspace() and was[a : a + 1] == new_text[c]:
            a, b, c, d = a + 1, b + 1, c + 1, d + 1
        while c == d and was[a : a + 1].isspace() and new_text[c : c + 1] == was[a]:
            a, b, c, d = a + 1, b + 1, c + 1, d + 1
        head = was[was.rfind("\n", 0, a) + 1 : a]
        while a == b and was[a : a + 1] in "\r\n" and head.strip() and was[a - 1] in " \t":
            # A blank that was typed before anything else.
            a, b, c = a - 1, b - 1, c - 1
        back = _blanks_to_node(before, a, b) if c == d else 0
        hunks.append(_Hunk(a - back, b - back, c - back, d - back))
    return hunks


def _blanks_to_node(tree: SyntaxTree, start: int, end: int) -> int:
    """Return by how many blanks what goes has to begin earlier to lie in the smallest node."""
    text, sizes = tree.text, list[int]()
    while True:
        node = tree.node(start, end)
        sizes.append(node.end_byte - node.start_byte if node is not None else len(text))
        start, end = start - 1, end - 1
        if start < 0 or not text[start].isspace() or text[start] != text[end]:
            return sizes.index(min(sizes))


def _statement(before: SyntaxTree, hunk: _Hunk) -> tuple[int, int]:
    node = before.node(hunk.start, hunk.end)
    while node is not None and node.parent is not None and not _is_statement(node):
        node = node.parent
    return (node.start_byte, node.end_byte) if node is not None else (0, 0)


def _is_statement(node: Node) -> bool:
    outer = node.parent
    is_in_body = outer is not None and (outer.parent is None or is_body(outer))
    return is_in_body or _STATEMENT.search(node.type) is not None


def _levels(
    before: SyntaxTree, now: SyntaxTree, hunks: list[_Hunk], group: list[_Hunk], *, is_whole: bool
) -> Iterator[RewrittenNode]:
    first, last = group[0].start, group[-1].end
    # What comes after a node may be its end.
    is_end = first == last and not before.text[first - 1 : first].isspace()
    node = before.node(first - is_end, last)
    while node is not None and node.parent is not None and is_literal(node.parent):
        node = node.parent
    while node is not None and (parent := node.parent) is not None:
        start, end = before.start(node), before.end(node)
        if end - start > LARGEST_NODE or is_body(node) or node.has_error:
            return
        others = (hunk for hunk in hunks if hunk not in group)
        if any(each.start < side < each.end for each in others for side in (start, end)):
            return
        by = sum(hunk.by for hunk in hunks if hunk.end <= start and hunk not in group)
        inner = (hunk for hunk in hunks if start <= hunk.start and hunk.end <= end)
        inside = (hunk for hunk in inner if hunk in group or hunk.start > start or hunk.end < end)
        to = end + by + sum(hunk.by for hunk in inside)
        new = _exact(now, start + by, to, node.type)
        if new is not None and start < end:
            old, parts = term_of(before, node), (parent.type, before.start(parent))
            how = role_of(before, node), parts, is_target(node), is_whole
            yield RewrittenNode(old, new, *how, function_around(before, node))
        if _is_statement(node):
            return
        node = parent


def as_long(node: Node) -> Iterator[Node]:
    """Yield the nodes around ``node`` that hold nothing else, the innermost first."""
    size = node.end_byte - node.start_byte
    return takewhile(lambda outer: outer.end_byte - outer.start_byte == size, around(node))


def _exact(tree: SyntaxTree, start: int, end: int, kind: str) -> Term | None:
    """Return the node that is exactly there, of a kind if there are several, or one after
    decorators."""
    node = tree.node(start, end) if start < end else None
    if node is None:
        return None
    if (tree.start(node), tree.end(node)) == (start, end):
        node = next((outer for outer in as_long(node) if outer.type == kind), node)
        return None if node.has_error else term_of(tree, node)
    inner = [hunk for hunk in node.children if start <= tree.start(hunk) and tree.end(hunk) <= end]
    if not inner or not _MODIFIER.search(inner[0].type) or any(hunk.has_error for hunk in inner):
        return None
    if (tree.start(inner[0]), tree.end(inner[-1])) != (start, end):
        return None
    return Term("", tree.text[start:end], start, tuple(term_of(tree, hunk) for hunk in inner))


def function_around(tree: SyntaxTree, node: Node) -> str:
    """Return the name of the innermost function around ``node`` that has one; empty outside."""
    return tree.text_of(next(filter(None, map(name_of, around(node))), None))


def caught_around(tree: SyntaxTree, node: Node) -> str:
    """Return the name of the error in the ``except`` clause of Python that ``node`` is part of."""
    clause = enclosing(node, "^except_clause$", "^try_statement$|^function_d")
    return tree.text_of(child_of(next(iter(inner(clause)), None), "alias"))


def is_target(node: Node) -> bool:
    """Return whether something is assigned to a node, or it is deleted."""
    outer = kind_of(node.parent)
    is_left = child_of(node.parent, "left") == node
    is_changed = {outer, kind_of(child_of(node.parent, "operator"))} & _TARGETS
    return (is_left and _TARGET.search(outer) is not None) or bool(is_changed)


# What a literal or a called function is for


def role_of(tree: SyntaxTree, node: Node) -> tuple[str, ...]:
    """Return what a literal, type or called function is for; empty for anything else."""
    parent = node.parent
    if _CALL.search(kind_of(parent)) and child_of(parent, "function", "name") == node:
        arguments, is_print = inner(child_of(parent, "arguments")), tree.text_of(node) == "print"
        # What is printed elsewhere, by the argument's name, nothing else is told so.
        is_by_name = is_print and any(each.type == "keyword_argument" for each in arguments)
        number = -1 if is_by_name else min(len(arguments), 1 + is_print)
        return ("call", str(number), str(child_of(parent, "object") is None))
    if "type" in node.type + kind_of(parent) and inner(node) and not is_literal(node):
        of_type = parent if kind_of(parent) in ("type", "type_annotation") else node
        outer = outside(of_type)
        returned = child_of(outer, "return_type", "result") == of_type
        return ("type", "" if returned else re.sub("^[a-z]+_(?=.*parameter)", "", kind_of(outer)))
    if (receiver := outside(parent)) and child_of(outside(receiver), "receiver") == receiver:
        return ("receiver",)
    if kind_of(parent) == "parameters" and node.type == "identifier":
        return ("parameter",)
    names = _names_around(tree, node) if is_literal(node) else ()
    return ("literal", *names) if names else ()


def _names_around(tree: SyntaxTree, node: Node) -> tuple[str, ...]:
    """Return the names that tell what a literal is: of argument, function, key and variable."""
    names: list[str] = []
    inner, outer = node, node.parent
    while outer is not None and not _ENDS.search(outer.type):
        named = (outer.child_by_field_name(field) for field in _NAMING)
        own = next((child for child in named if child is not None and child != inner), None)
        if own is not None:
            names.append(tree.text_of(own))
            if "argument" not in outer.type:
                break
        elif "argument" in outer.type:
            if inner.child_by_field_name("name") is None:
                names.append(str(outer.named_children.index(inner)))
        elif "unary" in outer.type or outer.type in _LISTS:
            names.append(outer.type)
        elif outer.type != "parenthesized_expression":
            names.append(outer.type)
            break
        inner, outer = outer, outer.parent
    return tuple(names)
