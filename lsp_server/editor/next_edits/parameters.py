"""Adapts the calls of a function when one of its parameters came or went, or when they changed
places: Python, JavaScript, TypeScript, Go, Java, C# and Rust.

Calls are those that scopes, imports and types resolve, never those of a member of that name alone.
One that unpacks a sequence is left alone: what goes where, only running it tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.words import refuse_many, whole
from lsp_server.text.syntax.expression_types import class_around, is_class, receiver_of
from lsp_server.text.syntax.members import READ, Members
from lsp_server.text.syntax.name_uses import NameUse, Reference, text_of
from lsp_server.text.syntax.references import references
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit

_SPLAT = re.compile(r"splat|spread|variadic")
_REST = re.compile(r"list_splat|rest_pattern|variadic|spread_parameter")
_NO_PARAMETER = re.compile(
    r"comment|line_continuation|positional_separator|dictionary_splat|attribute|^this$"
)
_NO_ARGUMENTS = {"comment", "line_comment", "block_comment", "line_continuation"}
CONSTRUCTORS = {"__init__", "constructor"}
_QUALIFIED = {"attribute", "member_expression", "selector_expression", "member_access_expression",
              "field_expression", "scoped_identifier", "generic_function", "generic_name",
              "generic_type", "qualified_name"}  # fmt: skip
_SUPER = (re.compile(r"\b(?:super|base)\s*\("), re.compile(r"\bsuper\(\)\.__init__\s*\("))
"""How a class calls the constructor of the one that it is derived from; the second in Python."""
_CALLED = ("function", "constructor", "type", "name")
BY_NAME = {"python": "{0}={0}", "csharp": "{0}: {0}"}
"""How an argument is given by its name, where a language has that."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as a signature has it."""

    name: str
    has_default: bool
    by_name_only: bool


@dataclass(frozen=True, slots=True)
class SignatureChange:
    """One parameter of a function came or went, or they changed places."""

    function: str
    """For a constructor the name of its class."""
    owner: str
    """The class whose method it is; empty for any other."""
    by_class: int
    """How many arguments come before the others in a call by the class: ``self``."""
    removed: str
    """The parameter that went, or nothing."""
    added: str
    """The parameter without a default that came, or nothing."""
    place: int
    """How many positional arguments come before it in a call; -1: it is given by name."""
    order: tuple[int, ...] = ()
    """Which argument is where now, by its old number."""


def signature_change(
    edit: RecordedEdit, before: SyntaxTree, now: SyntaxTree
) -> tuple[SignatureChange, Node] | None:
    """Return what an edit changed in the parameters of a function, and the function in the text as
    it is now; None for any other edit. before, now: the document without the edit and with it."""
    if before.grammar not in READ:
        return None
    start = edit.start_offset()
    head, tail = common_ends(edit.old_text, edit.new_text)
    ends = [start + len(text) - tail for text in (edit.old_text, edit.new_text)]
    old, new = (list(_functions(tree, start + head, end))
                for tree, end in ((before, ends[0]), (now, ends[1])))  # fmt: skip
    if len(old) != len(new):
        return None
    pairs = [
        (node, other)
        for node, other in zip(old, new, strict=True)
        if _parameters_text(before, node) != _parameters_text(now, other)
    ]
    if len(pairs) != 1:
        return None
    node, other = pairs[0]
    if node.has_error or other.children_by_field_name("parameters")[0].has_error:
        return None
    names = [name_of(function) for function in (node, other)]
    if None in names or text_of(before, names[0]) != text_of(now, names[1]):
        return None
    change = _change(before, node, now, other)
    return (change, other) if change is not None and change.function else None


def calls_to_change(
    change: SignatureChange, tree: SyntaxTree, calls: Iterable[tuple[Node, int]]
) -> list[TextEdit[int]]:
    """Return what becomes of calls of the function in a text; each with the number of arguments
    that are before those of the parameters."""
    edits = []
    for call, shift in calls:
        if call.type == "token_tree":
            # What a macro of Rust is given is not read: the user is led there.
            inside = tree.index(call.end_byte) - 1
            edits.append(TextEdit(inside, inside, "", f"the arguments of {change.function}"))
            continue
        arguments = call.child_by_field_name("arguments") or call.named_children[-1]
        if "argument" not in arguments.type or arguments.has_error:
            continue
        if any(_SPLAT.search(node.type) for node in arguments.named_children):
            continue
        its = replace(change, place=change.place + shift if change.place >= 0 else -1)
        if change.order:
            edit = _swapped(its, tree, arguments, shift)
        else:
            edit = (_without if change.removed else _with)(its, tree, arguments)
        if edit is not None:
            edits.append(edit)
    return edits


def calls_of(tree: SyntaxTree, change: SignatureChange, function: Node) -> list[tuple[Node, int]]:
    """Return the calls of a function in its own file. Raises WorkTakesTooLong."""
    refuse_many(tree.text, change.function)
    name = name_of(function)
    assert name is not None
    offset = tree.index(name.start_byte)
    if text_of(tree, name) in CONSTRUCTORS or function.type == "constructor_declaration":
        calls = calls_at(tree, _of_class(tree, change.function))
        return [(call, 0) for call in (*calls, *_calls_of_derived(tree, change.function))]
    if change.owner:
        uses = Members(tree).places(change.function, change.owner).meant
        return calls_of_method(tree, change, uses) if sum(use.declares for use in uses) == 1 else []
    names = references(tree, change.function)
    own = next((node for node in names if node.start == offset), None)
    if own is None or sum(node.declares and node.scope == own.scope for node in names) != 1:
        return []
    same = [node for node in names if node.scope == own.scope and node.use is own.use]
    return [(call, 0) for call in calls_at(tree, same)]


def calls_of_method(
    tree: SyntaxTree, change: SignatureChange, uses: Iterable[Reference]
) -> list[tuple[Node, int]]:
    """Return the calls of a method at the places where it is meant."""
    calls = []
    for parameter in uses:
        call = next(iter(calls_at(tree, [parameter])), None)
        node = tree.node(parameter.start, parameter.end)
        if call is not None and node is not None:
            before = receiver_of(node) or (node.parent and node.parent.child_by_field_name("path"))
            by_class = text_of(tree, before) in (change.owner, "Self")
            calls.append((call, change.by_class if by_class else 0))
    return calls


def calls_at(tree: SyntaxTree, positions: Iterable[Reference]) -> list[Node]:
    """Return the calls whose function is named at some places."""
    calls = []
    for node in positions:
        called = tree.node(node.start, node.end)
        while called is not None and (outer := called.parent) is not None:
            is_last = outer.children[-1] == called or outer.type.startswith("generic_")
            if outer.type not in _QUALIFIED or not is_last:
                break
            called = outer
        call = called.parent if called is not None else None
        arguments_given = called.next_sibling if called is not None else None
        if (
            call is not None
            and call.type == "token_tree"
            and text_of(tree, arguments_given)[:1] == "("
        ):
            calls += [arguments_given] if arguments_given is not None else []
        if call is None or call.child_by_field_name("arguments") is None:
            continue
        if any(call.child_by_field_name(field) == called for field in _CALLED):
            calls.append(call)
    return calls


def _of_class(tree: SyntaxTree, name: str) -> list[Reference]:
    """Return the places of a class of the file, where there is one of its name."""
    names = references(tree, name)
    arguments_given = [node for node in names if node.declares and node.use is NameUse.VARIABLE]
    if len({node.scope for node in arguments_given}) != 1:
        return []
    return [
        node
        for node in names
        if (node.use is NameUse.VARIABLE and node.scope == arguments_given[0].scope)
        or (node.use is NameUse.MEMBER and node.receiver is None and not node.declares)
    ]


def _calls_of_derived(tree: SyntaxTree, name: str) -> Iterator[Node]:
    """Return the calls of a class's constructor by classes that are derived from it: ``super(…)``,
    and their own where they have no constructor and inherit that one."""
    inherits = tree.grammar not in ("java", "csharp")
    for offset in whole(name).finditer(tree.text):
        outer = tree.node(*offset.span())
        while outer is not None and not is_class(outer):
            outer = outer.parent
        body = outer.child_by_field_name("body") if outer is not None else None
        own = outer.child_by_field_name("name") if outer is not None else None
        if body is None or own is None or offset.end() > tree.index(body.start_byte):
            continue
        if own == tree.node(*offset.span()):
            continue
        text, start = text_of(tree, body), tree.index(body.start_byte)
        for word in _SUPER[tree.grammar == "python"].finditer(text):
            call = tree.node(start + word.start(), start + word.end() - 1)
            while call is not None and not re.search("call|invocation|initializer", call.type):
                call = call.parent
            if call is not None:
                yield call
        if inherits and not any(f"{node}(" in text for node in CONSTRUCTORS):
            yield from calls_at(tree, _of_class(tree, text_of(tree, own)))


# What changed in the signature


def _functions(tree: SyntaxTree, start: int, end: int) -> Iterator[Node]:
    """Functions whose parameters touch a range, in order."""
    node = tree.node(start, max(start, end))
    while node is not None and node.parent is not None and name_of(node) is None:
        node = node.parent
    remaining = [node] if node is not None else []
    while remaining:
        parameter = remaining.pop()
        if tree.index(parameter.end_byte) < start or tree.index(parameter.start_byte) > end:
            continue
        parameters = parameter.child_by_field_name("parameters")
        if parameters is not None and name_of(parameter) is not None and (
            tree.index(parameters.start_byte) < max(end, start + 1)
            and tree.index(parameters.end_byte) > start
        ):  # fmt: skip
            yield parameter
        remaining += reversed(parameter.named_children)


def name_of(function: Node) -> Node | None:
    """Return where the name of a function is, its own or that of the variable whose value it is."""
    if function.child_by_field_name("parameters") is None:
        return None
    name = function.child_by_field_name("name")
    outer = function.parent
    if name is None and outer is not None and outer.child_by_field_name("value") == function:
        name = outer.child_by_field_name("name")
    return name


def _parameters_text(tree: SyntaxTree, function: Node) -> str:
    return text_of(tree, function.child_by_field_name("parameters"))


def _change(before: SyntaxTree, old: Node, now: SyntaxTree, new: Node) -> SignatureChange | None:
    had, has = _parameters(before, old), _parameters(now, new)
    if had is None or has is None:
        return None
    old_names, new_names = [node.name for node in had], [node.name for node in has]
    gone = [node for node in had if node.name not in new_names]
    came = [node for node in has if node.name not in old_names]
    stay = [node.name for node in has if node not in came]
    if len(set(old_names)) < len(had) or len(set(new_names)) < len(has):
        return None
    name = name_of(new)
    assert name is not None
    function, owner = text_of(now, name), class_around(now, name)
    is_constructor = function in CONSTRUCTORS or new.type == "constructor_declaration"
    bound = _bound(now, new)
    by_class = bound and int(not _is_decorated(now, new, "classmethod"))
    names_of = (owner, "") if is_constructor else (function, owner)
    change = SignatureChange(*names_of, by_class, "", "", 0)
    if not gone and not came:
        order = tuple(old_names.index(node) - bound for node in new_names)[bound:]
        is_moved = any(node != offset for offset, node in enumerate(order))
        kinds = [node.by_name_only for node in has] == [node.by_name_only for node in had]
        return replace(change, order=order) if is_moved and kinds and min(order) >= 0 else None
    if len(gone) + len(came) != 1 or stay != [node.name for node in had if node not in gone]:
        return None
    node, names = (gone[0], old_names) if gone else (came[0], new_names)
    if came and node.has_default:
        return None
    index = names.index(node.name) - bound
    if index < 0 and not node.by_name_only:
        return None
    index = -1 if node.by_name_only else index
    if gone:
        return replace(change, removed=node.name, place=index)
    return replace(change, added=node.name, place=index)


def _parameters(tree: SyntaxTree, function: Node) -> list[Parameter] | None:
    """Return the parameters, without ``*args`` and ``**kwargs``; None where one is no name."""
    calls: list[Parameter] = []
    by_name_only = False
    parameters = function.child_by_field_name("parameters")
    assert parameters is not None
    if any(node.type == "params" for node in parameters.children):
        return None
    for node in parameters.named_children:
        pattern = node.child_by_field_name("pattern")
        if _NO_PARAMETER.search(node.type):
            continue
        if node.type == "self_parameter":
            calls.append(Parameter("self", has_default=False, by_name_only=False))
            continue
        inner = node.child(0) if node.type == "typed_parameter" else None
        kinds = [node.type, *(each.type for each in (pattern, inner) if each is not None)]
        if node.type == "keyword_separator" or any(_REST.search(kind) for kind in kinds):
            by_name_only = True
            continue
        if any("dictionary_splat" in kind for kind in kinds):
            continue
        names = node.children_by_field_name("name") or [
            pattern or node.child_by_field_name("left") or inner or node
        ]
        has_default = bool(re.search("default|optional|assignment", node.type)) or any(
            each.type == "=" for each in node.children
        )
        calls += (Parameter(text_of(tree, each), has_default, by_name_only) for each in names)
    return calls


def _bound(tree: SyntaxTree, function: Node) -> int:
    """Return how many parameters a call does not write: ``self``."""
    parameters = function.child_by_field_name("parameters")
    assert parameters is not None
    if tree.grammar == "rust":
        return int(any(node.type == "self_parameter" for node in parameters.named_children))
    outer = function.parent
    if outer is not None and outer.type == "decorated_definition":
        outer = outer.parent
    outer = outer.parent if outer is not None else None
    is_method = outer is not None and outer.type == "class_definition"
    return int(is_method and not _is_decorated(tree, function, "staticmethod"))


def _is_decorated(tree: SyntaxTree, function: Node, name: str) -> bool:
    outer = function.parent
    return (
        outer is not None
        and outer.type == "decorated_definition"
        and any(re.match(rf"@{name}\b", text_of(tree, node)) for node in outer.children)
    )


# What becomes of a call


def _given(arguments: Node) -> list[Node]:
    """Return the arguments alone, without comments and continued lines."""
    return [node for node in arguments.named_children if node.type not in _NO_ARGUMENTS]


def _argument_name(tree: SyntaxTree, argument: Node) -> str:
    """Return the name by which an argument is given; empty for one that is given by its place."""
    return text_of(tree, argument.child_by_field_name("name")) if argument.type in (
        "keyword_argument", "argument"
    ) else ""  # fmt: skip


def _without(change: SignatureChange, tree: SyntaxTree, arguments: Node) -> TextEdit[int] | None:
    values = _given(arguments)
    named = [node for node in values if _argument_name(tree, node) == change.removed]
    positional = [node for node in values if not _argument_name(tree, node)]
    if named:
        gone = named[0]
    elif 0 <= change.place < len(positional):
        gone = positional[change.place]
    else:
        return None
    hunk = _removal(tree, arguments, values, values.index(gone))
    return replace(hunk, note=f"remove the argument {change.removed} of {change.function}")


def _swapped(
    change: SignatureChange, tree: SyntaxTree, arguments: Node, shift: int
) -> TextEdit[int] | None:
    """Return the arguments in their new order; None where some that move are not there by their
    place."""
    values = _given(arguments)
    positional = [node for node in values if not _argument_name(tree, node)][shift:]
    moved = [offset for offset, node in enumerate(change.order) if node != offset]
    if moved[-1] >= len(positional):
        return None
    first, last = positional[moved[0]], positional[moved[-1]]
    pieces, end = [], first.start_byte
    for offset in range(moved[0], moved[-1] + 1):
        between = tree.text[tree.index(end) : tree.index(positional[offset].start_byte)]
        pieces += [between, text_of(tree, positional[change.order[offset]])]
        end = positional[offset].end_byte
    title = f"the new order of {change.function}'s parameters"
    return TextEdit(
        tree.index(first.start_byte), tree.index(last.end_byte), "".join(pieces), title
    )  # fmt: skip


def _removal(tree: SyntaxTree, arguments: Node, values: list[Node], number: int) -> TextEdit[int]:
    """Takes away an argument with its comments: those in lines above it and the one after it in
    its line. A neighbour's stay."""
    gone = values[number]
    if len(values) == 1:
        return TextEdit(
            tree.index(arguments.start_byte) + 1, tree.index(arguments.end_byte) - 1, ""
        )
    last = values[number - 1] if number else None
    row = (last.end_point if last is not None else arguments.start_point)[0]
    comments = [node for node in arguments.named_children if "comment" in node.type]
    start = last.end_byte if last is not None else arguments.start_byte
    above = [node for node in comments if start <= node.start_byte < gone.start_byte]
    end = values[number + 1].start_byte if number + 1 < len(values) else arguments.end_byte
    below = [node for node in comments if gone.end_byte <= node.start_byte < end]
    own = [node for node in below if node.start_point[0] == gone.end_point[0]]
    if number + 1 < len(values):
        first = next((node for node in above if node.start_point[0] > row), gone)
        following = next((node for node in below if node not in own), values[number + 1])
        return TextEdit(tree.index(first.start_byte), tree.index(following.start_byte), "")
    assert last is not None
    end = tree.index((own[-1] if own else gone).end_byte)
    comments_kept = [node for node in above if node.start_point[0] == row]
    if comments_kept:
        rest = tree.text[end:].lstrip(", ")
        indent = tree.text[tree.index(comments_kept[-1].end_byte) : tree.index(gone.start_byte)]
        text = "" if rest[:1] in "\r\n" else indent
        comma = len(tree.text[end:]) - len(tree.text[end:].lstrip(", "))
        return TextEdit(tree.index(comments_kept[-1].end_byte), end + (0 if own else comma), text)
    has_comma = "," in tree.text[tree.index(gone.end_byte) : end]
    return TextEdit(tree.index(last.end_byte), end, "," if has_comma and own else "")


def _with(change: SignatureChange, tree: SyntaxTree, arguments: Node) -> TextEdit[int] | None:
    """Return the new parameter is given what has its name at the call; without such, the user is
    led there."""
    values = _given(arguments)
    positional = [node for node in values if not _argument_name(tree, node)]
    if any(_argument_name(tree, node) == change.added for node in values):
        return None
    title = f"pass {change.added} to {change.function}"
    inside = tree.index(arguments.end_byte) - 1
    by_name = change.place < 0 or change.place > len(positional)
    by_name = by_name or (change.place == len(positional) and len(values) > len(positional))
    wording = BY_NAME.get(tree.grammar)
    if not _is_visible(tree, change.added, arguments) or (by_name and wording is None):
        return TextEdit(inside, inside, "", title)
    if by_name and wording is not None:
        text, index = wording.format(change.added), len(values)
    else:
        text, index = change.added, change.place
    if index < len(values):
        offset = tree.index(values[index].start_byte)
        return TextEdit(offset, offset, f"{text}, ", title)
    offset = tree.index(values[-1].end_byte) if values else tree.index(arguments.start_byte) + 1
    return TextEdit(offset, offset, f", {text}" if values else text, title)


def _is_visible(tree: SyntaxTree, name: str, arguments: Node) -> bool:
    """Return whether a name is bound where a call is, and before it."""
    call = tree.index(arguments.start_byte)
    return any(
        node.declares
        and node.use is NameUse.VARIABLE
        and node.scope is not None
        and node.scope.start <= call < node.scope.end
        and (node.start < call or node.scope.kind == "module")
        for node in references(tree, name)
    )
