"""Replaces tokens by others where an instruction names both: ``use const instead of var``,
``replace console.log by logger.info``."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lsp_server.editor.editing.checks import new_problem
from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.editing.rename_wordings import replacement_in
from lsp_server.editor.editing.renames import AskedRename, EditedPart, Span, rename_changes
from lsp_server.shared.errors import EditRefused
from lsp_server.text.syntax.resolved_names import ResolvedNames
from lsp_server.text.syntax.roles import Role
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from tree_sitter import Node

_CODE = re.compile(r"\S+|[\w.]+\(.*\)")
_DECLARED = re.compile(r"\s*(\w+)(\s*(?:=|of\b|in\b|:))?")
_AGAIN = r"\s*(?:(?:[-+*/%&|^]|<<|>>>?|\*\*|&&|\|\||\?\?)?=(?![=>])|\+\+|--)"


def settled_changes(instruction: str, where: EditedPart) -> AskedRename | None:
    """Return the hunks of the replacement or the rename that an instruction asks for; None where it
    asks for something else, which is left to the model. Raises EditRefused."""
    return _replaced(instruction, where) or rename_changes(instruction, where)


def _replaced(instruction: str, where: EditedPart) -> AskedRename | None:
    replacement = replacement_in(instruction)
    tree = (
        SyntaxTree.of(where.text, where.language, where.path) if replacement is not None else None
    )
    is_call = replacement is not None and replacement.old.count(".") != replacement.new.count(".")
    if replacement is None or tree is None or is_call or hasattr(builtins, replacement.old):
        return None
    nodes = [*_nodes(replacement.old, where, tree)]
    if any("identifier" in node.type for _, node in nodes):
        if not replacement.is_plain:
            return None
        names = ResolvedNames(tree)
        if any(use.declares for use in names.uses(replacement.old)):
            return rename_changes(f"rename {replacement.old} to {replacement.new}", where)
    if replacement.new == "const":
        _refuse_constant([end for (_, end), _ in nodes], where)
    hunks = [TextEdit(start - where.start, end - where.start, replacement.new)
             for (start, end), _ in nodes]  # fmt: skip
    changed = apply_hunks(where.text, AskedRename(hunks).moved(where.start))
    is_broken = not _CODE.fullmatch(replacement.new) or new_problem(
        where.text, changed, where.language
    )
    return AskedRename(hunks) if nodes and not is_broken else None


def _nodes(code: str, where: EditedPart, tree: SyntaxTree) -> Iterator[tuple[Span, Node]]:
    """Yield the spans of the tokens ``code`` in the code of a range, and their nodes."""
    edges = r"(?<![\w$])" * code[0].isalnum(), r"(?![\w$])" * code[-1].isalnum()
    pattern = re.compile(re.escape(code).join(edges))
    for match in pattern.finditer(where.text, where.start, where.end):
        start, end = match.span()
        first, last = tree.node(start, start + 1), tree.node(end - 1, end)
        is_token = first and last and tree.start(first) == start and tree.end(last) == end
        if is_token and (node := tree.node(start, end)) and tree.role_at(start) is Role.CODE:
            yield (start, end), node


def _refuse_constant(ends: list[int], where: EditedPart) -> None:
    """Raise EditRefused where a name behind one of ``ends`` has no value, or gets another later."""
    for end in ends:
        name = _DECLARED.match(where.text, end)
        if name is None:
            continue
        again = rf"(?<![\w.]){name[1]}{_AGAIN}|(?:\+\+|--){name[1]}\b"
        if not name[2] or re.search(again, where.text[name.end() :]):
            line = where.line(name.start(1))
            raise EditRefused(f"{name[1]} of line {line} gets a value later; ask for let there")
