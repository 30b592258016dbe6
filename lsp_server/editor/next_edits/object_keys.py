"""Keys of constant objects of JavaScript and TypeScript, and names that a namespace exports: where
they are meant behind the name of the object."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import around, child_of, enclosing, inner, kind_of, outside

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_IN_OBJECT = re.compile(
    "(?:pair|method_definition) object (?:pair object )*(?:as_expression )?variable_declarator"
    " lexical_declaration (?:export_statement )?program"
)
_IN_NAMESPACE = re.compile(
    r"(?:\w+_declaration|variable_declarator lexical_declaration)"
    r"(?: export_statement statement_block internal_module)+ \w+_statement program"
)
_NAMED = {"pair", "method_definition", "variable_declarator", "internal_module"}
_TOLD = re.compile("string|shorthand|property_id|type_id")
_VALUES = re.compile(r"Object\.values|\(?typeof \w+\)?\[keyof typeof \w+\]")
"""What takes all values of an object, whatever their keys are."""


def object_around(tree: SyntaxTree, name: Node | None) -> tuple[Node, tuple[str, ...]] | None:
    """Return the name of the constant object or the namespace around a key or what is exported, and
    the keys that lead there; None where there is none."""
    path = " ".join(node.type for node in around(name))
    holders = (node for node in around(name) if node.type in _NAMED)
    found = [child_of(node, "key", "name") for node in holders]
    names = [name, *(node for node in found if node != name)]
    first, declared = child_of(outside(name), "key", "name"), outside(names[-1])
    if first != name or not (_IN_OBJECT.fullmatch(path) or _IN_NAMESPACE.fullmatch(path)):
        return None
    is_own = re.search(rf"\bthis\.{tree.text_of(name)}\b", tree.text_of(declared))
    is_variable = tree.text_of(outside(declared)).startswith(("let", "var"))
    if is_own or is_variable or child_of(declared, "type") is not None or names[-1] is None:
        return None
    return names[-1], tuple(_key(tree, node) for node in names[-2::-1])


def places_of_key(
    tree: SyntaxTree, uses: Iterable[Reference], keys: tuple[str, ...]
) -> list[Reference] | None:
    """Return the places behind those of an object where its key is meant; None where one of these
    does not tell the key that it takes."""
    places = []
    for use in uses:
        node = outside(use.node) if use.receiver is not None else use.node
        lookup = tree.text_of(enclosing(node, "^lookup_type$") or outside(node, 2))
        is_listed = re.search("import_spec|export_|internal_module", kind_of(outside(node)))
        if use.declares or is_listed or (len(keys) == 1 and _VALUES.match(lookup)):
            continue
        named = node
        for key in keys:
            taken = _taken(node)
            if not taken:
                return None
            named = next((each for each in taken if _key(tree, each) == key), None)
            if named is None:
                break
            node = outside(named)
        if named is not None:
            quote = int(named.type == "string")
            span = tree.start(named) + quote, tree.end(named) - quote
            after = f": {keys[-1]}" if named.type.startswith("shorthand") else ""
            places.append(Reference(*span, NameUse.KEY, node=named, after=after))
    return places


def _taken(node: Node | None) -> list[Node]:
    """Return the names of what is taken from an object where it is used; none where the text does
    not tell them."""
    outer = outside(node)
    taken = [child_of(outer, "property", "index", "name")]
    if child_of(outer, "value") == node and kind_of(taken[0]) == "object_pattern":
        taken = [child_of(each, "key") or each for each in inner(taken[0])]
    elif child_of(outer, "object", "module") != node:
        return []
    told = [each for each in taken if each is not None and _TOLD.match(each.type)]
    return told if len(told) == len(taken) else []


def _key(tree: SyntaxTree, name: Node | None) -> str:
    return tree.text_of(name).strip("\"'")
