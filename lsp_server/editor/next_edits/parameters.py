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
    """What an edit changed in the parameters of a function, and the function in the text as it is
    now; None for any other edit. before, now: the document without the edit and with it."""
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
        (one, other)
        for one, other in zip(old, new, strict=True)
        if _parameters_text(before, one) != _parameters_text(now, other)
    ]
    if len(pairs) != 1:
        return None
    one, other = pairs[0]
    if one.has_error or other.children_by_field_name("parameters")[0].has_error:
        return None
    names = [name_of(function) for function in (one, other)]
    if None in names or text_of(before, names[0]) != text_of(now, names[1]):
        return None
    change = _change(before, one, now, other)
    return (change, other) if change is not None and change.function else None


def calls_to_change(
    change: SignatureChange, tree: SyntaxTree, calls: Iterable[tuple[Node, int]]
) -> list[TextEdit[int]]:
    """What becomes of calls of the function in a text; each with the number of arguments that are
    before those of the parameters."""
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
        if any(_SPLAT.search(one.type) for one in arguments.named_children):
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
    """The calls of a function in its own file. Raises WorkTakesTooLong."""
    refuse_many(tree.text, change.function)
    name = name_of(function)
    assert name is not None
    at = tree.index(name.start_byte)
    if text_of(tree, name) in CONSTRUCTORS or function.type == "constructor_declaration":
        made = calls_at(tree, _of_class(tree, change.function))
        return [(call, 0) for call in (*made, *_calls_of_derived(tree, change.function))]
    if change.owner:
        return calls_of_method(tree, change, alone=True)
    names = references(tree, change.function)
    own = next((one for one in names if one.start == at), None)
    if own is None or sum(one.declares and one.scope == own.scope for one in names) != 1:
        return []
    same = [one for one in names if one.scope == own.scope and one.use is own.use]
    return [(call, 0) for call in calls_at(tree, same)]


def calls_of_method(
    tree: SyntaxTree, change: SignatureChange, *, alone: bool
) -> list[tuple[Node, int]]:
    """The calls of a method, by the types of what is before the dot; none where there are
    several of its name. alone: its class is in this text."""
    meant = Members(tree).places(change.function, change.owner).meant
    if sum(one.declares for one in meant) != alone:
        return []
    found = []
    for one in meant:
        call = next(iter(calls_at(tree, [one])), None)
        node = tree.node(one.start, one.end)
        if call is not None and node is not None:
            before = receiver_of(node) or (node.parent and node.parent.child_by_field_name("path"))
            by_class = text_of(tree, before) in (change.owner, "Self")
            found.append((call, change.by_class if by_class else 0))
    return found


def calls_at(tree: SyntaxTree, places: Iterable[Reference]) -> list[Node]:
    """The calls whose function is named at some places."""
    found = []
    for one in places:
        called = tree.node(one.start, one.end)
        while called is not None and (outer := called.parent) is not None:
            is_last = outer.children[-1] == called or outer.type.startswith("generic_")
            if outer.type not in _QUALIFIED or not is_last:
                break
            called = outer
        call = called.parent if called is not None else None
        given = called.next_sibling if called is not None else None
        if call is not None and call.type == "token_tree" and text_of(tree, given)[:1] == "(":
            found += [given] if given is not None else []
        if call is None or call.child_by_field_name("arguments") is None:
            continue
        if any(call.child_by_field_name(field) == called for field in _CALLED):
            found.append(call)
    return found


def _of_class(tree: SyntaxTree, name: str) -> list[Reference]:
    """The places of a class of the file, where there is one of its name."""
    names = references(tree, name)
    given = [one for one in names if one.declares and one.use is NameUse.VARIABLE]
    if len({one.scope for one in given}) != 1:
        return []
    return [
        one
        for one in names
        if (one.use is NameUse.VARIABLE and one.scope == given[0].scope)
        or (one.use is NameUse.MEMBER and one.receiver is None and not one.declares)
    ]


def _calls_of_derived(tree: SyntaxTree, name: str) -> Iterator[Node]:
    """The calls of a class's constructor by classes that are derived from it: ``super(…)``, and
    their own where they have no constructor and inherit that one."""
    inherits = tree.grammar not in ("java", "csharp")
    for at in whole(name).finditer(tree.text):
        outer = tree.node(*at.span())
        while outer is not None and not is_class(outer):
            outer = outer.parent
        body = outer.child_by_field_name("body") if outer is not None else None
        own = outer.child_by_field_name("name") if outer is not None else None
        if body is None or own is None or at.end() > tree.index(body.start_byte):
            continue
        if own == tree.node(*at.span()):
            continue
        text, start = text_of(tree, body), tree.index(body.start_byte)
        for word in _SUPER[tree.grammar == "python"].finditer(text):
            call = tree.node(start + word.start(), start + word.end() - 1)
            while call is not None and not re.search("call|invocation|initializer", call.type):
                call = call.parent
            if call is not None:
                yield call
        if inherits and not any(f"{one}(" in text for one in CONSTRUCTORS):
            yield from calls_at(tree, _of_class(tree, text_of(tree, own)))


# What changed in the signature


def _functions(tree: SyntaxTree, start: int, end: int) -> Iterator[Node]:
    """Functions whose parameters touch a range, in order."""
    node = tree.node(start, max(start, end))
    while node is not None and node.parent is not None and name_of(node) is None:
        node = node.parent
    left = [node] if node is not None else []
    while left:
        one = left.pop()
        if tree.index(one.end_byte) < start or tree.index(one.start_byte) > end:
            continue
        parameters = one.child_by_field_name("parameters")
        if parameters is not None and name_of(one) is not None and (
            tree.index(parameters.start_byte) < max(end, start + 1)
            and tree.index(parameters.end_byte) > start
        ):  # fmt: skip
            yield one
        left += reversed(one.named_children)


def name_of(function: Node) -> Node | None:
    """Where the name of a function is, its own or that of the variable whose value it is."""
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
    old_names, new_names = [one.name for one in had], [one.name for one in has]
    gone = [one for one in had if one.name not in new_names]
    came = [one for one in has if one.name not in old_names]
    stay = [one.name for one in has if one not in came]
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
        order = tuple(old_names.index(one) - bound for one in new_names)[bound:]
        is_moved = any(one != at for at, one in enumerate(order))
        kinds = [one.by_name_only for one in has] == [one.by_name_only for one in had]
        return replace(change, order=order) if is_moved and kinds and min(order) >= 0 else None
    if len(gone) + len(came) != 1 or stay != [one.name for one in had if one not in gone]:
        return None
    one, names = (gone[0], old_names) if gone else (came[0], new_names)
    if came and one.has_default:
        return None
    place = names.index(one.name) - bound
    if place < 0 and not one.by_name_only:
        return None
    place = -1 if one.by_name_only else place
    if gone:
        return replace(change, removed=one.name, place=place)
    return replace(change, added=one.name, place=place)


def _parameters(tree: SyntaxTree, function: Node) -> list[Parameter] | None:
    """The parameters, without ``*args`` and ``**kwargs``; None where one is no name."""
    found: list[Parameter] = []
    by_name_only = False
    parameters = function.child_by_field_name("parameters")
    assert parameters is not None
    if any(one.type == "params" for one in parameters.children):
        return None
    for one in parameters.named_children:
        pattern = one.child_by_field_name("pattern")
        if _NO_PARAMETER.search(one.type):
            continue
        if one.type == "self_parameter":
            found.append(Parameter("self", has_default=False, by_name_only=False))
            continue
        inner = one.child(0) if one.type == "typed_parameter" else None
        kinds = [one.type, *(each.type for each in (pattern, inner) if each is not None)]
        if one.type == "keyword_separator" or any(_REST.search(kind) for kind in kinds):
            by_name_only = True
            continue
        if any("dictionary_splat" in kind for kind in kinds):
            continue
        names = one.children_by_field_name("name") or [
            pattern or one.child_by_field_name("left") or inner or one
        ]
        has_default = bool(re.search("default|optional|assignment", one.type)) or any(
            each.type == "=" for each in one.children
        )
        found += (Parameter(text_of(tree, each), has_default, by_name_only) for each in names)
    return found


def _bound(tree: SyntaxTree, function: Node) -> int:
    """How many parameters a call does not write: ``self``."""
    parameters = function.child_by_field_name("parameters")
    assert parameters is not None
    if tree.grammar == "rust":
        return int(any(one.type == "self_parameter" for one in parameters.named_children))
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
        and any(re.match(rf"@{name}\b", text_of(tree, one)) for one in outer.children)
    )


# What becomes of a call


def _given(arguments: Node) -> list[Node]:
    """The arguments alone, without comments and continued lines."""
    return [one for one in arguments.named_children if one.type not in _NO_ARGUMENTS]


def _argument_name(tree: SyntaxTree, argument: Node) -> str:
    """The name by which an argument is given; empty for one that is given by its place."""
    return text_of(tree, argument.child_by_field_name("name")) if argument.type in (
        "keyword_argument", "argument"
    ) else ""  # fmt: skip


def _without(change: SignatureChange, tree: SyntaxTree, arguments: Node) -> TextEdit[int] | None:
    given = _given(arguments)
    named = [one for one in given if _argument_name(tree, one) == change.removed]
    positional = [one for one in given if not _argument_name(tree, one)]
    if named:
        gone = named[0]
    elif 0 <= change.place < len(positional):
        gone = positional[change.place]
    else:
        return None
    hunk = _removal(tree, arguments, given, given.index(gone))
    return replace(hunk, note=f"remove the argument {change.removed} of {change.function}")


def _swapped(
    change: SignatureChange, tree: SyntaxTree, arguments: Node, shift: int
) -> TextEdit[int] | None:
    """The arguments in their new order; None where some that move are not there by their place."""
    given = _given(arguments)
    positional = [one for one in given if not _argument_name(tree, one)][shift:]
    moved = [at for at, one in enumerate(change.order) if one != at]
    if moved[-1] >= len(positional):
        return None
    first, last = positional[moved[0]], positional[moved[-1]]
    parts, end = [], first.start_byte
    for at in range(moved[0], moved[-1] + 1):
        between = tree.text[tree.index(end) : tree.index(positional[at].start_byte)]
        parts += [between, text_of(tree, positional[change.order[at]])]
        end = positional[at].end_byte
    title = f"the new order of {change.function}'s parameters"
    return TextEdit(
        tree.index(first.start_byte), tree.index(last.end_byte), "".join(parts), title
    )  # fmt: skip


def _removal(tree: SyntaxTree, arguments: Node, given: list[Node], number: int) -> TextEdit[int]:
    """Takes away an argument with its comments: those in lines above it and the one after it in
    its line. A neighbour's stay."""
    gone = given[number]
    if len(given) == 1:
        return TextEdit(
            tree.index(arguments.start_byte) + 1, tree.index(arguments.end_byte) - 1, ""
        )
    last = given[number - 1] if number else None
    row = (last.end_point if last is not None else arguments.start_point)[0]
    comments = [one for one in arguments.named_children if "comment" in one.type]
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


def _with(change: SignatureChange, tree: SyntaxTree, arguments: Node) -> TextEdit[int] | None:
    """The new parameter is given what has its name at the call; without such, the user is led
    there."""
    given = _given(arguments)
    positional = [one for one in given if not _argument_name(tree, one)]
    if any(_argument_name(tree, one) == change.added for one in given):
        return None
    title = f"pass {change.added} to {change.function}"
    inside = tree.index(arguments.end_byte) - 1
    by_name = change.place < 0 or change.place > len(positional)
    by_name = by_name or (change.place == len(positional) and len(given) > len(positional))
    wording = BY_NAME.get(tree.grammar)
    if not _is_visible(tree, change.added, arguments) or (by_name and wording is None):
        return TextEdit(inside, inside, "", title)
    if by_name and wording is not None:
        text, place = wording.format(change.added), len(given)
    else:
        text, place = change.added, change.place
    if place < len(given):
        at = tree.index(given[place].start_byte)
        return TextEdit(at, at, f"{text}, ", title)
    at = tree.index(given[-1].end_byte) if given else tree.index(arguments.start_byte) + 1
    return TextEdit(at, at, f", {text}" if given else text, title)


def _is_visible(tree: SyntaxTree, name: str, arguments: Node) -> bool:
    """Whether a name is bound where a call is, and before it."""
    call = tree.index(arguments.start_byte)
    return any(
        one.declares
        and one.use is NameUse.VARIABLE
        and one.scope is not None
        and one.scope.start <= call < one.scope.end
        and (one.start < call or one.scope.kind == "module")
        for one in references(tree, name)
    )
