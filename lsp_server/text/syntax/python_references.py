"""Places of a name in Python with what is meant: bindings, members, arguments of functions,
``__all__`` and annotations in strings."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import around, child_of, enclosing, inner, kind_of, outside
from lsp_server.text.syntax.python_names import Occurrence, PythonNames, Use
from lsp_server.text.syntax.scopes import Scope, scope_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_BLOCKS = re.compile("^(?:for_statement|with_statement|except_clause)$")
_NO_BLOCKS = re.compile("^(?:block|module|(?:augmented_)?assignment|for_in_clause)$")
_OF_ALL = re.compile("^(?:list|tuple|\\w+_list|binary_operator|parenthesized_expression)$")
PARTIAL = re.compile(r"(?:functools\.)?partial\(")
"""A call that hands its arguments on to the first of them."""
_FIRST_PARAMETER = re.compile(r"\((?:\s|\*|#.*)*(\w+)")
_WORD = re.compile(r"\w+")
_CLASS = re.compile(r"class\s+(\w+)")
_NAMING = re.compile(r"(?:\w+\.)?(?:cast|TypeVar|NewType|TypedDict|[Nn]amed[Tt]uple)\(")
_DOCUMENTED = [
    (re.compile(rf"^[ \t]*{before}\*{{0,2}}\Z", re.MULTILINE), re.compile(after, re.MULTILINE))
    for before, after in (
        (r":(?:param|arg|key(?:word)?|type)[ \t](?:[^:\n]*[ \t])?", ":"),
        (r"(?:\w+ )?(?:Arg(?:ument)?|Param(?:eter)?|Attribute)s:[ \t]*\n([ \t]+)"
         r"(?:\S.*\n(?:(?:\1[ \t]*\S.*|[ \t]*)\n)*\1)?", r"[ \t]*(?:\([^)\n]*\))?:"),
        (r"(?:\w+ )?(?:Parameters|Attributes)[ \t]*\n([ \t]*)-{3,}[ \t]*\n"
         r"(?:(?:\1(?!-{3})[ \t]*\S.*|[ \t]*)\n)*\1(?:\*{0,2}\w+, )*", r"[ \t]*(?:[:,]|$)"),
    )
]  # fmt: skip
"""What comes before and behind a name that a docstring documents: in the ways of Sphinx, Google
and numpy."""
_NO_ANNOTATION = {"Literal", "Annotated"}


def python_references(python: PythonNames, name: str) -> list[Reference]:
    """Return all places of a name of a Python text, in order."""
    names = [*python.of(name).values()]
    members = _PythonMembers(python, names)
    refs = [_reference(use, members) for use in names]
    refs += _in_strings(python.tree, name, names)
    refs.sort(key=lambda use: use.start)
    variables = {use.start: use.node for use in names if use.use is Use.VARIABLE}
    return _by_block(python.tree, refs, variables)


def _reference(use: Occurrence, members: _PythonMembers) -> Reference:
    tree, span = members.tree, (use.start, use.end)
    if use.use is Use.ATTRIBUTE:
        owner = members.class_of(use)
        declares = owner is not None and members.declares(use)
        receiver = tree.text_of(_receiver(use))
        return Reference(*span, NameUse.MEMBER, owner, declares, use.node, receiver=receiver)
    if use.use is Use.KEYWORD:
        return Reference(*span, NameUse.KEY, members.called_with(use), node=use.node)
    if use.use is Use.MODULE:
        return Reference(*span, NameUse.KEY, node=use.node)
    if use.scope is not None and use.scope.is_class:
        return Reference(*span, NameUse.MEMBER, use.scope, use.use.binds, use.node)
    if use.use is not Use.IMPORT:
        return Reference(*span, NameUse.VARIABLE, use.scope, use.use.binds, use.node)
    is_path = use.node.parent is not None and use.node.parent.child_count > 1
    kind, before = NameUse.FOREIGN, ""
    if not is_path:
        kind, before = NameUse.VARIABLE, f"{tree.text[slice(*span)]} as "
    return Reference(*span, kind, use.scope, True, use.node, is_foreign=True, before=before)


# Members of classes


class _PythonMembers:
    """The classes and functions that attributes and named arguments of a name belong to."""

    def __init__(self, python: PythonNames, names: list[Occurrence]) -> None:
        self.tree, self._python = python.tree, python
        self._names = names
        self._functions = self._functions_by_name()
        outer = ((_CLASS.match(self.tree.text, scope.start), scope)
                 for use in names for scope in use.scopes)  # fmt: skip
        self._classes = {match[1]: scope for match, scope in outer if match and scope.is_class}

    def class_of(self, use: Occurrence) -> Scope | None:
        """Return the class whose member an attribute is: by ``self``, ``cls`` or its own name."""
        name = self.tree.text_of(_receiver(use))
        return self._class_of_self(use) or self._classes.get(name)

    def declares(self, use: Occurrence) -> bool:
        """Return whether an attribute is assigned in the class whose member it is."""
        outer = outside(use.node, 2)
        is_left = kind_of(outer) == "assignment" and child_of(outer, "left") == use.node.parent
        return is_left and self._class_of_self(use) is not None

    def _class_of_self(self, use: Occurrence) -> Scope | None:
        word = self.tree.text_of(_receiver(use))
        for scope, outer in pairwise(use.scopes if word else ()):
            is_method = scope.kind == "function_definition" and outer.is_class
            first = _FIRST_PARAMETER.search(self.tree.text, scope.start, scope.end)
            if is_method and first and first[1] == word:
                return outer
        return None

    # Arguments that are given by name

    def called_with(self, argument: Occurrence) -> Scope | None:
        """Return the function whose argument a call of this file names, or the data class."""
        called = called_with(self.tree, argument.node)
        called = child_of(called, "attribute") if kind_of(called) == "attribute" else called
        called = inner(called)[-1] if kind_of(called) == "dotted_name" else called
        if called is None or called.type != "identifier":
            return None
        word = self.tree.text_of(called)
        use = self._python.of(word).get(self.tree.start(called))
        if use is None:
            return None
        own = enclosing(called, "^class_definition$")
        if word == "cls":
            functions = self._functions.get(self._name(own), {})
            return next((scope for scope, node in functions.items() if node == own), None)
        if word == "__init__":
            # Of ``super()``: the class above.
            bases = _WORD.findall(self.tree.text_of(child_of(own, "superclasses")))
            above = [scope for base in bases for scope in self._functions.get(base, ())]
            return above[0] if len(above) == 1 else None
        is_pattern = enclosing(argument.node, "^class_pattern$") is not None
        functions = self._functions.get(word, {})
        own_scopes = (each for each, node in functions.items() if self._refers_to(use, node))
        return next((scope for scope in own_scopes if scope.is_class or not is_pattern), None)

    def _functions_by_name(self) -> dict[str, dict[Scope, Node]]:
        """Functions with a parameter of the name, by theirs; classes by a field or ``__init__``."""
        functions: dict[str, dict[Scope, Node]] = {}
        for use in self._names:
            scope = use.scope
            is_field = scope is not None and use.use.binds and scope.is_class
            if scope is None or not (use.use is Use.PARAMETER or is_field):
                continue
            if is_field and "__init__" in self.tree.text[scope.start : scope.end]:
                continue
            node = self.tree.node(scope.start, scope.end)
            name = self._name(node)
            if name == "__init__" and use.scopes[1:] and use.scopes[1].is_class:
                node = self.tree.node(use.scopes[1].start, use.scopes[1].end)
                name = self._name(node)
            if name and node is not None:
                functions.setdefault(name, {})[scope] = node
        return functions

    def _name(self, definition: Node | None) -> str:
        return self.tree.text_of(child_of(definition, "name"))

    def _refers_to(self, use: Occurrence, definition: Node) -> bool:
        """Return whether a name means a definition, or the method of the class around it."""
        name = child_of(definition, "name")
        assert name is not None
        word = self.tree.text_of(name)
        uses = self._python.of(word)
        defined = uses[self.tree.start(name)]
        bindings = [
            each for each in uses.values() if each.use.binds and each.scope == defined.scope
        ]
        if len(bindings) != 1:
            return False
        if defined.scopes[0].is_class:
            return self.class_of(use) == defined.scopes[0]
        return use.use is not Use.ATTRIBUTE and use.scope == defined.scope


def called_with(tree: SyntaxTree, key: Node) -> Node | None:
    """Return what is called with an argument by its name, or matched with a pattern by it."""
    around_key = enclosing(key, "^(?:call|class_pattern)$")
    if PARTIAL.match(tree.text_of(around_key)):
        return next(iter(inner(child_of(around_key, "arguments"))), None)
    return child_of(around_key, "function") or next(iter(inner(around_key)), None)


def _receiver(use: Occurrence) -> Node | None:
    """Return the name before the dot of an attribute."""
    before = child_of(use.node.parent, "object") if use.use is Use.ATTRIBUTE else None
    return before if kind_of(before) == "identifier" else None


# Variables of blocks


def _by_block(
    tree: SyntaxTree, refs: list[Reference], variables: dict[int, Node]
) -> list[Reference]:
    """Of a variable that a block and others give, the places in the block are one of its own."""
    blocks: dict[Scope, Scope] = {}
    bound: dict[Scope, list[int]] = {}
    for use in refs:
        if not use.declares or use.scope is None or use.use is not NameUse.VARIABLE:
            continue
        bound.setdefault(use.scope, []).append(use.start)
        block = _block_of(variables[use.start]) if use.start in variables else None
        if block is not None:
            blocks[scope_of(tree, block)] = use.scope
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
    node = enclosing(variable, _BLOCKS, _NO_BLOCKS)
    body = child_of(node, "body")
    return node if body is None or variable.start_byte < body.start_byte else None


# Names in strings


def _in_strings(tree: SyntaxTree, name: str, names: list[Occurrence]) -> list[Reference]:
    """Return where a string holds the name of what the module gives to others, or of a type."""
    scopes = {use.scope for use in names if use.use.binds and use.scope is not None}
    code_starts = {use.start for use in names}
    refs = []
    for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", tree.text) if scopes else ():
        node = tree.node(*match.span()) if match.start() not in code_starts else None
        string = outside(node) if kind_of(node) == "string_content" else None
        if string is None or string.type != "string":
            continue
        if tree.text_of(node) == name and _is_exported(tree, string):
            scope = next((each for each in scopes if each.kind == "module"), None)
        elif (_is_annotation(tree, string) or _is_name(tree, string)) and len(scopes) == 1:
            (scope,) = scopes
        else:
            scope = None
        if scope is None or not scope.start <= match.start() < scope.end:
            scope = _documented(tree, string, match.span(), scopes)
        if scope is not None:
            kind = NameUse.MEMBER if scope.is_class else NameUse.VARIABLE
            refs.append(Reference(*match.span(), kind, scope, node=node))
    return refs


def _is_exported(tree: SyntaxTree, string: Node) -> bool:
    """Return whether a string is one of ``__all__``."""
    outer = (node for node in around(string) if not _OF_ALL.match(node.type))
    named = tree.text_of(child_of(next(outer, None), "left", "function"))
    return named in ("__all__", "__all__.append", "__all__.extend")


def _is_name(tree: SyntaxTree, string: Node) -> bool:
    """Return whether a string is the type that ``cast`` or another function takes, or the name of
    the type that it makes."""
    call = outside(string, 2)
    is_first = inner(child_of(call, "arguments"))[:1] == [string]
    return is_first and _NAMING.match(tree.text_of(call)) is not None


def _documented(
    tree: SyntaxTree, string: Node, span: tuple[int, int], scopes: set[Scope]
) -> Scope | None:
    """Return the function whose parameter a docstring documents at a place, or the class whose
    field: ``:param name:``, ``name:`` below ``Args:`` or ``name : int`` below ``Parameters``."""
    before, definition = tree.text[tree.start(string) : span[0]], outside(string, 2)
    headings = (start.search(before) for start, end in _DOCUMENTED if end.match(tree.text, span[1]))
    heading = next(filter(None, headings), None)
    if heading is None or definition is None or inner(string.parent)[0] != string:
        return None
    own = scope_of(tree, definition)
    is_of_init = own.is_class and "Attributes" not in heading[0]
    within = [scope for scope in scopes if is_of_init and own.start < scope.start < own.end]
    inits = (scope for scope in within if tree.text.startswith("def __init__(", scope.start))
    return own if own in scopes else next(inits, None)


def _is_annotation(tree: SyntaxTree, string: Node) -> bool:
    if kind_of(string.parent) != "type":
        return False
    for node in around(string):
        if node.type not in ("type", "type_parameter", "generic_type"):
            break
        is_generic = node.type == "generic_type"
        if is_generic and tree.text_of(node.named_child(0)).rpartition(".")[2] in _NO_ANNOTATION:
            return False
    return True
