"""The use of a name in the text, told by the nodes around it, in any grammar but Python's: a
variable, a member, a key, or a variable and key that are written once for both."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.text.syntax.brackets import unpaired
from lsp_server.text.syntax.nodes import around, child_of, kind_of, outside
from lsp_server.text.syntax.scopes import Scope

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

Span = tuple[int, int]


class NameUse(Enum):
    """The role of one occurrence of a name."""

    VARIABLE = "variable"
    """What a scope gives: a variable, parameter, function or type."""
    MEMBER = "member"
    """A field or method of something else: ``o.name``, and where a class declares it."""
    KEY = "key"
    """A key, the name of an argument, a label, an attribute, an element."""
    FOREIGN = "foreign"
    """A name that cannot have another one here: another file gives it."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """The use of one occurrence, and the form in which a new name is written in its stead."""

    use: NameUse
    declares: bool = False
    start: int = -1
    end: int = -1
    """What is replaced; -1: the name itself."""
    before: str = ""
    after: str = ""
    """What keeps the old name beside the new one: ``{ name: new }``, ``{ new as name }``."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A name at a place of the text."""

    start: int
    end: int
    use: NameUse
    scope: Scope | None = None
    """The scope whose variable is meant, or the class whose member; None where the text does not
    tell."""
    declares: bool = False
    """Whether the place gives the name its meaning."""
    node: Node | None = field(default=None, compare=False, repr=False)
    """Its leaf; None in a text inside of another one."""
    is_foreign: bool = False
    """Whether it takes the name from another file."""
    receiver: str | None = None
    """The name before the dot of a member, empty where that is no name; None without a dot."""
    first: int = -1
    last: int = -1
    """What is replaced where that is more than the name."""
    before: str = ""
    after: str = ""
    """What keeps the old name beside the new one, as in ``{ name: new }``."""
    is_guessed: bool = False
    """The bindings of the language are not read: the signs around the name tell its use."""

    @property
    def span(self) -> Span:
        """Offsets of the text that a rename replaces."""
        first = self.first if self.first >= 0 else self.start
        return first, self.last if self.last >= 0 else self.end

    def written(self, new: str) -> str:
        """Return the text that a rename to ``new`` inserts."""
        return f"{self.before}{new}{self.after}"

    def moved(self, by: int) -> Reference:
        """Return the reference in a text with ``by`` more characters before it."""
        scope, offsets = self.scope, (self.start, self.end, self.first, self.last)
        start, end, first, last = (offset + by if offset >= 0 else -1 for offset in offsets)
        moved = replace(scope, start=scope.start + by, end=scope.end + by) if scope else None
        return replace(self, start=start, end=end, first=first, last=last, scope=moved, node=None)


_VARIABLE, _MEMBER, _KEY = NameUse.VARIABLE, NameUse.MEMBER, NameUse.KEY

_TABLE: dict[str, list[str]] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
"""Kinds of nodes: those of names that are no variables, of labels, of what has a key before ``=``
or ``:`` and of what declares its first name; and patterns of kinds."""
_KEYS, _LABELS, _KEYED, _NAMED_FIRST = (
    set(_TABLE[kinds]) for kinds in ("keys", "labels", "keyed", "named_first")
)
_DECLARED, _PARAMETERS, _PATTERN = (
    re.compile("|".join(_TABLE[kinds])) for kinds in ("declared", "parameters", "pattern")
)
_NAMING = _TABLE["naming"]
"""Fields that hold what is declared."""
_DOTS = {".", "?.", "->", "::", "&.", "?->", "!!."}
_ARROWS = {"java", "kotlin", "swift"}
"""Grammars in which ``->`` comes before what a lambda gives."""
_MAPS = {"map_type", "array_type", "slice_type", "implicit_length_array_type"}
_JSX = {"jsx_opening_element", "jsx_closing_element", "jsx_self_closing_element"}
_IMPORTS = re.compile(r"^(?:import|using|use)_|^namespace_use|^import$")
_CONDITIONS = {"if_statement", "guard_statement", "while_statement"}

_MARKS = {"tag_name", "attribute_name", "directive_value"}
_EXPRESSIONS = {"raw_text_expr", "attribute_js_expr", "permissible_text"}
"""What stands between braces in Svelte and Astro."""
NEAR = 400
"""Characters around a name whose signs and brackets are looked at where bindings are not read."""
_BRACKET = re.compile(r"[()\[\]{}]")
_SIGIL = re.compile(r"(?<![\w)\]])\$$")
_SIGNS = ("~", "?", "@", "$", ":")


def use_of(tree: SyntaxTree, node: Node, span: Span) -> Spelling:
    """Return the use of the occurrence whose leaf is ``node``."""
    short = _short_form(tree, node, span)
    if short is not None:
        return short
    parent = node.parent
    if parent is None:
        return Spelling(_VARIABLE)
    inner = parent if parent.type == "variable_name" else node
    if _is_label_or_key(tree, node, span):
        declares = node.type in _KEYS and is_declared(node)
        return Spelling(_MEMBER if declares else _KEY, declares)
    if _is_behind_dot(tree, inner):
        return _imported(tree, node) or Spelling(_MEMBER)
    if tree.text[tree.start(node)] == "@":
        return Spelling(_MEMBER)
    return Spelling(_VARIABLE, is_declared(node))


def guessed(tree: SyntaxTree, span: Span) -> Reference:
    """Return the occurrence of a name in a language of which only the signs around names are read:
    what comes behind a dot, before a colon or alone between braces may be a member or a key. Names
    of elements and attributes are no variables."""
    name, node = tree.text[slice(*span)], tree.node(*span)
    kind, reference = kind_of(node), Reference(*span, _VARIABLE, node=node)
    is_component = kind == "tag_name" and not name[0].islower()
    is_alone = kind == "directive_value" and tree.text[span[1] : span[1] + 1] != "="
    if kind in _MARKS and not is_component and not is_alone:
        return replace(reference, use=_KEY)
    if kind in _EXPRESSIONS and tree.text_of(node) == name:
        outer = outside(node, 2)
        if outer is None or outer.type != "attribute" or outer.named_child_count > 1:
            return replace(reference, is_guessed=True)
        # ``<A {name} />`` gives the variable and names the attribute.
        first, last = span[0] - 1, span[1] + 1
        return replace(reference, first=first, last=last, before=f"{name}={{", after="}")
    above = tree.text[max(0, span[0] - NEAR) : span[0]]
    before, after = above.rstrip(), tree.text[span[1] :][:NEAR].lstrip()
    if _SIGIL.search(above) or (tree.grammar == "scss" and above.endswith("@")):
        return replace(reference, is_guessed=True)
    is_first = before.endswith(("(", "{", "[", ","))
    is_key = is_first and after[:1] in (":", "=") and after[:2] not in ("==", "=>", "::", ":=")
    is_alone = before.endswith(("{", ",", ";")) and after.startswith(("}", ",", ";"))
    is_short = is_alone and unpaired(_BRACKET.findall(above)).opening[-1:] == "{"
    is_member = before.endswith((".", "->", "::", "inherit")) or above.endswith(_SIGNS)
    use = _KEY if is_key or is_short or is_member else _VARIABLE
    return replace(reference, use=use, is_guessed=True)


def leaf_before(tree: SyntaxTree, node: Node | None) -> Node | None:
    """Return the token before a node."""
    offset = tree.start(node) - 1 if node is not None else -1
    while offset >= 0 and tree.text[offset].isspace():
        offset -= 1
    return tree.node(offset, offset + 1) if offset >= 0 else None


def leaf_after(tree: SyntaxTree, node: Node) -> Node | None:
    """Return the token after a node."""
    offset = tree.end(node)
    while offset < len(tree.text) and tree.text[offset].isspace():
        offset += 1
    return tree.node(offset, offset + 1) if offset < len(tree.text) else None


# Names that are keys and variables at once


def _short_form(tree: SyntaxTree, node: Node, span: Span) -> Spelling | None:
    """Return how a name is written that is written once for two things; None where it is not."""
    name, kind, parent = tree.text[slice(*span)], node.type, node.parent
    outer = kind_of(parent)
    if kind in ("shorthand_property_identifier", "shorthand_property_identifier_pattern"):
        declares = kind.endswith("pattern") and is_declared(node)
        return Spelling(_VARIABLE, declares, before=f"{name}: ")
    if parent is None:
        return None
    if outer == "shorthand_field_initializer":
        return Spelling(_VARIABLE, before=f"{name}: ")
    if kind == "shorthand_field_identifier":
        start = tree.start(parent)
        return Spelling(_VARIABLE, True, start, before=f"{name}: {tree.text[start : span[0]]}")
    if outer == "use_list":
        return Spelling(_VARIABLE, True, before=f"{name} as ")
    if outer in ("export_specifier", "import_specifier"):
        return _specified(node, parent, name)
    if outer == "anonymous_object_creation_expression":
        if _sign(tree, leaf_after(tree, node)) == "=":
            return Spelling(_KEY)
        is_value = _sign(tree, leaf_before(tree, node)) == "="
        return Spelling(_VARIABLE, before="" if is_value else f"{name} = ")
    if kind == "hash_key_symbol" and outer == "pair" and parent.named_child_count == 1:
        return Spelling(_VARIABLE, end=span[1] + 1, before=f"{name}: ")
    is_optional = tree.grammar == "swift" and outer in _CONDITIONS
    if is_optional and _sign(tree, leaf_before(tree, node)) in ("let", "var"):
        # ``if let name`` gives a name to the value of the variable of that name.
        is_bound = _sign(tree, leaf_after(tree, node)) in ("=", ":")
        return Spelling(_VARIABLE, True) if is_bound else Spelling(NameUse.FOREIGN)
    return None


def _specified(node: Node, specifier: Node, name: str) -> Spelling:
    """Return a name in the list of an import or export."""
    alias, is_export = child_of(specifier, "alias"), specifier.type == "export_specifier"
    if is_export and child_of(outside(specifier, 2), "source") is not None:
        return Spelling(_KEY)
    if alias is None:
        if is_export:
            return Spelling(_VARIABLE, after=f" as {name}")
        return Spelling(_VARIABLE, True, before=f"{name} as ")
    if is_export:
        return Spelling(_KEY if alias == node else _VARIABLE)
    return Spelling(_VARIABLE, True) if alias == node else Spelling(_KEY)


def _imported(tree: SyntaxTree, node: Node) -> Spelling | None:
    """Return a name that an import takes from somewhere, at the end of its path."""
    if not any(_IMPORTS.match(outer.type) for outer in islice(around(node), 5)):
        return None
    if _sign(tree, leaf_after(tree, node)) in {*_DOTS, "as", "{"}:
        return Spelling(_KEY)
    if tree.grammar in ("rust", "kotlin"):
        return Spelling(_VARIABLE, True, before=f"{tree.text_of(node)} as ")
    return Spelling(NameUse.FOREIGN)


# Keys and members


def _is_label_or_key(tree: SyntaxTree, node: Node, span: Span) -> bool:
    parent, kind = node.parent, node.type
    assert parent is not None
    outer = parent.type
    if outer == "lifetime" or child_of(parent, "external_name") == node:
        return True
    if outer in _LABELS or (kind in _KEYS and not _is_behind_dot(tree, node)):
        return True
    if outer == "labeled_statement":
        return parent.named_children[0] == node
    if outer in _JSX:
        return not tree.text[span[0]].isupper()
    following = _sign(tree, leaf_after(tree, node))
    if outer == "with_initializer":
        return following == "="
    if outer == "assignment_expression" and child_of(parent, "left") == node:
        return kind_of(parent.parent) == "initializer_expression"
    if outer == "token_tree" and following == "=":
        return True
    if outer not in _KEYED or following not in ("=", ":"):
        return False
    if outer == "literal_element":
        return _is_key_of_struct(parent)
    return outer != "argument" or _is_first_named(parent, node)


def _is_key_of_struct(key: Node) -> bool:
    """Return whether a literal element of Go is the field of a struct: the keys of maps and arrays
    are expressions."""
    element = key.parent
    if kind_of(element) != "keyed_element" or child_of(element, "key") != key:
        return False
    return kind_of(child_of(outside(element, 2), "type")) not in _MAPS


def _is_first_named(parent: Node, node: Node) -> bool:
    return bool(parent.named_children) and parent.named_children[0] == node


def _is_behind_dot(tree: SyntaxTree, node: Node) -> bool:
    """Return whether a name is looked up in what comes before it."""
    parent = node.parent
    is_call = parent is not None and parent.type == "member_call_expression"
    if parent is not None and is_call and _is_first_named(parent, node):
        return False
    leaf = leaf_before(tree, node)
    kind = _sign(tree, leaf)
    if kind not in _DOTS or (kind == "->" and tree.grammar in _ARROWS):
        return False
    if kind == "::" and parent is not None and parent.type == "callable_reference":
        before = leaf_before(tree, leaf)
        return before is not None and before.start_byte >= parent.start_byte
    return True


def _sign(tree: SyntaxTree, leaf: Node | None) -> str:
    """Return the sign that a token is; grammars give some of them names."""
    return tree.text_of(leaf) if leaf is not None and leaf.child_count == 0 else ""


# Declarations


def is_declared(node: Node) -> bool:
    """Return whether a name is the name of a declaration, or of a parameter."""
    inner, parent = node, node.parent
    if kind_of(parent) == "method_definition" and kind_of(outside(parent)) == "object":
        return False
    is_upper = (node.text or b"").decode("utf-16-le", "replace")[:1].isupper()
    while parent is not None:
        kind = parent.type
        named = (parent.children_by_field_name(name) for name in _NAMING)
        if _DECLARED.search(kind) and any(inner in children for children in named):
            return not _is_assignment(parent, kind) and not (is_upper and "pattern" in inner.type)
        if _PARAMETERS.search(kind):
            return "parameters" in kind or "params" in kind or _is_first_named(parent, inner)
        if kind in _NAMED_FIRST and child_of(parent, "name") is None:
            names = [child for child in parent.named_children if "identifier" in child.type]
            return bool(names) and names[0] == inner
        if not _PATTERN.search(kind) or _is_no_part(parent, kind, inner):
            return False
        inner, parent = parent, parent.parent
    return False


def _is_no_part(parent: Node, kind: str, inner: Node) -> bool:
    """Return whether what is in a pattern is no part of what it gives: a type, a key, a default."""
    own = {"pair_pattern": (), "field_pattern": ("value", "name")}.get(kind, ("value",))
    fields = ("type", "right", "key", "default", "size", *own)
    return any(child_of(parent, name) == inner for name in fields)


def _is_assignment(parent: Node, kind: str) -> bool:
    """Return whether what looks like a declaration names what is declared elsewhere."""
    if kind == "for_in_statement":
        return child_of(parent, "kind") is None
    if kind == "range_clause":
        return all(child.type != ":=" for child in parent.children)
    return kind.endswith("_specifier") and child_of(parent, "body") is None
