"""Renames the other uses of a name that was changed where it is defined.

Python's names are resolved by its own rules. In other languages a name counts as given where its
node is the name of a declaration; it must be the only one of that name in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.editor.editing.hunks import Hunk
from lsp_server.editor.next_edits.words import WordChange, changed_word
from lsp_server.text.syntax.keywords import is_keyword
from lsp_server.text.syntax.python_names import NameScope, Occurrence, Use, occurrences
from lsp_server.text.syntax.roles import MARKUP, PROSE
from lsp_server.text.syntax.scopes import scopes_at
from lsp_server.text.syntax.tree import SyntaxTree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit

Span = tuple[int, int]

_NAME = re.compile(r"[^\W\d]\w*")
_BLOCKS = {"for_statement", "with_statement", "except_clause", "for_in_clause"}
_DECLARED = re.compile(
    r"declarat|definition|parameter|function_item|let_|binding|var_spec|const_spec|_item$|_spec$"
    r"|variable|^short_var|catch_|for_"
)
_NAMING_FIELDS = ("name", "pattern", "left", "declarator")
_PARAMETERS = re.compile(r"^(?:formal_|function_|lambda_|closure_)?parameters$")
_PATTERN = re.compile(r"_pattern$|^expression_list$")


@dataclass(frozen=True, slots=True)
class Rename:
    """A name that was changed where it is given."""

    old: str
    new: str
    before: SyntaxTree
    """The text without the change."""
    places: tuple[Span, ...]
    """Where the old name is left in the text without the change, and is meant."""
    shift: Shift
    is_global: bool
    """Whether the module gives the name to others."""

    def hunks(self) -> tuple[Hunk, ...]:
        """The replacements in the text as it is."""
        return tuple(
            Hunk(self.shift.of(start), self.shift.of(start) + end - start, self.new)
            for start, end in self.places
        )


@dataclass(frozen=True, slots=True)
class Shift:
    """Where characters of a text went when words in it were replaced."""

    places: tuple[int, ...]
    by: int

    def of(self, offset: int) -> int:
        """Where the character behind ``offset`` characters is now."""
        return offset + self.by * sum(place < offset for place in self.places)


def rename_in(edit: RecordedEdit) -> Rename | None:
    """The rename that an edit began; None where it is none, or where the new name would collide."""
    change = changed_word(edit.old_text, edit.new_text)
    if change is None or not _NAME.fullmatch(change.old) or not _NAME.fullmatch(change.new):
        return None
    before = SyntaxTree.of(edit.text_before(), edit.document.language, edit.document.uri)
    if before is None or before.grammar in PROSE | MARKUP or is_keyword(change.new, before.grammar):
        return None
    start = edit.start_offset()
    changed = tuple(start + at for at, _ in change.places)
    found = (_python if before.grammar == "python" else _by_declaration)(before, change, changed)
    if found is None:
        return None
    places, is_global = found
    shift = Shift(changed, len(change.new) - len(change.old))
    return Rename(change.old, change.new, before, places, shift, is_global)


_Found = tuple[tuple[Span, ...], bool]


def _python(tree: SyntaxTree, change: WordChange, changed: tuple[int, ...]) -> _Found | None:
    names = occurrences(tree, change.old)
    given = [one for one in names if one.start in changed]
    if not given:
        return None
    taken = occurrences(tree, change.new)
    member = _member_class(tree, given)
    if member is not None:
        if any(_is_member(tree, one, member) for one in taken):
            return None
        places = [one for one in names if _is_member(tree, one, member)]
        return _left(places, changed), False
    scope = _renamed_scope(given, names)
    if scope is None or any(_collides(one, scope) for one in taken):
        return None
    places = [one for one in names if one.scope == scope]
    places += _keywords(tree, names, [one for one in places if one.use is Use.PARAMETER])
    places = _within_block(given, places)
    return _left(places, changed), scope.kind == "module"


def _left(places: Iterable[Occurrence], changed: tuple[int, ...]) -> tuple[Span, ...]:
    return tuple(sorted({(at.start, at.end) for at in places if at.start not in changed}))


def _renamed_scope(given: list[Occurrence], names: list[Occurrence]) -> NameScope | None:
    """The scope in which a name has another binding now: one that was changed is the first there
    that gives the name, and none that was changed means another scope."""
    scopes = {one.scope for one in given if one.scope is not None}
    if len(scopes) != 1:
        return None
    (scope,) = scopes
    binding = [one for one in names if one.scope == scope and one.use.binds]
    if not binding or binding[0] not in given:
        # A later binding of a block may be a variable of its own.
        return scope if any(_block_of(one) for one in given if one.use.binds) else None
    if binding[0].use is Use.IMPORT:
        # The name is another module's: it was not renamed but exchanged.
        return None
    return scope


def _collides(one: Occurrence, scope: NameScope) -> bool:
    """Whether the new name is in use where the old one is meant."""
    if one.use in (Use.ATTRIBUTE, Use.KEYWORD, Use.MODULE):
        return False
    return scope in one.scopes


def _keywords(
    tree: SyntaxTree, names: list[Occurrence], parameters: list[Occurrence]
) -> list[Occurrence]:
    """Names of arguments in calls of the functions whose parameters these are."""
    functions = [function for one in parameters if (function := _function_of(one)) is not None]
    return [
        one
        for one in names
        if one.use is Use.KEYWORD and any(calls(tree, one.node, function) for function in functions)
    ]


def _function_of(parameter: Occurrence) -> Node | None:
    node: Node | None = parameter.node
    while node is not None and node.type not in ("function_definition", "lambda"):
        node = node.parent
    return node if node is not None and node.type == "function_definition" else None


def calls(tree: SyntaxTree, inside: Node, function: Node) -> bool:
    """Whether the innermost call around a node calls a function, told by imports and scopes.

    A method is called by ``self`` or ``cls`` in its own class; what another object's attribute of
    that name is, the text does not tell.
    """
    call: Node | None = inside
    while call is not None and call.type != "call":
        call = call.parent
    called = call.child_by_field_name("function") if call is not None else None
    return called is not None and refers_to(tree, called, function)


def refers_to(tree: SyntaxTree, called: Node, function: Node) -> bool:
    """Whether an expression names a function, or the method of the class around."""
    name = function.child_by_field_name("name")
    assert name is not None
    word = _text(tree, name)
    inner = called.child_by_field_name("attribute") if called.type == "attribute" else called
    if inner is None or inner.type != "identifier" or _text(tree, inner) != word:
        return False
    found = {one.start: one for one in occurrences(tree, word)}
    defined = found[tree.index(name.start_byte)]
    place = found.get(tree.index(inner.start_byte))
    if place is None or _times_defined(found.values(), defined) != 1:
        return False
    if defined.scopes[0].is_class:
        return place.use is Use.ATTRIBUTE and _is_member(tree, place, defined.scopes[0])
    return called.type == "identifier" and place.scope == defined.scope


def _times_defined(places: Iterable[Occurrence], defined: Occurrence) -> int:
    """How often the scope of a definition gives its name."""
    return sum(one.use.binds and one.scope == defined.scope for one in places)


# Members of classes


def _member_class(tree: SyntaxTree, given: list[Occurrence]) -> NameScope | None:
    """The class whose member was renamed: where it is defined in the body of the class, or first
    assigned to ``self``."""
    for one in given:
        if one.use.binds and one.scope is not None and one.scope.is_class:
            return one.scope
        if one.use is Use.ATTRIBUTE and _is_assigned_attribute(one.node):
            owner = _class_of_self(tree, one)
            if owner is not None and _is_first(tree, one, owner):
                return owner
    return None


def _is_first(tree: SyntaxTree, given: Occurrence, owner: NameScope) -> bool:
    """Whether no other place of the class assigns the attribute before, or defines it."""
    name = tree.text[given.start : given.end]
    for one in occurrences(tree, name):
        if one.use.binds and one.scope == owner:
            return False
        assigns = one.use is Use.ATTRIBUTE and _is_assigned_attribute(one.node)
        if assigns and _class_of_self(tree, one) == owner:
            return one.start == given.start
    return False


def _is_assigned_attribute(node: Node) -> bool:
    attribute = node.parent
    assert attribute is not None
    outer = attribute.parent
    return (
        outer is not None
        and outer.type == "assignment"
        and outer.child_by_field_name("left") == attribute
    )


def _is_member(tree: SyntaxTree, one: Occurrence, owner: NameScope) -> bool:
    """Whether a place names a member of a class: in its body, or by ``self``, ``cls`` or the
    class's own name."""
    if one.use is not Use.ATTRIBUTE:
        return one.scope == owner
    return _class_of_self(tree, one) == owner or _class_by_name(tree, one) == owner


def _class_of_self(tree: SyntaxTree, one: Occurrence) -> NameScope | None:
    """The class around, where a place is an attribute of a method's first parameter."""
    receiver = _receiver(one)
    if receiver is None:
        return None
    word = _text(tree, receiver)
    for number, scope in enumerate(one.scopes[:-1]):
        if scope.kind == "function_definition":
            outer = one.scopes[number + 1]
            is_method = outer.is_class and _first_parameter(tree, scope) == word
            if is_method:
                return outer
    return None


def _class_by_name(tree: SyntaxTree, one: Occurrence) -> NameScope | None:
    """The class that stands before the dot."""
    receiver = _receiver(one)
    if receiver is None:
        return None
    word = _text(tree, receiver)
    found = occurrences(tree, word)
    place = tree.index(receiver.start_byte)
    meant = next((at.scope for at in found if at.start == place), None)
    given = [at for at in found if at.use.binds and at.scope == meant]
    if len(given) != 1 or given[0].use is not Use.DEFINITION:
        return None
    node = given[0].node.parent
    assert node is not None
    if node.type != "class_definition":
        return None
    return NameScope(tree.index(node.start_byte), tree.index(node.end_byte), node.type)


def is_by_class(tree: SyntaxTree, one: Occurrence) -> bool:
    """Whether a place names a member by its class: ``Class.name``."""
    return _class_by_name(tree, one) is not None


def _receiver(one: Occurrence) -> Node | None:
    """The name before the dot of an attribute."""
    attribute = one.node.parent
    if one.use is not Use.ATTRIBUTE or attribute is None:
        return None
    receiver = attribute.child_by_field_name("object")
    return receiver if receiver is not None and receiver.type == "identifier" else None


def _first_parameter(tree: SyntaxTree, function: NameScope) -> str:
    node = tree.node(function.start, function.end)
    parameters = node.child_by_field_name("parameters") if node is not None else None
    if parameters is None or not parameters.named_children:
        return ""
    first = parameters.named_children[0]
    return _text(tree, first if first.type == "identifier" else first.named_children[0])


def _text(tree: SyntaxTree, node: Node) -> str:
    return tree.text[tree.index(node.start_byte) : tree.index(node.end_byte)]


# Variables of blocks


def _within_block(given: list[Occurrence], places: list[Occurrence]) -> list[Occurrence]:
    """Of a variable that a ``for``, ``with`` or ``except`` gives and others give, too, the places
    in that block; of any other all places."""
    blocks = [block for one in given if one.use is Use.VARIABLE and (block := _block_of(one))]
    if not blocks:
        others = [block for one in places if one.use is Use.VARIABLE and (block := _block_of(one))]
        return [one for one in places if not any(_is_in(one, block) for block in others)]
    block = blocks[0]
    if all(_is_in(one, block) for one in places if one.use.binds):
        return places
    return [one for one in places if _is_in(one, block)]


def _block_of(one: Occurrence) -> Node | None:
    """The ``for``, ``with`` or ``except`` that gives a variable."""
    node: Node | None = one.node
    while node is not None and node.type not in _BLOCKS:
        if node.type in ("block", "module", "assignment", "augmented_assignment"):
            return None
        node = node.parent
    if node is None or node.type == "for_in_clause":
        return None
    body = node.child_by_field_name("body")
    return node if body is None or one.node.start_byte < body.start_byte else None


def _is_in(one: Occurrence, block: Node) -> bool:
    return block.start_byte <= one.node.start_byte < block.end_byte


# Other languages


def _by_declaration(
    tree: SyntaxTree, change: WordChange, changed: tuple[int, ...]
) -> _Found | None:
    """A name that one declaration of the file gives: its uses in the scope of that one."""
    spans = tree.identifiers(change.old)
    declared = [span for span in spans if _is_declared(tree, span)]
    if len(declared) != 1 or declared[0][0] not in changed:
        return None
    scopes = scopes_at(tree, *declared[0])
    start, end = (scopes[-1].start, scopes[-1].end) if scopes else (0, len(tree.text))
    if tree.identifiers(change.new, start, end):
        return None
    places = [span for span in spans if start <= span[0] < end and not _is_of_another(tree, span)]
    return tuple(span for span in places if span[0] not in changed), False


def _is_declared(tree: SyntaxTree, span: Span) -> bool:
    """Whether a name is the name of a declaration, or of a parameter."""
    node = tree.node(*span)
    while node is not None and node.parent is not None:
        parent = node.parent
        fields = [parent.child_by_field_name(field) for field in _NAMING_FIELDS]
        if (node in fields and _DECLARED.search(parent.type)) or _PARAMETERS.search(parent.type):
            return True
        if not _PATTERN.search(parent.type):
            return False
        node = parent
    return False


def _is_of_another(tree: SyntaxTree, span: Span) -> bool:
    """Whether a name is a member of something, or a key: another thing of that name."""
    before = tree.text[max(0, span[0] - 2) : span[0]]
    behind = tree.text[span[1] : span[1] + 2].lstrip()
    node = tree.node(*span)
    is_key = node is not None and node.type in ("property_identifier", "field_identifier")
    return (
        is_key
        or before.endswith((".", "->", "::"))
        or (behind.startswith(":") and not behind.startswith("::") and _is_pair(node))
    )


def _is_pair(node: Node | None) -> bool:
    return node is not None and node.parent is not None and "pair" in node.parent.type
