"""Uses of a class's member, told by the types of the expressions before the dot, and by those of
the literals and calls that give fields their values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lsp_server.text.syntax.go_types import GoTypes
from lsp_server.text.syntax.languages import TABLE
from lsp_server.text.syntax.name_uses import NameUse, Reference, leaf_before
from lsp_server.text.syntax.nodes import child_of, enclosing, inner, kind_of, outside
from lsp_server.text.syntax.python_references import called_with
from lsp_server.text.syntax.resolved_names import (
    ResolvedNames,
    bases_of,
    class_around,
    is_property,
    receiver_of,
)

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.text.syntax.scopes import Scope

READ = {"python", "javascript", "typescript", "tsx", "go", "java", "csharp", "rust"}
"""Grammars whose expressions are understood."""
_SCRIPTS = {"javascript", "typescript", "tsx"}
_OUTSIDE = {"go", "rust", "c", "cpp"}
"""Languages whose methods are outside of the class."""
_NO_CLASS = re.compile(r"string|number|integer|float|template|regex|^(?:true|false|null|none)$")
_WORD = re.compile(r"\w+")
_MEMBER = re.compile(TABLE["patterns"]["member"], re.MULTILINE)
_KEYS = re.compile(r"\bTypedDict\b|Enum\b|__(?:slots|match_args)__")
"""What strings that are names of members come with."""
_ANY = re.compile("[Aa]ny|[Oo]bject|unknown|dynamic")
_FUNCTION = re.compile(r"function|method|lambda|closure|constructor_d")
_STRINGS = {"string_content", "string_fragment"}
_KEY_OF = re.compile(r"\(?keyof\s+(.+?)\)?", re.DOTALL)
_PICKED = re.compile(r"(?:(?:Pick|Omit)<)?\s*([\w.<>]+?)\s*[,\[]")
"""The type of which another one takes or leaves what is named."""
_LITERAL = re.compile(TABLE["patterns"]["literal of a type"])


@dataclass(frozen=True, slots=True)
class MemberPlaces:
    """The places of a name, as far as they are about one class."""

    meant: tuple[Reference, ...]
    """Those of the class's member."""
    unclear: tuple[Reference, ...]
    """Those that may be another one's."""


class Members:
    """The members of a text's classes."""

    def __init__(self, names: ResolvedNames, *, by_words: bool = False) -> None:
        """by_words: a variable that is called as a class is one of it."""
        self._names, self._tree = names, names.tree
        self._nodes: dict[str, Node | None] = {}
        self._by_words = by_words

    def places(self, name: str, owner: str, *, is_argument: bool = False) -> MemberPlaces:
        """Return the places of a member of the class ``owner``; a class and those that it inherits
        the member from are one. is_argument: the class is in another file, where calls of it give
        the member by its name."""
        module = self._names.module
        uses = self._names.uses(name)
        texts = self._tree.text + (module.tree.text if module else "")
        if self._tree.grammar in _SCRIPTS or _KEYS.search(texts):
            uses = sorted([*uses, *self._quoted(name)], key=lambda use: use.start)
        is_beside = module is not None and self._tree.text in module.tree.text
        if module and not is_beside and module.uses(owner) and self._class_node(owner) is not None:
            # The file has a class of that name of its own.
            uses = []
        placed = [(use, use.node) for use in uses if use.node is not None]
        giving = (node for use, node in placed if self._gives(use, node))
        declaring = {class_around(self._tree, node) for node in giving}
        sharing, root = self.sharing(owner, name), self._root(owner, name, declaring)
        members: list[Reference] = []
        unclear = [*self._promised(placed, owner, sharing)]
        roots: dict[str, str] = {}
        for use, node in placed:
            owner_class = self._class(use, node, owner)
            if is_argument and use.use is NameUse.KEY and self._called(node) == owner:
                owner_class = owner
            if owner_class is None:
                unclear.append(use)
            elif owner_class:
                if owner_class not in roots:
                    roots[owner_class] = self._root(owner_class, name, declaring)
                if owner_class in sharing or roots[owner_class] == root:
                    members.append(self._as_member(use, node, name))
        return MemberPlaces(tuple(members), tuple(unclear))

    def _quoted(self, name: str) -> Iterator[Reference]:
        """Yield the strings that are a name."""
        for match in re.finditer(rf"""(?<=["']){name}(?=["'])""", self._tree.text):
            node = self._tree.node(*match.span())
            if kind_of(node) in _STRINGS:
                yield Reference(*match.span(), NameUse.KEY, node=node)

    def _of_string(self, string: Node | None) -> str:
        """Return the class whose member a string names: the key of a dictionary or of an object,
        an enum, a list of attributes or a type that picks it; empty where it is none."""
        tree, names, outer = self._tree, self._names, outside(string)
        kind, parts, held = kind_of(outer), inner(outer), None
        if kind == "literal_type":
            picked = _PICKED.match(tree.text_of(enclosing(outer, "^(?:generic|lookup)_type$")))
            return names.class_named(picked[1]) if picked else ""
        if kind == "pair" and child_of(outer, "key") == string:
            return names.class_named(names.expected(outside(outer)))
        listing = enclosing(outer, "^assignment$", "_definition$|^call$|^subscript$")
        if string and re.match(r"__(?:slots|match_args)__\b", tree.text_of(listing)):
            return class_around(tree, string)
        if kind.startswith("subscript"):
            held = child_of(outer, "value", "object")
        enum = tree.text_of(held) if self._class_node(tree.text_of(held)) else ""
        if tree.text_of(child_of(outer, "operator", "operators")) == "in" and parts[0] == string:
            held = parts[-1]
        called = child_of(outside(outer), "function")
        if kind == "argument_list" and parts[0] == string:
            is_read = re.search(r"\.(?:get|pop|setdefault)$", tree.text_of(called))
            held = child_of(called, "object") if is_read else None
        key = _KEY_OF.fullmatch(names.expected(string))
        return names.class_of(held) or (names.class_named(key[1]) if key else enum)

    def sharing(self, owner: str, name: str) -> set[str]:
        """Return the types whose member ``name`` is called as that of ``owner``."""
        tree = self._tree
        return GoTypes(tree.text).sharing(owner, name) if tree.grammar == "go" else {owner}

    def of_embedded(self, name: str, written: str) -> Iterator[Reference]:
        """Yield the fields of Go that have their name from a type that others embed. written: the
        type as this text has it."""
        module = self._names.module
        types = GoTypes(self._tree.text).embedding(written)
        types += GoTypes(module.tree.text).embedding(name) if module is not None else []
        for use in (use for owner in types for use in self.places(name, owner).meant):
            if use.use is NameUse.KEY or receiver_of(use.node) is not None:
                yield use

    def map_keys(self, name: str, scope: Scope | None = None) -> Iterator[Reference]:
        """Yield where a variable of Go, one of ``scope`` or of the package, is a key of a map."""
        first, end = (scope.start, scope.end) if scope else (0, len(self._tree.text))
        given = (use.scope for use, _ in self._names.declared(name) if use.use is NameUse.VARIABLE)
        others = [each for each in given if each and each != scope and each.start >= first]
        for use in self._names.uses(name):
            is_other = any(each.start <= use.start < each.end for each in others)
            literal = enclosing(use.node, "^literal_value$") if use.use is NameUse.KEY else None
            is_map = bool(self._names.element(self._names.expected(literal)))
            if is_map and first <= use.start < end and not is_other:
                yield use

    def _promised(
        self, placed: list[tuple[Reference, Node]], owner: str, sharing: set[str]
    ) -> Iterator[Reference]:
        """Yield places that tie a member of ``owner`` to a type that is none of those ``sharing``
        it: an interface of Go that wants it, a trait of another file, a variant that is imported
        from its enum."""
        for use, node in placed if self._tree.grammar in ("go", "rust") else ():
            is_wanted = kind_of(node.parent) == "method_elem"
            if is_wanted and class_around(self._tree, node) not in sharing:
                yield use
            outer = enclosing(node.parent, "^(?:impl_item|use_declaration)$")
            trait = self._tree.text_of(child_of(outer, "trait"))
            if use.declares and trait and self._class_node(trait) is None:
                yield use
        if self._tree.grammar == "rust" and re.search(rf"\buse\b[^;]*\b{owner}::", self._tree.text):
            yield from (use for use, _ in placed[:1])

    def given(self, name: str, starts: Iterable[int]) -> Reference | None:
        """Return the first of some places that gives a class a member of the name."""
        offsets = set(starts)
        for use in self._names.uses(name):
            if use.start in offsets and use.node is not None and self._gives(use, use.node):
                return replace(use, declares=True)
        return None

    def _gives(self, use: Reference, node: Node) -> bool:
        """Return whether a place declares a member: also ``this.name = …`` in a constructor, and a
        parameter of one that is a field."""
        if use.use is NameUse.MEMBER and (use.declares or use.receiver != "this"):
            return use.declares
        if self._tree.grammar not in _SCRIPTS or node.type in _STRINGS:
            return False
        if use.use is NameUse.VARIABLE:
            return use.declares and is_property(node)
        assigned = outside(node, 2)
        if assigned is None or child_of(assigned, "left") != node.parent:
            return False
        method = enclosing(assigned.parent, _FUNCTION)
        return self._tree.text_of(child_of(method, "name")) == "constructor"

    def _as_member(self, use: Reference, node: Node, name: str) -> Reference:
        """Return a place as a rename of the member writes it: ``{ name }`` becomes ``{ new: name
        }``."""
        if not _is_short(use, node, name):
            return use
        return replace(use, use=NameUse.MEMBER, declares=False, before="", after=f": {name}")

    def _class(self, use: Reference, node: Node, owner: str) -> str | None:
        """Return the class whose member a place is; empty where it is none, None where that is
        unclear."""
        if use.use is NameUse.MEMBER:
            before, path = receiver_of(node), child_of(node.parent, "path")
            if before is None and use.receiver and kind_of(node.parent) == "token_tree":
                before = leaf_before(self._tree, leaf_before(self._tree, node))
                if self._tree.text_of(leaf_before(self._tree, before)) == ".":
                    return None
            if before is None and (use.declares or path is None):
                return class_around(self._tree, node)
            return self._of_receiver(before or path, owner)
        if node.type in _STRINGS:
            return self._of_string(outside(node))
        if use.use is NameUse.VARIABLE and self._gives(use, node):
            return class_around(self._tree, node)
        is_short = _is_short(use, node, self._tree.text_of(node))
        return self._of_key(use, node, owner) if use.use is NameUse.KEY or is_short else ""

    def _of_receiver(self, before: Node | None, owner: str) -> str | None:
        assert before is not None
        text = self._tree.text_of(before)
        is_base = text == "base" and self._tree.grammar == "csharp"
        if is_base or text in ("Self", "super") or text.startswith("super("):
            return class_around(self._tree, before)
        if re.fullmatch(rf"\(\*?(?:\w+\.)?{owner}\)", text):
            # The method of a type, as Go writes it.
            return owner
        is_named = text == owner and all(use.is_foreign for use, _ in self._names.declared(text))
        if is_named or self._class_node(text) is not None:
            return text
        if self._names.module is not None and re.fullmatch(rf"(?:\w+\.)+{owner}", text):
            return self._names.class_named(text)
        here = self._names.use_at(before)
        is_a_class = here is not None and here.scope is None and text[:1].isupper()
        if class_name := self._names.class_of(before) or (text if is_a_class else ""):
            return None if self._may_be_any(class_name) else class_name
        is_nameless = self._names.type_of(before).lstrip(": ").startswith("{")
        if is_nameless or self._is_foreign(before, owner):
            return ""
        word = text.replace("_", "").lower()
        classes = (name for name, node in self._nodes.items() if node is not None)
        same = (name for name in classes if name.lower() == word)
        return next(same, None) if self._by_words else None

    def _may_be_any(self, name: str) -> bool:
        """Return whether a type does not tell the class: any, a type parameter, one of several."""
        outer = {kind_of(node.parent) for _, node in self._names.declared(name)}
        alias = self._class_node(name) if "type_alias_declaration" in outer else None
        is_either = "|" in self._tree.text_of(alias)
        return is_either or _ANY.fullmatch(name) is not None or "type_parameter" in outer

    def _is_foreign(self, before: Node, owner: str) -> bool:
        """Return whether something has a type that another file gives, or members that a class has
        not."""
        if _NO_CLASS.search(before.type) or self._names.is_foreign(before):
            return True
        name = self._tree.text_of(before)
        here = self._names.use_at(before) if name.isidentifier() else None
        node = self._class_node(owner)
        if node is None or self._tree.grammar in _OUTSIDE or here is None:
            return False
        finder = _MEMBER if self._tree.grammar in {"python", *_SCRIPTS} else _WORD
        declarations = finder.findall(self._tree.text_of(node))
        words = {declaration.split()[-1].lstrip("#") for declaration in declarations}
        text = self._tree.text[here.scope.start : here.scope.end] if here.scope else ""
        used = re.findall(rf"(?<![\w.]){re.escape(name)}\s*(?:\?\.|\.)\s*(\w+)", text)
        return not set(used) <= words and not self._bases(owner, only_known=False)

    # Literals and calls

    def _of_key(self, use: Reference, node: Node, owner: str) -> str | None:
        """Return the class whose field gets a value by its name."""
        tree = self._tree
        if tree.grammar == "python":
            if use.scope is not None or enclosing(node, "^class_pattern$"):
                is_own = use.scope is None or use.scope.is_class
                return self._called(node) if is_own else ""
            call = outside(node, 3)
            called = tree.text_of(function := child_of(call, "function"))
            copied = child_of(function, "object") if called.endswith("._replace") else None
            if re.fullmatch(r"(?:\w+\.)?replace", called):
                copied = inner(child_of(call, "arguments"))[0]
            return (self._names.class_of(copied) or None) if copied is not None else ""
        literal = enclosing(node.parent, _LITERAL)
        kind, outer = kind_of(literal), outside(literal)
        if literal is None:
            return ""
        if kind == "jsx_attribute" and outer is not None:
            element = tree.text_of(child_of(outer, "name"))
            return self._names.class_named(self._names.parameter(element, 0))
        if kind.startswith("struct_"):
            text = tree.text_of(child_of(literal, "name", "type"))
            return class_around(tree, literal) if text == "Self" else self._names.class_named(text)
        if kind in ("literal_value", "object", "object_pattern"):
            expected = self._names.class_named(self._names.expected(literal))
            unknown = None if self._may_be(literal, owner) else ""
            return expected or self._names.class_of(literal) or unknown
        if kind == "initializer_expression":
            return self._names.class_named(tree.text_of(child_of(outer, "type")))
        if kind == "with_expression":
            return self._names.class_of(literal.named_children[0]) or None
        return ""

    def _called(self, key: Node) -> str:
        """Return the name of what is called with an argument by its name."""
        name = self._names.class_named(self._tree.text_of(called_with(self._tree, key)))
        return class_around(self._tree, key) if name == "cls" else name

    def _may_be(self, literal: Node, owner: str) -> bool:
        """Return whether a literal without a type may be one of a class: it has no other keys."""
        node = self._class_node(owner)
        if node is None or re.search("class|enum", node.type):
            return self._tree.grammar == "go"
        words = set(re.findall(r"\w+", self._tree.text_of(node)))
        keys = (child_of(child, "key") or child for child in literal.named_children)
        return words >= {self._tree.text_of(key) for key in keys if "comment" not in key.type}

    # Classes

    def _class_node(self, name: str) -> Node | None:
        if name not in self._nodes:
            self._nodes[name] = self._names.class_node(name)
        return self._nodes[name]

    def _bases(self, name: str, *, only_known: bool = True) -> list[str]:
        """Return the classes that one is derived from: those of the file, or the others."""
        bases = bases_of(self._tree, self._class_node(name))
        return [base for base in bases if (self._class_node(base) is not None) == only_known]

    def _root(self, name: str, member: str, declaring: set[str]) -> str:
        """Return the first class of a line of descent that declares a member."""
        descent = [name]
        for each in descent:
            text = self._tree.text_of(self._class_node(each))
            bases = (base for base in self._bases(each) if base not in descent)
            descent += [base for base in bases if not re.search(left_out(base, member), text)]
        return next((each for each in reversed(descent) if each in declaring), f"{name}?")


def left_out(base: str, member: str) -> str:
    """Return the pattern of a type of TypeScript that has not this member of another one."""
    named = rf"[^>]*[\"']{member}[\"']"
    return rf"(?:Omit<\s*{base}\s*,{named}|Pick<\s*{base}\s*,(?!{named})\s*[|\"'])"


def _is_short(use: Reference, node: Node, name: str) -> bool:
    """Return whether a place is a key and a variable at once: ``{ name }``."""
    if use.use is not NameUse.VARIABLE or use.before != f"{name}: ":
        return False
    return "shorthand" in node.type + kind_of(node.parent)
