"""Proposes the third place when the same thing was changed twice in the same role.

What a place is for is its role: the kind of its node, and the names around it, as ``the argument
timeout of connect`` or ``the value of host``. Equal literals in other roles are other things.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.words import refuse_many, whole
from lsp_server.text.line_diff import opcodes
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit

_TOKEN = re.compile(r"\d[\w.]*|\w+|\s+|.", re.DOTALL)
_LITERAL = re.compile(r"string|integer|float|number|true|false|none|null|literal|char")
_CALL = re.compile(r"^call$|call_expression|method_invocation|invocation")
_IMPORT = re.compile(r"import|use_declaration|include")
_INNER = re.compile(r"_(?:content|fragment|start|end)$|escape_sequence")
_ENDS = re.compile(r"(?:statement|block|module|program|definition|body)$")
_TRANSPARENT = {"list", "tuple", "array", "parenthesized_expression"}
_NAMING = ("name", "key", "left", "function", "property", "field")


@dataclass(frozen=True, slots=True)
class RepeatedReplacement:
    """A literal, the function of a call, or an import, that became another one."""

    old: str
    new: str
    role: tuple[str, ...]


def repeated(
    edits: Iterable[RecordedEdit], trees: tuple[SyntaxTree, SyntaxTree]
) -> RepeatedReplacement | None:
    """The replacement that the last edit made, when an earlier one made the same; None for any
    other. ``trees``: of the last edit."""
    found: list[RepeatedReplacement] = []
    for number, edit in enumerate(edits):
        made = _made(edit, trees if number == 0 else None)
        if number == 0 and not made:
            return None
        found += made[:2]
        if found.count(found[0]) > 1:
            return found[0]
    return None


_known: dict[int, tuple[RepeatedReplacement, ...]] = {}
"""What edits replaced, by their numbers: each is looked at once."""
_MOST_KNOWN = 1_000


def _made(
    edit: RecordedEdit, trees: tuple[SyntaxTree, SyntaxTree] | None
) -> tuple[RepeatedReplacement, ...]:
    if edit.number not in _known:
        if len(_known) > _MOST_KNOWN:
            _known.clear()
        _known[edit.number] = tuple(replacements(edit, trees))
    return _known[edit.number]


def replacements(
    edit: RecordedEdit, trees: tuple[SyntaxTree, SyntaxTree] | None = None
) -> Iterator[RepeatedReplacement]:
    """What an edit replaced, one by one; nothing where it did anything else. ``trees``: the
    document without it and with it, where they are known."""
    pairs = _differing(edit.old_text, edit.new_text)
    if not pairs:
        return
    before, now = trees or (edit.tree_before(), edit.tree_now())
    if before is None or now is None:
        return
    start = edit.start_offset()
    for (at, end), (to, until) in pairs:
        old = _whole(before, start + at, start + end)
        new = _whole(now, start + to, start + until)
        if old is None or new is None:
            continue
        role = role_of(before, old)
        if role and (role == role_of(now, new) or role[0] in ("call", "import")):
            yield RepeatedReplacement(_text(before, old), _text(now, new), role)


def places_of(tree: SyntaxTree, replacement: RepeatedReplacement) -> list[TextEdit[int]]:
    """Where a text has the old thing in the same role. Raises WorkTakesTooLong."""
    refuse_many(tree.text, replacement.old)
    found = []
    for at in whole(replacement.old).finditer(tree.text):
        node = _whole(tree, *at.span())
        is_same = node is not None and _text(tree, node) == replacement.old
        if is_same and role_of(tree, node) == replacement.role:  # type: ignore[arg-type]
            title = f"{_short(replacement.old)} → {_short(replacement.new)}"
            found.append(TextEdit(*at.span(), replacement.new, title))
    return found


def role_of(tree: SyntaxTree, node: Node) -> tuple[str, ...]:
    """What a literal, a called function or an import is for; empty for anything else."""
    if _IMPORT.search(node.type):
        return ("import",) if _is_statement(node) else ()
    parent = node.parent
    if parent is not None and _CALL.search(parent.type):
        called = parent.child_by_field_name("function") or parent.child_by_field_name("name")
        if called == node:
            return ("call", str(len(parent.named_children)))
    if not _LITERAL.search(node.type) or _INNER.search(node.type):
        return ()
    names = _names_around(tree, node)
    return ("literal", *names) if names else ()


def _is_statement(node: Node) -> bool:
    return node.type.endswith(("statement", "declaration", "directive"))


def _names_around(tree: SyntaxTree, node: Node) -> tuple[str, ...]:
    """The names that tell what a literal is: of the argument and the function that is called, of
    the key, of the variable."""
    names: list[str] = []
    inner, outer = node, node.parent
    while outer is not None and not _ENDS.search(outer.type):
        named = [outer.child_by_field_name(field) for field in _NAMING]
        own = next((one for one in named if one is not None and one != inner), None)
        if own is not None:
            names.append(_text(tree, own))
            if "argument" not in outer.type:
                break
        elif "argument" in outer.type:
            if inner.child_by_field_name("name") is None:
                names.append(str(outer.named_children.index(inner)))
        elif "unary" in outer.type:
            names.append(outer.type)
        elif outer.type not in _TRANSPARENT:
            names.append(outer.type)
            break
        inner, outer = outer, outer.parent
    return tuple(names)


def _differing(old: str, new: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The stretches in which two texts differ, by tokens, where everything between is the same."""
    before, after = _TOKEN.findall(old), _TOKEN.findall(new)
    if len(before) > 2_000 or len(after) > 2_000:
        return []
    starts, ends = _offsets(before), _offsets(after)
    return [
        ((starts[i], starts[j]), (ends[k], ends[m]))
        for kind, i, j, k, m in opcodes(before, after)
        if kind != "equal"
    ]


def _offsets(tokens: list[str]) -> list[int]:
    places = [0]
    for token in tokens:
        places.append(places[-1] + len(token))
    return places


def _whole(tree: SyntaxTree, start: int, end: int) -> Node | None:
    """The literal, called function or import around a stretch."""
    node = tree.node(start, max(start, end))
    while node is not None:
        if node.parent is None or node.end_byte - node.start_byte > 2 * 400:
            return None
        if node.is_named and role_of(tree, node):
            return node
        node = node.parent
    return None


def _text(tree: SyntaxTree, node: Node) -> str:
    return tree.text[tree.index(node.start_byte) : tree.index(node.end_byte)]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 30 else line[:29] + "…"
