"""Places of a name in Python with what is meant: its bindings, members of classes by ``self``,
``cls`` and the class's name, arguments of the file's own functions, ``__all__`` and annotations in
strings."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from lsp_server.text.syntax.name_uses import NameUse, Reference, text_of
from lsp_server.text.syntax.python_names import Occurrence, Use, occurrences
from lsp_server.text.syntax.scopes import Scope

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_BLOCKS = {"for_statement", "with_statement", "except_clause"}
_CLASS = re.compile(r"\bclass\s+(\w+)")
_NO_ANNOTATION = {"Literal", "Annotated"}


def python_references(tree: SyntaxTree, name: str) -> list[Reference]:
    """Return all places of a name of a Python text, in order."""
    names = occurrences(tree, name)
    members = PythonMembers(tree, names)
    refs = [_reference(tree, use, members) for use in names]
    refs += _in_strings(tree, name, names)
    refs.sort(key=lambda use: use.start)
    variables = {use.start: use.node for use in names if use.use is Use.VARIABLE}
    return _by_block(tree, refs, variables)


def _reference(tree: SyntaxTree, use: Occurrence, members: PythonMembers) -> Reference:
    span = (use.start, use.end)
    if use.use is Use.ATTRIBUTE:
        owner = members.class_of(use)
        declares = owner is not None and members.declares(use, owner)
        return Reference(
            *(*span, NameUse.MEMBER, owner, declares), receiver=text_of(tree, receiver(use))
        )
    if use.use is Use.KEYWORD:
        return Reference(*span, NameUse.KEY, members.called_with(use))
    if use.use is Use.MODULE:
        return Reference(*span, NameUse.KEY)
    if use.scope is not None and use.scope.is_class:
        return Reference(*span, NameUse.MEMBER, use.scope, use.use.binds)
    if use.use is Use.IMPORT:
        is_path = use.node.parent is not None and use.node.parent.child_count > 1
        if is_path:
            return Reference(*span, NameUse.FOREIGN, use.scope, True, is_foreign=True)
        name = tree.text[slice(*span)]
        return Reference(
            *(*span, NameUse.VARIABLE, use.scope, True),
            is_foreign=True,
            before=f"{name} as ",
        )
    return Reference(*span, NameUse.VARIABLE, use.scope, use.use.binds)


# Members of classes


class PythonMembers:
    """The classes and functions that attributes and named arguments of one name belong to. Answers
    are kept: a class may have thousands of methods."""

    def __init__(self, tree: SyntaxTree, names: list[Occurrence]) -> None:
        self._tree = tree
        self._names = names
        self._class_names = set(_CLASS.findall(tree.text))
        self._first_parameters: dict[Scope, str] = {}
        self._places: dict[str, dict[int, Occurrence]] = {}
        self._classes: dict[tuple[str, Scope | None], Scope | None] = {}
        self._functions: dict[str, list[tuple[Scope, Node]]] | None = None
        self._times: dict[tuple[Scope | None, str], int] = {}
        """How often a scope gives a name."""

    def class_of(self, use: Occurrence) -> Scope | None:
        """Return the class whose member an attribute is: by ``self`` or ``cls`` within the class,
        or by the class's own name."""
        return self._class_of_self(use) or self.class_by_name(use)

    def declares(self, use: Occurrence, owner: Scope) -> bool:
        """Return whether an attribute is assigned in the class whose member it is."""
        return _is_assigned_attribute(use.node) and self._class_of_self(use) == owner

    def _class_of_self(self, use: Occurrence) -> Scope | None:
        before = receiver(use)
        if before is None:
            return None
        word = text_of(self._tree, before)
        for number, scope in enumerate(use.scopes[:-1]):
            outer = use.scopes[number + 1]
            is_method = scope.kind == "function_definition" and outer.is_class
            if is_method and self._first_parameter(scope) == word:
                return outer
        return None

    def class_by_name(self, use: Occurrence) -> Scope | None:
        """Return the class that is named before the dot."""
        before = receiver(use)
        if before is None:
            return None
        word = text_of(self._tree, before)
        if word not in self._class_names:
            return None
        class_use = self._occurrences(word).get(self._tree.index(before.start_byte))
        scope = class_use.scope if class_use is not None else None
        if (word, scope) not in self._classes:
            self._classes[word, scope] = self._class_named(word, scope)
        return self._classes[word, scope]

    def _class_named(self, word: str, scope: Scope | None) -> Scope | None:
        uses = self._occurrences(word).values()
        bindings = [use for use in uses if use.use.binds and use.scope == scope]
        if len(bindings) != 1 or bindings[0].use is not Use.DEFINITION:
            return None
        node = bindings[0].node.parent
        assert node is not None
        if node.type != "class_definition":
            return None
        return Scope(self._tree.index(node.start_byte), self._tree.index(node.end_byte), node.type)

    def _first_parameter(self, function: Scope) -> str:
        if function not in self._first_parameters:
            node = self._tree.node(function.start, function.end)
            parameters = node.child_by_field_name("parameters") if node is not None else None
            first = parameters.named_child(0) if parameters is not None else None
            if first is not None and first.type != "identifier":
                first = first.named_child(0)
            self._first_parameters[function] = text_of(self._tree, first)
        return self._first_parameters[function]

    def _occurrences(self, word: str) -> dict[int, Occurrence]:
        if word not in self._places:
            self._places[word] = {use.start: use for use in occurrences(self._tree, word)}
        return self._places[word]

    # Arguments that are given by name

    def called_with(self, argument: Occurrence) -> Scope | None:
        """Return the function of this file whose argument a call names; for the fields of a data
        class that class."""
        call: Node | None = argument.node
        while call is not None and call.type != "call":
            call = call.parent
        called = call.child_by_field_name("function") if call is not None else None
        inner = called
        if called is not None and called.type == "attribute":
            inner = called.child_by_field_name("attribute")
        if inner is None or inner.type != "identifier":
            return None
        word = text_of(self._tree, inner)
        use = self._occurrences(word).get(self._tree.index(inner.start_byte))
        if use is None:
            return None
        if self._functions is None:
            self._functions = self._functions_by_name()
        for scope, definition in self._functions.get(word, ()):
            if self.refers_to(use, definition):
                return scope
        return None

    def _functions_by_name(self) -> dict[str, list[tuple[Scope, Node]]]:
        """Definitions whose calls may pass the name as a keyword: functions with such a parameter,
        classes with such a parameter of ``__init__`` or with such a field and no ``__init__``."""
        functions: dict[str, dict[Scope, Node]] = {}
        for use in self._names:
            scope = use.scope
            if scope is None or not (
                use.use is Use.PARAMETER or (use.use.binds and scope.is_class)
            ):
                continue
            node = self._tree.node(scope.start, scope.end)
            name = self._name(node)
            if scope.is_class and "__init__" in self._tree.text[scope.start : scope.end]:
                continue
            if name == "__init__" and use.scopes[1:] and use.scopes[1].is_class:
                node = self._tree.node(use.scopes[1].start, use.scopes[1].end)
                name = self._name(node)
            if name and node is not None:
                functions.setdefault(name, {})[scope] = node
        return {name: list(scopes.items()) for name, scopes in functions.items()}

    def _name(self, definition: Node | None) -> str:
        name = definition.child_by_field_name("name") if definition is not None else None
        return text_of(self._tree, name)

    def refers_to(self, use: Occurrence, definition: Node) -> bool:
        """Return whether a name means the function or class of a definition, or the method of the
        class around; told by imports and scopes."""
        name = definition.child_by_field_name("name")
        assert name is not None
        word = text_of(self._tree, name)
        uses = self._occurrences(word)
        defined = uses[self._tree.index(name.start_byte)]
        times = (defined.scope, word)
        if times not in self._times:
            self._times[times] = sum(
                use.use.binds and use.scope == defined.scope for use in uses.values()
            )
        if self._times[times] != 1:
            return False
        if defined.scopes[0].is_class:
            return use.use is Use.ATTRIBUTE and self.class_of(use) == defined.scopes[0]
        return use.use is not Use.ATTRIBUTE and use.scope == defined.scope


def receiver(use: Occurrence) -> Node | None:
    """Return the name before the dot of an attribute."""
    attribute = use.node.parent
    if use.use is not Use.ATTRIBUTE or attribute is None:
        return None
    before = attribute.child_by_field_name("object")
    return before if before is not None and before.type == "identifier" else None


def _is_assigned_attribute(node: Node) -> bool:
    attribute = node.parent
    assert attribute is not None
    outer = attribute.parent
    return (
        outer is not None
        and outer.type == "assignment"
        and outer.child_by_field_name("left") == attribute
    )


# Variables of blocks


def _by_block(
    tree: SyntaxTree, refs: list[Reference], variables: dict[int, Node]
) -> list[Reference]:
    """Of a variable that a ``for``, ``with`` or ``except`` gives and others give, too, the places
    in that block are a variable of their own."""
    blocks: dict[Scope, Scope] = {}
    bound: dict[Scope, list[int]] = {}
    for use in refs:
        if not use.declares or use.scope is None or use.use is not NameUse.VARIABLE:
            continue
        bound.setdefault(use.scope, []).append(use.start)
        block = _block_of(variables[use.start]) if use.start in variables else None
        if block is not None:
            own = Scope(tree.index(block.start_byte), tree.index(block.end_byte), block.type)
            blocks[own] = use.scope
    starts = [use.start for use in refs]
    chosen = list(refs)
    for own, scope in sorted(blocks.items(), key=lambda pair: (pair[0].start, -pair[0].end)):
        first, last = bound[scope][0], bound[scope][-1]
        if own.start <= first and last < own.end:
            continue
        for number in range(bisect_left(starts, own.start), bisect_left(starts, own.end)):
            if refs[number].scope == scope:
                chosen[number] = replace(refs[number], scope=own)
    return chosen


def _block_of(variable: Node) -> Node | None:
    """Return the ``for``, ``with`` or ``except`` that gives a variable."""
    node: Node | None = variable
    while node is not None and node.type not in _BLOCKS:
        if node.type in ("block", "module", "assignment", "augmented_assignment", "for_in_clause"):
            return None
        node = node.parent
    if node is None:
        return None
    body = node.child_by_field_name("body")
    return node if body is None or variable.start_byte < body.start_byte else None


# Names in strings


def _in_strings(tree: SyntaxTree, name: str, names: list[Occurrence]) -> list[Reference]:
    """Return where a string holds the name of what the module gives to others, or of a type."""
    scopes = {use.scope for use in names if use.use.binds and use.scope is not None}
    code_starts = {use.start for use in names}
    refs = []
    for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", tree.text) if scopes else ():
        node = tree.node(*match.span()) if match.start() not in code_starts else None
        string = node.parent if node is not None and node.type == "string_content" else None
        if node is None or string is None or string.type != "string":
            continue
        if _is_exported(tree, string) and text_of(tree, node) == name:
            scope = next((each for each in scopes if each.kind == "module"), None)
        elif _is_annotation(tree, string) and len(scopes) == 1:
            (scope,) = scopes
        else:
            continue
        if scope is not None and scope.start <= match.start() < scope.end:
            refs.append(Reference(*match.span(), NameUse.VARIABLE, scope))
    return refs


def _is_exported(tree: SyntaxTree, string: Node) -> bool:
    """Return whether a string is one of ``__all__``."""
    node: Node | None = string.parent
    while node is not None and node.type in (
        *("list", "tuple", "expression_list", "argument_list", "binary_operator", "call"),
        *("assignment", "augmented_assignment", "parenthesized_expression"),
    ):
        if node.type in ("assignment", "augmented_assignment"):
            return text_of(tree, node.child_by_field_name("left")) == "__all__"
        if node.type == "call":
            called = text_of(tree, node.child_by_field_name("function"))
            return called in ("__all__.append", "__all__.extend")
        node = node.parent
    return False


def _is_annotation(tree: SyntaxTree, string: Node) -> bool:
    if string.parent is None or string.parent.type != "type":
        return False
    node: Node | None = string.parent
    while node is not None and node.type in ("type", "type_parameter", "generic_type"):
        if node.type == "generic_type":
            name = text_of(tree, node.named_child(0)).rpartition(".")[2]
            if name in _NO_ANNOTATION:
                return False
        node = node.parent
    return True
