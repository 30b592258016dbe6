"""The type that a check around or above a place tells a variable there: ``isinstance``,
``instanceof``, the case of a switch by types."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsp_server.text.syntax.nodes import around, child_of, inner, kind_of, outside

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_CHECK = (r"\bisinstance\(\s*{0}\s*,\s*([\w.]+)\s*\)|(?<![\w.]){0}\s+instanceof\s+([\w.]+)"
          r"|(?<![\w.]){0}(\.\w+ ===? [\"']?[\w.-]+)[\"']?")  # fmt: skip
_OTHERWISE = re.compile(r"\bnot\b|\bor\b|!|\|\|")
_LEAVES = re.compile(r"return|raise|throw|continue|break")


def checked_type(tree: SyntaxTree, node: Node, name: str) -> str:
    """Return the type that a check tells the variable ``name`` at a node, or the value that it
    tells of a field: ``.field == value``; empty without one."""
    told = rf"isinstance\(\s*{name}\b|\b{name}\s+instanceof|\.\(type\)|\b{name}\.\w+ [!=]==? "
    if not re.search(rf"{told}|switch \({name}\.", tree.text):
        return ""
    check, last = re.compile(_CHECK.format(name)), node
    for outer in around(node):
        if outer.type == "type_case" and tree.text_of(child_of(outer.parent, "alias")) == name:
            types = outer.children_by_field_name("type")
            return tree.text_of(types[0]) if len(types) == 1 else ""
        if outer.type == "switch_case" and last != child_of(outer, "value"):
            switched = tree.text_of(child_of(outside(outer, 2), "value"))
            value = tree.text_of(child_of(outer, "value")).strip("\"'")
            is_first = outer.prev_named_sibling is None or _leaves(outer.prev_named_sibling)
            if is_first and re.fullmatch(rf"\({name}\.\w+\)", switched):
                return f"{switched[len(name) + 1 : -1]} == {value}"
        if last in (child_of(outer, "consequence"), child_of(outer, "right")):
            condition = tree.text_of(child_of(outer, "condition", "left"))
            match = None if _OTHERWISE.search(condition) else check.search(condition)
        else:
            above = (each for each in outer.children if each.end_byte <= last.start_byte)
            conditions = (_left_without(tree, each) for each in above)
            match = next(filter(None, map(check.fullmatch, conditions)), None)
        if match:
            return match[1] or match[2] or re.sub(" ===? [\"']?", " == ", match[3])
        last = outer
    return ""


def _left_without(tree: SyntaxTree, statement: Node) -> str:
    """Return what holds after a statement that leaves where it does not; empty for any other."""
    body = child_of(statement, "consequence")
    is_alone = kind_of(statement) == "if_statement" and child_of(statement, "alternative") is None
    if not is_alone or not _leaves(body):
        return ""
    condition = tree.text_of(child_of(statement, "condition")).strip("()")
    if unlike := re.fullmatch(r"([\w.]+ )!(==?[^&|]*)", condition):
        return f"{unlike[1]}={unlike[2]}"
    negated = re.fullmatch(r"(?:not\s+|!\s*)\(?(.*?)", condition, re.DOTALL)
    text = negated[1] if negated else ""
    return text + ")" * (text.count("(") - text.count(")"))


def _leaves(block: Node | None) -> bool:
    """Return whether nothing behind a block or a case follows from it."""
    last = inner(block)[-1:]
    return any(_LEAVES.match(kind_of(each)) for each in (block, *last, *inner(*last)[-1:]))
