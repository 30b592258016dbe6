"""Adapts the calls of a function when one of its parameters came or went, or when they changed
places: Python, JavaScript, TypeScript, Go, Java, C# and Rust.

Calls are those that scopes, imports and types resolve, never those of a member of that name alone.
One that unpacks a sequence is left alone: what goes where, only running it tells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.words import refuse_many, whole
from lsp_server.text.syntax.members import READ, Members
from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import around, child_of, enclosing, inner, kind_of, outside
from lsp_server.text.syntax.python_references import PARTIAL
from lsp_server.text.syntax.resolved_names import ResolvedNames, class_around, is_class, receiver_of
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
              "generic_type", "qualified_name", "await_expression"}  # fmt: skip
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
    index: int
    """How many positional arguments come before it in a call; -1: it is given by name."""
    order: tuple[int, ...] = ()
    """Which argument is where now, by its old number."""
    named: tuple[str, ...] = ()
    """What is now written before each argument by its old number: its name, or nothing."""
    declared: str = ""
    """The text of the parameter that came."""
    had: int = 0
    """How many parameters there were."""


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
    old, new = (list(functions_at(tree, start + head, end))
                for tree, end in ((before, ends[0]), (now, ends[1])))  # fmt: skip
    if len(old) != len(new):
        return None
    pairs = [(node, other) for node, other in zip(old, new, strict=True)
             if before.text_of(child_of(node, "parameters"))
             != now.text_of(child_of(other, "parameters"))]  # fmt: skip
    if len(pairs) != 1:
        return None
    node, other = pairs[0]
    is_same = before.text_of(name_of(node)) == now.text_of(name_of(other))
    if not is_same or node.has_error or other.children_by_field_name("parameters")[0].has_error:
        return None
    change = _change(before, node, now, other)
    return (change, other) if change is not None and change.function else None


def calls_to_change(
    change: SignatureChange, names: ResolvedNames, calls: Iterable[tuple[Node, int]]
) -> list[TextEdit[int]]:
    """Return what becomes of calls of the function in a text; each with the number of arguments
    that are before those of the parameters."""
    edits, tree = [], names.tree
    for call, shift in calls:
        if call.type == "token_tree":
            # What a macro of Rust is given is not read: the user is led there.
            inside = tree.end(call) - 1
            edits.append(TextEdit(inside, inside, "", f"the arguments of {change.function}"))
            continue
        arguments = child_of(call, "arguments") or call.named_children[-1]
        if "argument" not in arguments.type or arguments.has_error:
            continue
        if any(_SPLAT.search(node.type) for node in arguments.named_children):
            continue
        is_partial = PARTIAL.match(tree.text_of(call)) is not None
        if is_partial and not (change.removed and arguments.named_child_count != 2):
            # One that would hand nothing on has to go itself.
            continue
        number = change.index + shift + is_partial
        its = replace(change, index=number if change.index >= 0 else -1)
        if change.order:
            edit = _swapped(its, names, arguments, shift)
        else:
            edit = (_without if change.removed else _with)(its, names, arguments)
        if edit is not None:
            edits.append(edit)
    return edits


def edits_of(change: SignatureChange, names: ResolvedNames, function: Node) -> list[TextEdit[int]]:
    """Return what becomes of the calls of a function in its own file, and of the signatures that
    have to be as its own. Raises WorkTakesTooLong."""
    tree, name = names.tree, name_of(function)
    refuse_many(tree.text, change.function)
    assert name is not None
    called = []
    if tree.text_of(name) in CONSTRUCTORS or function.type == "constructor_declaration":
        called += calls_at(tree, _of_class(names, change.function))
        called += calls_at(tree, (use for use in names.uses("cls") if use.node is not None
                                  and class_around(tree, use.node) == change.function))  # fmt: skip
        called += calls_of_derived(names, change.function)
    elif change.owner:
        uses = Members(names).places(change.function, change.owner).meant
        first = next((use.node for use in uses if use.declares), None)
        is_first = first == name or function.type == "method_elem"
        return edits_of_method(change, names, uses, function) if is_first else []
    elif own := names.use_at(name, change.function):
        same = [use for use in names.uses(change.function)
                if use.scope == own.scope and use.use is own.use]  # fmt: skip
        if sum(use.declares for use in same) == 1:
            called += calls_at(tree, same, partials=True)
    return calls_to_change(change, names, [(call, 0) for call in called])


def edits_of_method(
    change: SignatureChange, names: ResolvedNames, uses: Sequence[Reference], own: Node | None
) -> list[TextEdit[int]]:
    """Return what becomes of the calls of a method at the places where it is meant, and of the
    signatures of classes that keep it; nothing where one of these is of another kind. own: the
    function that was changed, where it is in this text."""
    edits, owners = [], set[str]()
    for name in (use.node for use in uses if use.declares and use.node is not None):
        owner, function = class_around(names.tree, name), name.parent
        edit = _signature(change, names, function) if function != own else None
        if owner in owners or (edit is None and function != own):
            return []
        owners.add(owner)
        edits += [edit] if edit is not None else []
    calls: list[tuple[Node, int]] = []
    for use in uses:
        before = receiver_of(use.node) or child_of(outside(use.node), "path")
        by_class = names.tree.text_of(before) in (change.owner, "Self")
        shift = change.by_class if by_class else 0
        calls += ((call, shift) for call in calls_at(names.tree, [use], partials=True))
    return [*edits, *calls_to_change(change, names, calls)]


def _signature(
    change: SignatureChange, names: ResolvedNames, function: Node | None
) -> TextEdit[int] | None:
    """Return what becomes of another signature that has to be as the changed one; None where it was
    not, or where its function uses what goes or has what comes."""
    parameters = child_of(function, "parameters")
    had = _parameters(names.tree, function) if function and parameters else None
    if parameters is None or function is None or had is None or len(had) != change.had:
        return None
    tree, values, bound = names.tree, _given(parameters), _bound(names.tree, function)
    if change.order:
        return None if any(change.named) else _swapped(change, names, parameters, bound)
    index = change.index + bound
    name = change.added or (had[index].name.strip("_") if change.index >= 0 else "")
    body = tree.text_of(child_of(function, "body"))
    is_used = bool(name) and whole(name).search(body) is not None
    is_whole = len(values) == len(had) and bool(change.removed or change.declared)
    if not is_whole or change.index < 0 or is_used:
        return None
    title = f"the parameters of {change.function}"
    if change.removed:
        return replace(_removal(tree, parameters, values, index), note=title)
    return _inserted(tree, parameters, values, index, change.declared, title)


def calls_at(tree: SyntaxTree, uses: Iterable[Reference], *, partials: bool = False) -> list[Node]:
    """Return the calls whose function is named at some places; ``partials``: and those of
    ``partial`` that hand their arguments on to it."""
    calls = []
    for use in uses:
        called = use.node
        while called is not None and (outer := called.parent) is not None:
            is_last = outer.children[-1] == called or outer.type.startswith("generic_")
            if outer.type not in _QUALIFIED or not is_last:
                break
            called = outer
        call = outside(called)
        if called is None or call is None:
            continue
        arguments = called.next_sibling
        is_macro = call.type == "token_tree" and tree.text_of(arguments)[:1] == "("
        if arguments is not None and is_macro:
            calls.append(arguments)
        is_called = any(child_of(call, name) == called for name in _CALLED)
        if child_of(call, "arguments") is not None and is_called:
            calls.append(call)
        outer = outside(call) if partials and inner(call)[:1] == [called] else None
        if outer is not None and PARTIAL.match(tree.text_of(outer)):
            calls.append(outer)
    return calls


def _of_class(names: ResolvedNames, name: str) -> list[Reference]:
    """Return the places of a class of the file, where there is one of its name."""
    uses = names.uses(name)
    scopes = {use.scope for use in uses if use.declares and use.use is NameUse.VARIABLE}
    if len(scopes) != 1:
        return []
    bare = {use for use in uses if use.use is NameUse.MEMBER and use.receiver is None}
    return [use for use in uses if (use.use is NameUse.VARIABLE and use.scope in scopes)
            or (use in bare and not use.declares)]  # fmt: skip


def calls_of_derived(names: ResolvedNames, name: str) -> Iterator[Node]:
    """Return the calls of a class's constructor by classes that are derived from it: ``super(…)``,
    and their own where they have no constructor and inherit that one."""
    tree = names.tree
    inherits = tree.grammar not in ("java", "csharp")
    for offset in whole(name).finditer(tree.text):
        here = tree.node(*offset.span())
        outer = here if is_class(here) else next(filter(is_class, around(here)), None)
        body, own = child_of(outer, "body"), child_of(outer, "name")
        if body is None or own is None or offset.end() > tree.start(body) or own == here:
            continue
        text, start = tree.text_of(body), tree.start(body)
        for word in _SUPER[tree.grammar == "python"].finditer(text):
            called = tree.node(start + word.start(), start + word.end() - 1)
            call = enclosing(called, "call|invocation|initializer")
            if call is not None:
                yield call
        if inherits and not any(f"{node}(" in text for node in CONSTRUCTORS):
            yield from calls_at(tree, _of_class(names, tree.text_of(own)))


# What changed in the signature


def functions_at(tree: SyntaxTree, start: int, end: int) -> Iterator[Node]:
    """Functions whose parameters touch a range, in order."""
    node = tree.node(start, max(start, end))
    while node is not None and node.parent is not None and name_of(node) is None:
        node = node.parent
    remaining = [node] if node is not None else []
    while remaining:
        parameter = remaining.pop()
        if tree.end(parameter) < start or tree.start(parameter) > end:
            continue
        parameters = child_of(parameter, "parameters")
        if parameters is not None and name_of(parameter) is not None and (
            tree.start(parameters) < max(end, start + 1)
            and tree.end(parameters) > start
        ):  # fmt: skip
            yield parameter
        remaining += reversed(parameter.named_children)


def name_of(function: Node | None) -> Node | None:
    """Return where the name of a function is, its own or that of the variable whose value it is."""
    if child_of(function, "parameters") is None:
        return None
    outer = outside(function)
    is_value = child_of(outer, "value") == function
    return child_of(function, "name") or (child_of(outer, "name") if is_value else None)


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
    function, owner = now.text_of(name), class_around(now, name)
    is_constructor = function in CONSTRUCTORS or new.type == "constructor_declaration"
    bound = _bound(now, new)
    by_class = bound and int(not is_decorated(now, new, "classmethod"))
    names_of = (owner, "") if is_constructor else (function, owner)
    # A method of Go promises nothing: the interface does that wants it.
    count = len(had) if now.grammar != "go" or new.type == "method_elem" else -1
    change = SignatureChange(*names_of, by_class, "", "", 0, had=count)
    if not gone and not came:
        order = tuple(old_names.index(node) - bound for node in new_names)[bound:]
        is_moved = any(node != offset for offset, node in enumerate(order))
        was, by_name = ({node.name for node in each if node.by_name_only} for each in (had, has))
        newly = by_name - was
        named = tuple(f"{name}=" if name in newly else "" for name in old_names[bound:])
        change = replace(change, order=order, named=named)
        return change if (is_moved or newly) and was <= by_name and min(order) >= 0 else None
    # What takes the rest of the arguments now did not go.
    text = now.text_of(child_of(new, "parameters"))
    if len(gone) + len(came) != 1 or any(whole(node.name).search(text) for node in gone):
        return None
    if stay != [node.name for node in had if node not in gone]:
        return None
    node, names = (gone[0], old_names) if gone else (came[0], new_names)
    if came and node.has_default:
        return None
    index = names.index(node.name) - bound
    if index < 0 and not node.by_name_only:
        return None
    index = -1 if node.by_name_only else index
    if gone:
        return replace(change, removed=node.name, index=index)
    declared = _given(new.children_by_field_name("parameters")[0])
    text = now.text_of(declared[has.index(node)]) if len(declared) == len(has) else ""
    return replace(change, added=node.name, index=index, declared=text)


def _parameters(tree: SyntaxTree, function: Node) -> list[Parameter] | None:
    """Return the parameters, without ``*args`` and ``**kwargs``; None where one is no name."""
    calls: list[Parameter] = []
    by_name_only = False
    parameters = child_of(function, "parameters")
    assert parameters is not None
    if any(node.type == "params" for node in parameters.children):
        return None
    for node in parameters.named_children:
        pattern = child_of(node, "pattern")
        if _NO_PARAMETER.search(node.type):
            continue
        if node.type == "self_parameter":
            calls.append(Parameter("self", has_default=False, by_name_only=False))
            continue
        first = node.child(0) if node.type == "typed_parameter" else None
        kinds = [node.type, kind_of(pattern), kind_of(first)]
        if node.type == "keyword_separator" or any(_REST.search(kind) for kind in kinds):
            by_name_only = True
            continue
        if any("dictionary_splat" in kind for kind in kinds):
            continue
        own = pattern or child_of(node, "left") or first or node
        names = node.children_by_field_name("name") or [own]
        has_default = re.search("default|optional|assignment", node.type) is not None
        has_default |= any(each.type == "=" for each in node.children)
        calls += (Parameter(tree.text_of(each), has_default, by_name_only) for each in names)
    return calls


def _bound(tree: SyntaxTree, function: Node) -> int:
    """Return how many parameters a call does not write: ``self``."""
    if tree.grammar == "rust":
        parameters = inner(child_of(function, "parameters"))
        return int(any(node.type == "self_parameter" for node in parameters))
    has_decorator = kind_of(function.parent) == "decorated_definition"
    is_method = kind_of(outside(function, 3 if has_decorator else 2)) == "class_definition"
    return int(is_method and not is_decorated(tree, function, "staticmethod"))


def is_decorated(tree: SyntaxTree, function: Node, name: str) -> bool:
    """Return whether a function of Python has a decorator that begins with a pattern."""
    outer = function.parent if kind_of(function.parent) == "decorated_definition" else None
    return any(re.match(rf"@{name}\b", tree.text_of(node)) for node in inner(outer))


# What becomes of a call


def _given(arguments: Node) -> list[Node]:
    """Return the arguments alone, without comments and continued lines."""
    return [node for node in arguments.named_children if node.type not in _NO_ARGUMENTS]


def _argument_name(tree: SyntaxTree, argument: Node) -> str:
    """Return the name by which an argument is given; empty for one that is given by its place."""
    is_named = argument.type in ("keyword_argument", "argument")
    return tree.text_of(child_of(argument, "name")) if is_named else ""


def _without(
    change: SignatureChange, names: ResolvedNames, arguments: Node
) -> TextEdit[int] | None:
    tree, values = names.tree, _given(arguments)
    named = [node for node in values if _argument_name(tree, node) == change.removed]
    positional = [node for node in values if not _argument_name(tree, node)]
    if named:
        gone = named[0]
    elif 0 <= change.index < len(positional):
        gone = positional[change.index]
    else:
        return None
    hunk = _removal(tree, arguments, values, values.index(gone))
    return replace(hunk, note=f"remove the argument {change.removed} of {change.function}")


def _swapped(
    change: SignatureChange, names: ResolvedNames, arguments: Node, shift: int
) -> TextEdit[int] | None:
    """Return the arguments in their new order, with the names that some need now; None where some
    that move are given by name."""
    tree, values, order = names.tree, _given(arguments), change.order
    positional = [node for node in values if not _argument_name(tree, node)][shift:]
    if any(change.named):
        order = tuple(number for number in order if number < len(positional))
    moved = [new for new, old in enumerate(order) if new != old or change.named[old]]
    if not moved or moved[-1] >= len(positional):
        return None
    first, last = positional[moved[0]], positional[moved[-1]]
    pieces, end = [], tree.start(first)
    for offset in range(moved[0], moved[-1] + 1):
        between = tree.text[end : tree.start(positional[offset])]
        number = order[offset]
        pieces += [between, change.named[number], tree.text_of(positional[number])]
        end = tree.end(positional[offset])
    title = f"the new order of {change.function}'s parameters"
    return TextEdit(tree.start(first), tree.end(last), "".join(pieces), title)


def _removal(tree: SyntaxTree, arguments: Node, values: list[Node], number: int) -> TextEdit[int]:
    """Takes away an argument with its comments: those in lines above it and the one after it in
    its line. A neighbour's stay."""
    gone = values[number]
    if len(values) == 1:
        return TextEdit(tree.start(arguments) + 1, tree.end(arguments) - 1, "")
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
        return TextEdit(tree.start(first), tree.start(following), "")
    assert last is not None
    end = tree.end(own[-1] if own else gone)
    comments_kept = [node for node in above if node.start_point[0] == row]
    if comments_kept:
        rest = tree.text[end:].lstrip(", ")
        indent = tree.text[tree.end(comments_kept[-1]) : tree.start(gone)]
        text = "" if rest[:1] in "\r\n" else indent
        comma = len(tree.text[end:]) - len(tree.text[end:].lstrip(", "))
        return TextEdit(tree.end(comments_kept[-1]), end + (0 if own else comma), text)
    has_comma = "," in tree.text[tree.end(gone) : end]
    return TextEdit(tree.end(last), end, "," if has_comma and own else "")


def _with(change: SignatureChange, names: ResolvedNames, arguments: Node) -> TextEdit[int] | None:
    """Return the edit that passes what has the new parameter's name, or leads there."""
    tree, values = names.tree, _given(arguments)
    positional = [node for node in values if not _argument_name(tree, node)]
    if any(_argument_name(tree, node) == change.added for node in values):
        return None
    title = f"pass {change.added} to {change.function}"
    inside = tree.end(arguments) - 1
    by_name = change.index < 0 or change.index > len(positional)
    by_name = by_name or (change.index == len(positional) and len(values) > len(positional))
    wording = BY_NAME.get(tree.grammar)
    if not _is_visible(names, change.added, arguments) or (by_name and wording is None):
        return TextEdit(inside, inside, "", title)
    if by_name and wording is not None:
        text, index = wording.format(change.added), len(values)
    else:
        text, index = change.added, change.index
    return _inserted(tree, arguments, values, index, text, title)


def _inserted(
    tree: SyntaxTree, listed: Node, values: list[Node], index: int, text: str, title: str
) -> TextEdit[int]:
    if index < len(values):
        offset = tree.start(values[index])
        return TextEdit(offset, offset, f"{text}, ", title)
    offset = tree.end(values[-1]) if values else tree.start(listed) + 1
    return TextEdit(offset, offset, f", {text}" if values else text, title)


def _is_visible(names: ResolvedNames, name: str, arguments: Node) -> bool:
    """Return whether a name is bound where a call is, and before it."""
    call = names.tree.start(arguments)
    declared = (use for use, _ in names.declared(name) if use.use is NameUse.VARIABLE)
    places = ((use.start, use.scope) for use in declared if use.scope is not None)
    return any(scope.start <= call < scope.end and (start < call or scope.kind == "module")
               for start, scope in places)  # fmt: skip
