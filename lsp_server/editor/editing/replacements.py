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
_AGAIN = re.compile(r"\s*(?:(?:[-+*/%&|^]|<<|>>>?|\*\*|&&|\|\||\?\?)?=(?![=>])|\+\+|--)")


def settled_changes(instruction: str, where: EditedPart) -> AskedRename | None:
    """Return the hunks of the replacement or the rename that an instruction asks for; None where it
    asks for something else, which is left to the model. Raises EditRefused."""
    return _replaced(instruction, where) or rename_changes(instruction, where)


def _replaced(instruction: str, where: EditedPart) -> AskedRename | None:
    replacement = replacement_in(instruction)
    if replacement is None or not _CODE.fullmatch(replacement.new):
        return None
    old, new = replacement.old, replacement.new
    if old.endswith(")") and new.isidentifier() and not re.search(rf"\b{new}\b", where.text):
        # It is a function that does the same, called otherwise.
        return None
    tree = SyntaxTree.of(where.text, where.language, where.path)
    if tree is None or old.count(".") != new.count(".") or hasattr(builtins, old):
        return None
    nodes = [*_nodes(old, where, tree)]
    if any("identifier" in node.type for _, node in nodes):
        if not replacement.is_plain:
            return None
        if any(use.declares for use in ResolvedNames(tree).uses(old)):
            return rename_changes(f"rename {old} to {new}", where)
    hunks = [TextEdit(start - where.start, end - where.start, new) for (start, end), _ in nodes]
    changed = apply_hunks(where.text, AskedRename(hunks).moved(where.start))
    if not nodes or new_problem(where.text, changed, where.language):
        return None
    if new in ("const", "let"):
        _refuse_lost([end for (_, end), _ in nodes], where, changed, new)
    return AskedRename(hunks)


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


def _refuse_lost(ends: list[int], where: EditedPart, changed: str, new: str) -> None:
    """Raise EditRefused where a name behind one of ``ends`` gets another value or has none, as no
    constant may, or is used outside of its block."""
    texts = where.text, changed
    before, after = (ResolvedNames.of(text, where.language, where.path) for text in texts)
    assert before is not None
    assert after is not None
    for name in filter(None, (_DECLARED.match(where.text, end) for end in ends)):
        uses, line = before.uses(name[1]), f"{name[1]} of line {where.line(name.start(1))}"
        scopes = {use.scope for use in uses if use.start == name.start(1)}
        others = [use for use in uses if use.scope in scopes and use.start != name.start(1)]
        again = any(_AGAIN.match(where.text, use.end) for use in others)
        again |= any(where.text.endswith(("++", "--"), 0, use.start) for use in others)
        if new == "const" and (again or not name[2]):
            raise EditRefused(f"{line} gets a value later; ask for let there")
        if None in {use.scope for use in after.uses(name[1])} - {use.scope for use in uses}:
            raise EditRefused(f"{line} is used outside of its block; select other lines")
