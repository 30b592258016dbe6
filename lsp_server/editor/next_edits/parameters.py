"""Adapts the calls of a Python function when one of its parameters came or went.

Calls are those that imports and scopes resolve, never those of an attribute of that name alone. One
with ``*`` or ``**`` in it is left alone: what stands where, only running it tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.words import refuse_many
from lsp_server.text.syntax.python_names import Use, occurrences
from lsp_server.text.syntax.python_references import PythonMembers
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit

_SPLATS = {"list_splat", "dictionary_splat"}
_NO_ARGUMENTS = {"comment", "line_continuation"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as a signature has it."""

    name: str
    has_default: bool
    by_name_only: bool


@dataclass(frozen=True, slots=True)
class SignatureChange:
    """One parameter of a function came or went."""

    function: str
    is_method: bool
    removed: str
    """The parameter that went, or nothing."""
    added: str
    """The parameter without a default that came, or nothing."""
    place: int
    """How many positional arguments stand before it in a call; -1: it is given by name."""


def signature_change(
    edit: RecordedEdit, before: SyntaxTree, now: SyntaxTree
) -> tuple[SignatureChange, Node] | None:
    """The parameter that came or went by an edit, and the function in the text as it is now; None
    for any other edit. before, now: the document without the edit and with it."""
    if before.grammar != "python":
        return None
    start = edit.start_offset()
    old = list(_functions(before, start, start + len(edit.old_text)))
    new = list(_functions(now, start, start + len(edit.new_text)))
    if len(old) != 1 or len(new) != 1 or _name(before, old[0]) != _name(now, new[0]):
        return None
    if old[0].has_error or _parameters_node(new[0]).has_error:
        return None
    change = _change(before, old[0], now, new[0])
    return (change, new[0]) if change is not None else None


def calls_to_change(
    change: SignatureChange, tree: SyntaxTree, function: Node | None, calls: list[Node]
) -> list[TextEdit[int]]:
    """What becomes of calls of the function in a text. function: where it is in the same text."""
    inside = (function.start_byte, function.end_byte) if function is not None else (0, 0)
    edits = []
    for call in calls:
        arguments = call.child_by_field_name("arguments")
        if arguments is None or arguments.type != "argument_list" or arguments.has_error:
            continue
        if any(one.type in _SPLATS for one in arguments.named_children):
            continue
        is_inside = inside[0] <= call.start_byte < inside[1]
        edit = (
            _without(change, tree, arguments)
            if change.removed
            else _with(change, tree, arguments, is_inside=is_inside)
        )
        if edit is not None:
            edits.append(edit)
    return edits


def calls_of(tree: SyntaxTree, function: Node) -> list[Node]:
    """The calls of a function in its own file. Raises WorkTakesTooLong."""
    name = function.child_by_field_name("name")
    assert name is not None
    refuse_many(tree.text, _text(tree, name))
    found = []
    names = occurrences(tree, _text(tree, name))
    members = PythonMembers(tree, names)
    for one in names:
        attribute = one.node.parent if one.use is Use.ATTRIBUTE else None
        call = _call_of(attribute or one.node)
        if call and members.refers_to(one, function) and not members.class_by_name(one):
            found.append(call)
    return found


def calls_by_name(tree: SyntaxTree, name: str) -> list[Node]:
    """The calls of a name of the module."""
    return [
        call
        for one in occurrences(tree, name)
        if one.scope is not None and one.scope.kind == "module" and (call := _call_of(one.node))
    ]


def _call_of(called: Node) -> Node | None:
    """The call whose function an expression is."""
    call = called.parent
    is_call = call is not None and call.type == "call"
    return call if is_call and call.child_by_field_name("function") == called else None  # type: ignore[union-attr]


# What changed in the signature


def _functions(tree: SyntaxTree, start: int, end: int) -> Iterator[Node]:
    """Functions whose parameters touch a range."""
    node = tree.node(start, max(start, end - 1))
    while node is not None and node.type not in ("module", "block"):
        if node.type == "function_definition":
            break
        node = node.parent
    if node is None:
        return
    left = [node]
    while left:
        one = left.pop()
        if tree.index(one.end_byte) <= start or tree.index(one.start_byte) >= end:
            continue
        if one.type == "function_definition":
            parameters = one.child_by_field_name("parameters")
            touches = parameters is not None and (
                tree.index(parameters.start_byte) < end and tree.index(parameters.end_byte) > start
            )
            if touches:
                yield one
        left += one.named_children


def _change(before: SyntaxTree, old: Node, now: SyntaxTree, new: Node) -> SignatureChange | None:
    had, has = _parameters(before, old), _parameters(now, new)
    if had is None or has is None:
        return None
    gone = [one for one in had if one.name not in {other.name for other in has}]
    came = [one for one in has if one.name not in {other.name for other in had}]
    stay = [one.name for one in has if one not in came]
    if len(gone) + len(came) != 1 or stay != [one.name for one in had if one not in gone]:
        return None
    one, names = (gone[0], had) if gone else (came[0], has)
    if came and came[0].has_default:
        return None
    is_method = _is_method(new)
    place = [other.name for other in names].index(one.name) - _bound_arguments(now, new)
    if place < 0 and not one.by_name_only:
        return None
    return SignatureChange(
        _name(now, new),
        is_method,
        removed=one.name if gone else "",
        added="" if gone else one.name,
        place=-1 if one.by_name_only else place,
    )


def _parameters_node(function: Node) -> Node:
    node = function.child_by_field_name("parameters")
    assert node is not None
    return node


def _parameters(tree: SyntaxTree, function: Node) -> list[Parameter] | None:
    """The parameters, without ``*args`` and ``**kwargs``; None where one stands behind ``*args``,
    so that a place tells nothing."""
    found = []
    by_name_only = False
    for one in _parameters_node(function).named_children:
        if one.type in ("comment", "line_continuation", "positional_separator"):
            continue
        if one.type in ("keyword_separator", "list_splat_pattern"):
            by_name_only = True
            continue
        if one.type == "dictionary_splat_pattern":
            continue
        inner = one.child_by_field_name("name") or (one.child(0) if one.child_count else one)
        if inner is not None and inner.type in ("list_splat_pattern", "dictionary_splat_pattern"):
            by_name_only = by_name_only or inner.type == "list_splat_pattern"
            continue
        if inner is None or inner.type != "identifier":
            return None
        found.append(Parameter(_text(tree, inner), "default" in one.type, by_name_only))
    return found


def _is_method(function: Node) -> bool:
    outer = function.parent
    while outer is not None and outer.type in ("decorated_definition", "block"):
        outer = outer.parent
    return outer is not None and outer.type == "class_definition"


def _bound_arguments(tree: SyntaxTree, function: Node) -> int:
    """How many parameters a call does not write: ``self``."""
    if not _is_method(function):
        return 0
    outer = function.parent
    if outer is not None and outer.type == "decorated_definition":
        for one in outer.named_children:
            if one.type == "decorator" and "staticmethod" in _text(tree, one):
                return 0
    return 1


# What becomes of a call


def _without(change: SignatureChange, tree: SyntaxTree, arguments: Node) -> TextEdit[int] | None:
    given = _given(arguments)
    named = [
        one
        for one in given
        if one.type == "keyword_argument" and _text(tree, one.named_children[0]) == change.removed
    ]
    positional = [one for one in given if one.type != "keyword_argument"]
    if named:
        gone = named[0]
    elif 0 <= change.place < len(positional):
        gone = positional[change.place]
    else:
        return None
    hunk = _removal(tree, arguments, given, given.index(gone))
    return replace(hunk, note=f"remove the argument {change.removed} of {change.function}")


def _given(arguments: Node) -> list[Node]:
    """The arguments alone, without comments and continued lines."""
    return [one for one in arguments.named_children if one.type not in _NO_ARGUMENTS]


def _removal(tree: SyntaxTree, arguments: Node, given: list[Node], number: int) -> TextEdit[int]:
    """Takes away an argument with its comments: those in lines above it and the one behind it in
    its line. A neighbour's stay."""
    gone = given[number]
    if len(given) == 1:
        return TextEdit(
            tree.index(arguments.start_byte) + 1, tree.index(arguments.end_byte) - 1, ""
        )
    last = given[number - 1] if number else None
    row = (last.end_point if last is not None else arguments.start_point)[0]
    comments = [one for one in arguments.named_children if one.type == "comment"]
    start = last.end_byte if last is not None else arguments.start_byte
    above = [one for one in comments if start <= one.start_byte < gone.start_byte]
    end = given[number + 1].start_byte if number + 1 < len(given) else arguments.end_byte
    below = [one for one in comments if gone.end_byte <= one.start_byte < end]
    own = [one for one in below if one.start_point[0] == gone.end_point[0]]
    if number + 1 < len(given):
        first = next((one for one in above if one.start_point[0] > row), gone)
        following = next((one for one in below if one not in own), given[number + 1])
        return TextEdit(tree.index(first.start_byte), tree.index(following.start_byte), "")
    assert last is not None
    end = tree.index((own[-1] if own else gone).end_byte)
    kept = [one for one in above if one.start_point[0] == row]
    if kept:
        rest = tree.text[end:].lstrip(", ")
        indent = tree.text[tree.index(kept[-1].end_byte) : tree.index(gone.start_byte)]
        text = "" if rest[:1] in "\r\n" else indent
        comma = len(tree.text[end:]) - len(tree.text[end:].lstrip(", "))
        return TextEdit(tree.index(kept[-1].end_byte), end + (0 if own else comma), text)
    has_comma = "," in tree.text[tree.index(gone.end_byte) : end]
    return TextEdit(tree.index(last.end_byte), end, "," if has_comma and own else "")


def _with(
    change: SignatureChange, tree: SyntaxTree, arguments: Node, *, is_inside: bool
) -> TextEdit[int] | None:
    """The new parameter is given what has its name at the call; without such, the user is led
    there."""
    given = _given(arguments)
    positional = [one for one in given if one.type != "keyword_argument"]
    if any(
        one.type == "keyword_argument" and _text(tree, one.named_children[0]) == change.added
        for one in given
    ):
        return None
    title = f"pass {change.added} to {change.function}"
    inside = tree.index(arguments.end_byte) - 1
    if not is_inside and not _is_visible(tree, change.added, arguments):
        return TextEdit(inside, inside, "", title)
    by_name = change.place < 0 or change.place > len(positional)
    if by_name or (change.place == len(positional) and len(given) > len(positional)):
        text, place = f"{change.added}={change.added}", len(given)
    else:
        text, place = change.added, change.place
    if place < len(given):
        at = tree.index(given[place].start_byte)
        return TextEdit(at, at, f"{text}, ", title)
    at = tree.index(given[-1].end_byte) if given else tree.index(arguments.start_byte) + 1
    return TextEdit(at, at, f", {text}" if given else text, title)


def _is_visible(tree: SyntaxTree, name: str, arguments: Node) -> bool:
    """Whether a name is bound where a call stands, and before it."""
    call = tree.index(arguments.start_byte)
    around: Node | None = arguments
    scopes = set()
    while around is not None:
        if around.type in ("function_definition", "lambda", "module"):
            scopes.add((tree.index(around.start_byte), around.type))
        around = around.parent
    return any(
        one.use.binds
        and one.scope is not None
        and (one.scope.start, one.scope.kind) in scopes
        and (one.start < call or one.scope.kind == "module")
        for one in occurrences(tree, name)
    )


def _name(tree: SyntaxTree, function: Node) -> str:
    name = function.child_by_field_name("name")
    return _text(tree, name) if name is not None else ""


def _text(tree: SyntaxTree, node: Node) -> str:
    return tree.text[tree.index(node.start_byte) : tree.index(node.end_byte)]
