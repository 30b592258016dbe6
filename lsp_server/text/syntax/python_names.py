"""Resolves names in Python: which binding each use refers to.

Scopes are Python's own (reference manual, 4.2 Naming and binding): the module, classes, functions,
lambdas and comprehensions; the body of a class is not seen from the functions in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from lsp_server.text.syntax.nodes import child_of, kind_of
from lsp_server.text.syntax.scopes import Scope, scope_of

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_COMPREHENSIONS = re.compile("(?:list|set|dictionary)_comprehension|generator_expression")
_PATTERNS = {"pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern"}
_PARAMETER_LISTS = {"parameters", "lambda_parameters"}
_PARAMETERS = {"default_parameter", "typed_parameter", "typed_default_parameter"}
_SPLATS = {"list_splat_pattern", "dictionary_splat_pattern"}
_ASSIGNMENTS = {"assignment", "augmented_assignment", "for_statement", "for_in_clause"}


class Use(Enum):
    """The role of one occurrence of a name."""

    READ = "read"
    VARIABLE = "variable"
    PARAMETER = "parameter"
    DEFINITION = "definition"
    """The name of a function or class."""
    IMPORT = "import"
    """A name that an import binds as it is called in the module that it comes from."""
    ALIAS = "alias"
    """A name that an import gives: ``import a as name``."""
    DECLARATION = "declaration"
    """``global name`` or ``nonlocal name``."""
    ATTRIBUTE = "attribute"
    KEYWORD = "keyword"
    """The name of an argument in a call."""
    MODULE = "module"
    """A part of a module's path, or the name that an alias stands for."""

    @property
    def binds(self) -> bool:
        """True if the place gives the name its meaning."""
        return self in _BINDING


_BINDING = {Use.VARIABLE, Use.PARAMETER, Use.DEFINITION, Use.IMPORT, Use.ALIAS}
_NOT_OF_A_SCOPE = {Use.ATTRIBUTE, Use.KEYWORD, Use.MODULE}


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A name at a place of the text."""

    start: int
    end: int
    use: Use
    scopes: tuple[Scope, ...]
    """Those around the place, innermost first."""
    scope: Scope | None
    """The one whose binding is meant; None where the text does not tell."""
    node: Node


class PythonNames:
    """The names of a Python text. What was asked of it is kept."""

    def __init__(self, tree: SyntaxTree) -> None:
        self.tree = tree
        self._occurrences: dict[str, dict[int, Occurrence]] = {}

    def of(self, name: str) -> dict[int, Occurrence]:
        """Return all places of a name by their starts, in order, with the binding meant."""
        if name not in self._occurrences:
            uses = _occurrences(self.tree, name)
            self._occurrences[name] = {use.start: use for use in uses}
        return self._occurrences[name]


def _occurrences(tree: SyntaxTree, name: str) -> list[Occurrence]:
    uses: list[tuple[tuple[int, int], Node, Use, tuple[Scope, ...]]] = []
    for span in tree.identifiers(name):
        node = tree.node(*span)
        if node is not None and node.type == "identifier":
            use = _use(node)
            uses.append((span, node, use, _scopes(tree, node, use)))
    declared = {scopes[0]: kind_of(node.parent) == "global_statement"
                for _, node, use, scopes in uses if use is Use.DECLARATION}  # fmt: skip
    binding = {
        _binding_scope(node, scopes) for _, node, use, scopes in uses if use.binds
    } - declared.keys()
    result = []
    for span, node, use, scopes in uses:
        scope = None
        if use not in _NOT_OF_A_SCOPE:
            own = _binding_scope(node, scopes) if use.binds else scopes[0]
            scope = _meant(own, scopes, binding, declared)
        result.append(Occurrence(*span, use, scopes, scope, node))
    return result


def _meant(
    own: Scope, scopes: tuple[Scope, ...], binding: set[Scope], declared: dict[Scope, bool]
) -> Scope | None:
    """Return the scope whose binding a name in the scope ``own`` refers to."""
    chain = scopes[scopes.index(own) :]
    for number, scope in enumerate(chain):
        if scope in declared:
            if declared[scope]:
                return chain[-1]
            continue
        if scope in binding and (number == 0 or not scope.is_class):
            return scope
    return None


def _binding_scope(node: Node, scopes: tuple[Scope, ...]) -> Scope:
    """Return where a binding takes place; that of ``:=`` is around a comprehension."""
    if kind_of(node.parent) == "named_expression":
        return next(scope for scope in scopes if not _COMPREHENSIONS.fullmatch(scope.kind))
    return scopes[0]


def _use(node: Node) -> Use:
    """Return the role of an identifier, told by the nodes around it."""
    parent = node.parent
    if parent is None:
        return Use.READ
    if parent.type == "dotted_name":
        return _use_in_path(node, parent)
    direct = {
        "attribute": ("attribute", Use.ATTRIBUTE),
        "keyword_argument": ("name", Use.KEYWORD),
        "function_definition": ("name", Use.DEFINITION),
        "class_definition": ("name", Use.DEFINITION),
        "aliased_import": ("alias", Use.ALIAS),
        "named_expression": ("name", Use.VARIABLE),
    }
    if parent.type in direct:
        name, use = direct[parent.type]
        return use if parent.child_by_field_name(name) == node else Use.READ
    if parent.type == "keyword_pattern" and parent.child(0) == node:
        return Use.KEYWORD
    if parent.type in ("global_statement", "nonlocal_statement"):
        return Use.DECLARATION
    if _is_parameter(node):
        return Use.PARAMETER
    is_bound = parent.type in ("as_pattern_target", "delete_statement") or _is_assigned(node)
    return Use.VARIABLE if is_bound else Use.READ


def _use_in_path(node: Node, path: Node) -> Use:
    """Return a part of ``a.b.c``, as imports and patterns have it."""
    outer, is_first = path.parent, path.child(0) == node
    if outer is None:
        return Use.READ
    if outer.type == "import_statement":
        return Use.IMPORT if is_first else Use.MODULE
    if outer.type == "import_from_statement":
        return Use.MODULE if outer.child_by_field_name("module_name") == path else Use.IMPORT
    if outer.type in ("aliased_import", "relative_import", "future_import_statement"):
        return Use.MODULE
    if outer.type in ("case_pattern", "keyword_pattern") and path.child_count == 1:
        return Use.VARIABLE
    return Use.READ if is_first else Use.ATTRIBUTE


def _is_parameter(node: Node) -> bool:
    inner, parent = _outermost(node, _SPLATS)
    if parent is not None and parent.type in _PARAMETERS:
        if (child_of(parent, "name") or parent.child(0)) != inner:
            return False
        parent = parent.parent
    return kind_of(parent) in _PARAMETER_LISTS


def _is_assigned(node: Node) -> bool:
    inner, parent = _outermost(node, _PATTERNS)
    return kind_of(parent) in _ASSIGNMENTS and child_of(parent, "left") == inner


def _outermost(node: Node, kinds: set[str]) -> tuple[Node, Node | None]:
    """Return the last of a node and those of some kinds around it, and what is around that."""
    while (parent := node.parent) is not None and parent.type in kinds:
        node = parent
    return node, parent


def _scopes(tree: SyntaxTree, node: Node, use: Use) -> tuple[Scope, ...]:
    """Return the scopes around an identifier, innermost first."""
    scopes = []
    inner: Node = node
    outer = node.parent
    while outer is not None:
        if _is_first_iterable(outer, inner):
            # It is computed outside of the comprehension.
            inner = outer.parent or outer
            outer = inner.parent
            continue
        if _holds(outer, inner, use):
            scopes.append(scope_of(tree, outer))
        if use is Use.PARAMETER and outer.type in ("function_definition", "lambda"):
            use = Use.READ
        inner, outer = outer, outer.parent
    return tuple(scopes)


def _holds(outer: Node, inner: Node, use: Use) -> bool:
    """Return whether a child of a node lies in the scope that the node opens."""
    if outer.type == "module":
        return True
    if outer.type == "class_definition":
        return outer.child_by_field_name("body") == inner
    if outer.type in ("function_definition", "lambda"):
        is_own = use is Use.PARAMETER and outer.child_by_field_name("parameters") == inner
        return is_own or outer.child_by_field_name("body") == inner
    return _COMPREHENSIONS.fullmatch(outer.type) is not None


def _is_first_iterable(clause: Node, node: Node) -> bool:
    """Return whether a node is what the first clause of a comprehension goes over."""
    if clause.type != "for_in_clause" or clause.child_by_field_name("right") != node:
        return False
    assert clause.parent is not None
    clauses = (child for child in clause.parent.children if child.type == "for_in_clause")
    return next(clauses) == clause
