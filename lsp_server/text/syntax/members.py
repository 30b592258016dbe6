"""Uses of a class's member, told by the types of the expressions before the dot, and by those of
the literals and calls that give fields their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lsp_server.text.syntax.expression_types import (
    ExpressionTypes,
    class_around,
    class_named,
    element_of,
    is_class,
    receiver_of,
    without_arguments,
)
from lsp_server.text.syntax.name_uses import NameUse, Reference, leaf_before, text_of
from lsp_server.text.syntax.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

READ = {"python", "javascript", "typescript", "tsx", "go", "java", "csharp", "rust"}
"""Grammars whose expressions are understood."""
_BASES = re.compile(r"super|extends|implements|heritage|base_list|argument_list")
_SCRIPTS = {"javascript", "typescript", "tsx"}
_OUTSIDE = {"go", "rust", "c", "cpp"}
"""Languages whose methods are outside of the class."""
_NO_CLASS = re.compile(r"string|number|integer|float|template|regex|^(?:true|false|null|none)$")
_WORD = re.compile(r"\w+")
_MEMBER = re.compile(
    r"(?<=self\.)\w+|(?<=this\.)\w+|(?<=def )\w+|^[ \t]*(?:(?:public|private|protected|readonly|get"
    r"|set|static|async)[ \t]+)*#?\w+(?=[ \t]*[:=(;?!])",
    re.MULTILINE,
)
_WORD_OF = dict.fromkeys(("python", *_SCRIPTS), _MEMBER)
"""How the members are found that a class of a language may have."""
_ANY = re.compile("[Aa]ny|[Oo]bject|unknown|dynamic")
_FUNCTION = re.compile(r"function|method|lambda|closure|constructor_d")


@dataclass(frozen=True, slots=True)
class MemberPlaces:
    """The places of a name, as far as they are about one class."""

    owner: str
    meant: tuple[Reference, ...]
    """Those of the class's member."""
    unclear: tuple[Reference, ...]
    """Those that may be another one's."""


class Members:
    """The members of a text's classes."""

    def __init__(
        self,
        tree: SyntaxTree,
        *,
        by_words: bool = False,
        module: ExpressionTypes | None = None,
    ) -> None:
        """by_words: a variable that is called as a class is one of it; module: the types of the
        file that declares the class, where that is another one."""
        self._tree = tree
        self._types = ExpressionTypes(tree, module)
        self._nodes: dict[str, Node | None] = {}
        self._by_words = by_words

    def places(self, name: str, owner: str, *, is_argument: bool = False) -> MemberPlaces:
        """Return the places of a member of the class ``owner``; a class and those that it inherits
        the member from are one. is_argument: the class is in another file, where calls of it give
        the member by its name."""
        references = self._types.references(name)
        module = self._types.module
        if module is not None and module.references(owner) and self._class_node(owner) is not None:
            # The file has a class of that name of its own.
            references = {}
        placed = [
            (reference, node)
            for reference in references.values()
            if (node := self._tree.node(reference.start, reference.end)) is not None
        ]
        declaring = {
            class_around(self._tree, node)
            for reference, node in placed
            if self._gives(reference, node)
        }
        root = self._root(owner, declaring)
        members: list[Reference] = []
        unclear = [*self._promised(references, owner)]
        roots: dict[str, str] = {}
        for reference, node in placed:
            owner_class = self._class(reference, node, owner)
            if is_argument and reference.use is NameUse.KEY and self._called(node) == owner:
                owner_class = owner
            if owner_class is None:
                unclear.append(reference)
            elif owner_class:
                if owner_class not in roots:
                    roots[owner_class] = self._root(owner_class, declaring)
                if roots[owner_class] == root:
                    members.append(self._as_member(reference, node, name))
        return MemberPlaces(owner, tuple(members), tuple(unclear))

    def _promised(self, references: Mapping[int, Reference], owner: str) -> Iterator[Reference]:
        """Yield places that tie a member to another type: an interface of Go that wants it, a trait
        of another file, a variant that is imported from its enum."""
        for reference in references.values():
            node = self._tree.node(reference.start, reference.end)
            outer = node.parent if node is not None else None
            if node is None or outer is None or self._tree.grammar not in ("go", "rust"):
                continue
            if outer.type == "method_elem" and class_around(self._tree, node) != owner:
                yield reference
            while outer is not None and outer.type not in ("impl_item", "use_declaration"):
                outer = outer.parent
            trait = text_of(self._tree, outer and outer.child_by_field_name("trait"))
            if reference.declares and trait and self._class_node(trait) is None:
                yield reference
        if self._tree.grammar == "rust" and re.search(rf"\buse\b[^;]*\b{owner}::", self._tree.text):
            yield from list(references.values())[:1]

    def given(self, name: str, starts: Iterable[int]) -> Reference | None:
        """Return the first of some places that gives a class a member of the name."""
        for reference in filter(None, map(self._types.references(name).get, sorted(starts))):
            node = self._tree.node(reference.start, reference.end)
            if node is not None and self._gives(reference, node):
                return replace(reference, declares=True)
        return None

    def _gives(self, reference: Reference, node: Node) -> bool:
        """Return whether a place declares a member: also ``this.name = …`` in a constructor, and a
        parameter of one that is a field."""
        if reference.use is NameUse.MEMBER and (reference.declares or reference.receiver != "this"):
            return reference.declares
        outer = node.parent
        if self._tree.grammar not in _SCRIPTS or outer is None:
            return False
        if reference.use is NameUse.VARIABLE:
            return reference.declares and any("modifier" in each.type for each in outer.children)
        assigned = outer.parent
        if assigned is None or assigned.child_by_field_name("left") != outer:
            return False
        method = assigned.parent
        while method is not None and not _FUNCTION.search(method.type):
            method = method.parent
        named = method.child_by_field_name("name") if method is not None else None
        return text_of(self._tree, named) == "constructor"

    def _as_member(self, reference: Reference, node: Node, name: str) -> Reference:
        """Return a place as a rename of the member writes it: ``{ name }`` becomes ``{ new: name
        }``."""
        if not _is_short(reference, node, name):
            return reference
        member = replace(reference, use=NameUse.MEMBER, declares=False)
        return replace(member, before="", after=f": {name}")

    def _class(self, reference: Reference, node: Node, owner: str) -> str | None:
        """Return the class whose member a place is; empty where it is none, None where that is
        unclear."""
        if reference.use is NameUse.MEMBER:
            before = receiver_of(node)
            path = node.parent.child_by_field_name("path") if node.parent is not None else None
            is_in_macro = node.parent is not None and node.parent.type == "token_tree"
            if before is None and reference.receiver and is_in_macro:
                dot = leaf_before(self._tree, node)
                before = leaf_before(self._tree, dot) if dot is not None else None
                far = leaf_before(self._tree, before) if before is not None else None
                if text_of(self._tree, far) == ".":
                    return None
            if (reference.declares and before is None) or (before is None and path is None):
                return class_around(self._tree, node)
            return self._of_receiver(before or path, owner)
        if reference.use is NameUse.VARIABLE and self._gives(reference, node):
            return class_around(self._tree, node)
        is_short = _is_short(reference, node, text_of(self._tree, node))
        if reference.use is not NameUse.KEY and not is_short:
            return ""
        return self._of_key(reference, node, owner)

    def _of_receiver(self, before: Node | None, owner: str) -> str | None:
        assert before is not None
        text = text_of(self._tree, before)
        is_base = text == "base" and self._tree.grammar == "csharp"
        if is_base or text in ("Self", "super") or text.startswith("super("):
            return class_around(self._tree, before)
        is_named = text == owner and not any(
            reference.declares and not reference.is_foreign
            for reference in self._types.references(text).values()
        )
        if is_named or self._class_node(text) is not None:
            return text
        if self._types.module is not None and re.fullmatch(rf"(?:\w+\.)+{owner}", text):
            return owner
        here = self._types.references(text).get(self._tree.index(before.start_byte))
        is_class = here is not None and here.scope is None and text[:1].isupper()
        if class_name := self._types.class_of(before) or (text if is_class else ""):
            return None if self._may_be_any(class_name) else class_name
        is_nameless = self._types.of(before).lstrip(": ").startswith("{")
        if is_nameless or self._is_foreign(before, owner):
            return ""
        word = text.replace("_", "").lower()
        references = (
            reference
            for reference, node in self._nodes.items()
            if node is not None and self._by_words
        )
        return next((reference for reference in references if reference.lower() == word), None)

    def _may_be_any(self, name: str) -> bool:
        """Return whether a type does not tell the class: any, a type parameter, one of several."""
        nodes = list(self._types.declarations(name)) if name.isidentifier() else []
        outer = {node.parent.type for node in nodes if node.parent is not None}
        alias = self._class_node(name) if "type_alias_declaration" in outer else None
        is_either = alias is not None and "|" in text_of(self._tree, alias)
        return is_either or _ANY.fullmatch(name) is not None or "type_parameter" in outer

    def _is_foreign(self, before: Node, owner: str) -> bool:
        """Return whether something has a type that another file gives, or members that a class has
        not."""
        if _NO_CLASS.search(before.type):
            return True
        if self._types.is_foreign(before):
            return True
        name = text_of(self._tree, before)
        references = self._types.references(name) if name.isidentifier() else {}
        here = references.get(self._tree.index(before.start_byte))
        node = self._class_node(owner)
        if node is None or self._tree.grammar in _OUTSIDE or here is None:
            return False
        finder = _WORD_OF.get(self._tree.grammar, _WORD)
        declarations = finder.findall(text_of(self._tree, node))
        words = {declaration.split()[-1].lstrip("#") for declaration in declarations}
        scope = here.scope
        text = self._tree.text[scope.start : scope.end] if scope is not None else ""
        used = re.findall(rf"(?<![\w.]){re.escape(name)}\s*(?:\?\.|\.)\s*(\w+)", text)
        return not set(used) <= words and not self._bases(owner, only_known=False)

    # Literals and calls

    def _of_key(self, reference: Reference, node: Node, owner: str) -> str | None:
        """Return the class whose field gets a value by its name."""
        tree = self._tree
        if tree.grammar == "python":
            if reference.scope is not None:
                return self._called(node) if reference.scope.is_class else ""
            call = node.parent.parent.parent if node.parent and node.parent.parent else None
            called = call.child_by_field_name("function") if call is not None else None
            arguments = call.child_by_field_name("arguments") if call is not None else None
            if re.fullmatch(r"(?:\w+\.)?replace", text_of(tree, called)) and arguments is not None:
                first = arguments.named_children[0]
                return self._types.class_of(first) or None
            return ""
        literal = node.parent
        while literal is not None and not re.search(
            r"^object(?:_pattern)?$|literal_value|struct_(?:expression|pattern)|initializer_expression"
            r"|with_expression|statement|attribute|argument",
            literal.type,
        ):
            literal = literal.parent
        if literal is None:
            return ""
        if literal.type == "jsx_attribute" and literal.parent is not None:
            element = text_of(tree, literal.parent.child_by_field_name("name"))
            return class_named(self._types.parameter(element, 0))
        if literal.type.startswith("struct_"):
            named = literal.child_by_field_name("name") or literal.child_by_field_name("type")
            text = text_of(tree, named)
            return class_around(tree, literal) if text == "Self" else class_named(text)
        if literal.type in ("literal_value", "object", "object_pattern"):
            class_name = class_named(self._expected(literal))
            if class_name:
                return class_name
            return None if self._may_be(literal, owner) else ""
        if literal.type == "initializer_expression" and literal.parent is not None:
            return class_named(text_of(tree, literal.parent.child_by_field_name("type")))
        if literal.type == "with_expression":
            return self._types.class_of(literal.named_children[0]) or None
        return ""

    def _called(self, key: Node) -> str:
        """Return the name of what is called with an argument by its name."""
        call: Node | None = key
        while call is not None and call.child_by_field_name("arguments") is None:
            call = call.parent
        called = call.child_by_field_name("function") if call is not None else None
        return text_of(self._tree, called).split(".")[-1]

    def _may_be(self, literal: Node, owner: str) -> bool:
        """Return whether a literal without a type may be one of a class: it has no other keys."""
        node = self._class_node(owner)
        if node is None or re.search("class|enum", node.type):
            return self._tree.grammar == "go"
        words = set(re.findall(r"\w+", text_of(self._tree, node)))
        keys = (child.child_by_field_name("key") or child for child in literal.named_children)
        return all(
            text_of(self._tree, child) in words for child in keys if "comment" not in child.type
        )

    def _expected(self, node: Node, steps: int = 0) -> str:
        """Return the type that is given where a literal is."""
        tree, outer = self._tree, node.parent
        if outer is None or steps > 6:
            return ""
        if node.type == "object_pattern":
            value = outer.child_by_field_name("value") or outer.child_by_field_name("right")
            annotation = outer.child_by_field_name("type")
            if annotation is not None or value is None:
                return text_of(tree, annotation)
            held = self._types.of(value)
            return element_of(held, is_loop=True) if outer.type.startswith("for") else held
        annotation = outer.child_by_field_name("type")
        if annotation is not None and annotation != node:
            return text_of(tree, annotation)
        if outer.type in ("as_expression", "satisfies_expression"):
            return text_of(tree, outer.named_children[-1])
        if outer.type in ("array", "literal_value") or (
            outer.type == "literal_element" and outer.parent is not None
        ):
            is_keyed = outer.parent is not None and outer.parent.type == "keyed_element"
            around = outer.parent if outer.type == "literal_element" else outer
            around = around.parent if is_keyed and around is not None else around
            return element_of(self._expected(around, steps + 1)) if around is not None else ""
        if outer.type == "pair" and outer.parent is not None:
            owner = class_named(self._expected(outer.parent, steps + 1))
            key = text_of(tree, outer.child_by_field_name("key"))
            return self._types.of_member(owner, key) if owner else ""
        if outer.type == "assignment_expression":
            return self._types.of(outer.child_by_field_name("left"))
        if outer.type == "arguments" and outer.parent is not None:
            called = text_of(tree, outer.parent.child_by_field_name("function")).split(".")[-1]
            return self._types.parameter(called, outer.named_children.index(node))
        if outer.type in ("return_statement", "arrow_function"):
            function: Node | None = outer
            while function is not None and not _FUNCTION.search(function.type):
                function = function.parent
            result = function.child_by_field_name("return_type") if function is not None else None
            return text_of(tree, result)
        is_value = re.match("parenthesized|binary|ternary|conditional", outer.type) is not None
        return self._expected(outer, steps + 1) if is_value else ""

    # Classes

    def _class_node(self, name: str) -> Node | None:
        if name not in self._nodes:
            nodes = self._types.declarations(name) if name.isidentifier() else ()
            around = (node.parent for node in nodes)
            self._nodes[name] = next((outer for outer in around if outer and is_class(outer)), None)
        return self._nodes[name]

    def _bases(self, name: str, *, only_known: bool = True) -> list[str]:
        """Return the classes that one is derived from: those of the file, or the others."""
        node = self._class_node(name)
        bases = []
        for child in node.children if node is not None else ():
            if _BASES.search(child.type):
                bases += re.findall(r"[^\W\d]\w*", without_arguments(text_of(self._tree, child)))
            elif child.type == "struct_type":
                bases += re.findall(r"^\s*\*?(\w+)\s*$", text_of(self._tree, child), re.MULTILINE)
            elif child.type == "intersection_type":
                bases += re.findall(r"\w+", re.sub(r"\{[^}]*\}", "", text_of(self._tree, child)))
        bases = [base for base in bases if base not in ("extends", "implements", "object")]
        return [base for base in bases if (self._class_node(base) is not None) == only_known]

    def _root(self, name: str, declaring: set[str]) -> str:
        """Return the first class of a line of descent that declares a member."""
        root, waiting, visited = name if name in declaring else "", [name], {name}
        while waiting:
            for base in self._bases(waiting.pop(0)):
                if base not in visited:
                    visited.add(base)
                    waiting.append(base)
                    root = base if base in declaring else root
        return root or f"{name}?"


def _is_short(reference: Reference, node: Node, name: str) -> bool:
    """Return whether a place is a key and a variable at once: ``{ name }``."""
    if reference.use is not NameUse.VARIABLE or reference.before != f"{name}: ":
        return False
    return "shorthand" in node.type + (node.parent.type if node.parent is not None else "")
