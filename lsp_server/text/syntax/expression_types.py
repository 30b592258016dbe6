"""The type of an expression as far as its file tells: by annotations, constructors, what functions
of the file return, loops over containers and the calls of lambdas on them. Without an annotation
nothing is guessed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsp_server.text.syntax.name_uses import NameUse, Reference, text_of
from lsp_server.text.syntax.references import references

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from lsp_server.text.syntax.tree import SyntaxTree

_CLASS = re.compile(
    r"(?:class|struct|interface|trait|enum|record|impl)_(?:definition|declaration|item|specifier)"
    r"|^type_spec$|^type_alias_declaration$|^impl_item$|^class$"
)
_BEFORE = re.compile(r"^(?::|&(?:'\w+)?|\*|mut\s|const\s|final\s|readonly\s|dyn\s|impl\s|->|\s)+")
_OPTIONAL = re.compile(r"\s*\|\s*(?:None|null|undefined)\b|\b(?:None|null|undefined)\s*\|\s*|[?!]$")
_WRAPPED = re.compile(
    r"(?:\w+(?:\.|::))*(?:Result|Omit|Pick|Optional|Promise|Awaitable|Readonly|Partial|Required|Final|ClassVar|Annotated|Box"
    r"|Rc|Arc|Option|Task)[\[<](.*)[\]>]"
)
_GENERIC = re.compile(r"([\w.:]+)[\[<](.*)[\]>]", re.DOTALL)
_MAPS = re.compile(r"[Dd]ict|Map|Record|Dictionary")
_SAME = re.compile(
    r"(?:into_)?iter(?:_mut)?|stream|filter|slice|sort(?:ed)?|reversed?|list|tuple|set|ToList|Where"
    r"|OrderBy|clone|cloned|copy|copied|as_(?:ref|mut)|unwrap|expect|concat|toList|to_vec|collect"
    r"|take|skip|borrow(?:_mut)?|to_owned"
)
"""Functions and methods that give what they are called on, or containers of the same."""
_ELEMENT = re.compile(
    r"find|pop|get|at|(?:First|Last)(?:OrDefault)?|Single|first|last|next|max|min|shift|get(?:First"
    r"|Last)|remove|findLast"
)
_OBJECTS = ("object", "operand", "expression", "value")
_LOOPS = re.compile(r"^(?:for_|foreach|enhanced_for|range_clause)")
_UNKNOWN = ("var", "auto", "let", "")
_WITHOUT_DOT = {"attribute", "member_expression", "selector_expression", "field_access",
                "member_access_expression", "field_expression", "method_invocation"}  # fmt: skip
MOST_STEPS = 8


def class_around(tree: SyntaxTree, node: Node) -> str:
    """Return the name of the class whose member is declared at a node, or whose method is around
    it."""
    outer = node.parent
    while outer is not None:
        receiver = outer.child_by_field_name("receiver")
        if outer.type == "method_declaration" and receiver is not None:
            return class_named(text_of(tree, receiver).strip("()").split()[-1])
        if _CLASS.search(outer.type):
            field = "type" if outer.type == "impl_item" else "name"
            name = outer.child_by_field_name(field)
            if name != node:
                return class_named(text_of(tree, name))
        outer = outer.parent
    return ""


def is_class(node: Node) -> bool:
    """Return whether a node declares a class, an interface or a struct."""
    return _CLASS.search(node.type) is not None


def class_named(text: str) -> str:
    """Return the name of the class that a type is, without what may be around it."""
    text = _OPTIONAL.sub("", _BEFORE.sub("", text.strip().strip("'\""))).strip()
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        return class_named(_arguments(wrapped[1])[0])
    generic = _GENERIC.fullmatch(text)
    head = generic[1] if generic else text
    return re.split(r"[.:]", head)[-1] if re.fullmatch(r"[\w.:]+", head) else ""


def element_of(text: str, *, is_loop: bool = False) -> str:
    """Return the type of what is in a container; of a map that of its values, or of its keys in a
    loop."""
    text = _OPTIONAL.sub("", _BEFORE.sub("", text.strip().strip("'\""))).strip()
    listed = (
        re.fullmatch(r"(?s)(.+)\[\]", text)
        or re.fullmatch(r"(?s)\[\w*\](.+)", text)
        or re.fullmatch(r"\[([^;\[\]]+)(?:;.*)?\]", text)
        or re.fullmatch(r"map\[\w+\](.+)", text)
    )
    if listed:
        return listed[1]
    generic = _GENERIC.fullmatch(text)
    if generic is None:
        return ""
    arguments = _arguments(generic[2])
    if len(arguments) > 1 and not _MAPS.search(generic[1]):
        return arguments[0] if arguments[1] == "..." else ""
    return arguments[0] if is_loop else arguments[-1]


def without_arguments(text: str) -> str:
    """Return a type, or some, without what stands between its brackets."""
    inner = re.sub(r"[\[<][^\[\]<>]*[\]>]", "", text)
    return inner if inner == text else without_arguments(inner)


def _arguments(text: str) -> list[str]:
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "[<(") - (character in "]>)")
        if character == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces]


class ExpressionTypes:
    """Those of one text."""

    def __init__(self, tree: SyntaxTree, module: ExpressionTypes | None = None) -> None:
        """module: the types of the file whose classes and functions this one uses."""
        self._tree = tree
        self.module = module
        self._references: dict[str, dict[int, Reference]] = {}
        self._known: dict[int, str] = {}

    def references(self, name: str) -> dict[int, Reference]:
        """Return the places of a name, by their starts."""
        if name not in self._references:
            refs = references(self._tree, name)
            self._references[name] = {reference.start: reference for reference in refs}
        return self._references[name]

    def declarations(self, name: str) -> Iterator[Node]:
        """Yield the nodes of a name where it is declared."""
        for reference in self.references(name).values():
            node = self._tree.node(reference.start, reference.end) if reference.declares else None
            if node is not None:
                yield node

    def class_of(self, node: Node | None) -> str:
        """Return the name of an expression's class; empty where the text does not tell."""
        return class_named(self.of(node))

    def of(self, node: Node | None, steps: int = 0) -> str:
        """Return the type of an expression, as it is written; empty where the text does not
        tell."""
        if node is None or steps > MOST_STEPS:
            return ""
        if node.id not in self._known:
            self._known[node.id] = ""
            self._known[node.id] = self._read(node, steps + 1)
        return self._known[node.id]

    def _read(self, node: Node, steps: int) -> str:
        kind, text = node.type, text_of(self._tree, node)
        if text in ("this", "self", "cls"):
            return class_around(self._tree, node)
        if "identifier" in kind and node.child_count == 0:
            return self._of_variable(node, text, steps)
        if re.search(r"^(?:new|object_creation|composite|struct)_", kind):
            constructor = next((child for field in ("constructor", "type", "name")
                         if (child := node.child_by_field_name(field))), None)  # fmt: skip
            types = node.child_by_field_name("type_arguments")
            return text_of(self._tree, constructor) + text_of(self._tree, types)
        if "call" in kind or "invocation" in kind:
            return self._of_call(node, steps)
        if kind in _WITHOUT_DOT:
            name, before = _member(node), _receiver(node)
            return self._of_field(self.of(before, steps), text_of(self._tree, name), steps)
        if kind in ("subscript", "subscript_expression", "index_expression", "array_access",
                    "element_access_expression"):  # fmt: skip
            return element_of(self.of(node.named_children[0], steps))
        if kind in ("as_expression", "satisfies_expression", "cast_expression", "type_assertion"):
            last = node.child_by_field_name("type") or node.named_children[-1]
            return text_of(self._tree, last)
        if kind == "list_comprehension":
            return f"list[{self.of(node.child_by_field_name('body'), steps)}]"
        if kind in ("list", "array"):
            inner = self.of(node.named_children[0], steps) if node.named_children else ""
            if node.named_children and node.named_children[0].type == "spread_element":
                return self.of(node.named_children[0].named_children[0], steps)
            return f"list[{inner}]" if inner else ""
        is_around = "parenthesized" in kind or re.match(
            r"await|reference_|unary_|pointer_|non_null|try_expression|with_expression|expression_list",
            kind,
        )
        return self.of(node.named_children[-1], steps) if is_around and node.named_children else ""

    def _of_variable(self, node: Node, name: str, steps: int) -> str:
        refs = self.references(name)
        here = refs.get(self._tree.index(node.start_byte))
        if here is None or here.scope is None:
            return self._of_module(name) if self._tree.grammar == "go" else ""
        if here.use is NameUse.MEMBER:
            return self.of_member(class_around(self._tree, node), name, steps)
        types = {
            self._declared(declared, steps)
            for reference in refs.values()
            if reference.declares and reference.scope == here.scope and not reference.is_foreign
            and (declared := self._tree.node(reference.start, reference.end)) is not None
        }  # fmt: skip
        return types.pop() if len(types) == 1 else "" if types else self._of_module(name)

    def declared(self, name: str) -> str:
        """Return the type of a variable of the whole file, or what a function of it returns."""
        for reference in self.references(name).values():
            node = self._tree.node(reference.start, reference.end) if reference.declares else None
            if (
                node is not None
                and reference.scope is not None
                and reference.scope.kind == "module"
            ):
                return self._declared(node, 0)
        return ""

    def parameter(self, name: str, number: int) -> str:
        """Return the type of a parameter of a function that this file or its module has."""
        declarations = [use for use in self.references(name).values() if use.declares]
        if len(declarations) != 1 or declarations[0].is_foreign:
            is_foreign = bool(declarations) or self._tree.grammar == "go"
            return self.module.parameter(name, number) if self.module and is_foreign else ""
        node = self._tree.node(declarations[0].start, declarations[0].end)
        function = node.parent if node is not None else None
        value = function.child_by_field_name("value") if function is not None else None
        parameters = (value or function).child_by_field_name("parameters") if function else None
        if parameters is None or number >= parameters.named_child_count:
            return ""
        return text_of(self._tree, parameters.named_children[number].child_by_field_name("type"))

    def _of_module(self, name: str) -> str:
        return self.module.declared(name) if self.module is not None else ""

    def _of_field(self, held: str, name: str, steps: int) -> str:
        """Return the type of a field of something whose type is written so."""
        if owner := class_named(held):
            return self.of_member(owner, name, steps)
        field = rf"[{{;,\s]{re.escape(name)}\??:?\s+([^;,\n}}]+)"
        nameless = re.search(field, held) if "{" in held else None
        return nameless[1].strip() if nameless else ""

    def of_member(self, owner: str, name: str, steps: int = 0) -> str:
        """Return the type of a field, or what a method returns."""
        for reference in self.references(name).values():
            node = self._tree.node(reference.start, reference.end) if reference.declares else None
            if node is None or not (reference.use is NameUse.MEMBER or _is_property(node)):
                continue
            if class_around(self._tree, node) == owner and (
                type_name := self._declared(node, steps)
            ):
                return re.sub(r"^this$|\bSelf\b", owner, type_name)
        if self.module is not None and (type_name := self.module.of_member(owner, name, steps)):
            return type_name
        # A struct of Go that is embedded has the name of its type.
        is_embedded = self._tree.grammar == "go" and any(
            declaration.parent is not None and is_class(declaration.parent)
            for declaration in self.declarations(name)
        )
        return name if is_embedded else ""

    def _of_call(self, node: Node, steps: int) -> str:
        called = next((child for field in ("function", "name", "macro")
                       if (child := node.child_by_field_name(field))), None)  # fmt: skip
        if called is None:
            return ""
        text = text_of(self._tree, called)
        name = re.split(r"\W+", text)[-1]
        before = _receiver(called if _receiver(called) is not None else node)
        path = called.child_by_field_name("path")
        arguments = node.child_by_field_name("arguments")
        arguments_given = arguments.named_children if arguments is not None else []
        if path is not None:
            owner = class_named(text_of(self._tree, path))
            owner = class_around(self._tree, node) if owner == "Self" else owner
            member_type = self.of_member(owner, name, steps)
            return member_type or (owner if name in ("new", "default") else "")
        is_same = _SAME.fullmatch(name) is not None
        if (is_same or _ELEMENT.fullmatch(name)) and (before or arguments_given):
            held = self.of(before if before is not None else arguments_given[0], steps)
            if is_same:
                return held
            return element_of(held) or held if _GENERIC.fullmatch(held) or "[" in held else ""
        if before is not None:
            if name in ("map", "flatMap") and arguments_given:
                body = self.of(arguments_given[0].child_by_field_name("body"), steps)
                return body if name == "flatMap" or not body else f"list[{body}]"
            if name == "values":
                return f"list[{element_of(self.of(before, steps))}]"
            owner = class_named(self.of(before, steps))
            is_module = not owner and text_of(self._tree, before).isidentifier()
            if is_module:
                return self._of_module(name)
            return self.of_member(owner, name, steps) if owner else ""
        if name == "new" and arguments_given and self._tree.grammar == "go":
            return text_of(self._tree, arguments_given[0])
        here = self.references(name).get(self._tree.index(called.start_byte))
        scope = here.scope if here is not None else None
        for reference in self.references(name).values():
            given_at = self._tree.node(reference.start, reference.end)
            if not reference.declares or reference.scope != scope or given_at is None:
                continue
            if reference.is_foreign or (given_at.parent and _CLASS.search(given_at.parent.type)):
                return self._of_module(name) or (name if name[:1].isupper() else "")
            return self._declared(given_at, steps)
        return "" if scope is not None else self._of_module(name)

    def _declared(self, node: Node, steps: int) -> str:
        """Return the type that a declaration gives the name at a node."""
        inner, outer, position = node, node.parent, 0
        for _ in range(6):
            if outer is None or _CLASS.search(outer.type):
                return ""
            if outer.type == "tuple_struct_pattern":
                return self._matched(outer, inner, steps)
            if outer.type == "object_pattern":
                key = inner.child_by_field_name("key") or inner
                return self._of_field(self._declared(outer, steps), text_of(self._tree, key), steps)
            around = outer.parent if outer.type == "variable_declarator" else None
            for field in ("return_type", "result", "returns", "type"):
                annotation = outer.child_by_field_name(field)
                if annotation is None and around is not None:
                    annotation = around.child_by_field_name(field)
                text = text_of(self._tree, annotation)
                if annotation is not None and annotation != inner and text not in _UNKNOWN:
                    is_many = outer.type == "variadic_parameter_declaration"
                    return f"[]{text}" if is_many else _BEFORE.sub("", text)
            if re.search(r"pattern_list|^expression_list$|tuple_pattern", outer.type):
                position = outer.named_children.index(inner)
                several = outer.named_child_count > 1
            else:
                several = "list" in inner.type and inner.named_child_count > 1
            value = outer.child_by_field_name("value") or outer.child_by_field_name("right")
            if value is None and outer.type == "variable_declarator" and outer.child_count > 2:
                value = outer.children[-1]
            if value is not None and value != inner:
                if _LOOPS.match(outer.type):
                    return self._of_loop(value, position if several else -1, steps)
                return self._assigned(value, position if several else -1, steps)
            if re.search(r"parameters$|^lambda_expression$|^arrow_function$", outer.type):
                return self._of_lambda(outer, steps)
            if re.search(r"(?:statement|definition|declaration|function_item)$", outer.type):
                return ""
            inner, outer = outer, outer.parent
        return ""

    def _matched(self, pattern: Node, name: Node, steps: int) -> str:
        """Return the type of what a pattern of Rust takes out: ``Ok(name)``."""
        held = pattern.parent
        while held is not None and not held.type.startswith(("match_exp", "let_")):
            held = held.parent
        value = held.child_by_field_name("value") if held is not None else None
        kind = text_of(self._tree, pattern.child_by_field_name("type"))
        generic = _GENERIC.fullmatch(self.of(value, steps)) if kind in ("Ok", "Some") else None
        return _arguments(generic[2])[0] if generic and pattern.named_child_count == 2 else ""

    def is_foreign(self, node: Node) -> bool:
        """Return whether an expression begins with a name that another file gives, or with a
        variable that has its value from one."""
        for _ in range(3):
            while node.named_children and "literal" not in node.type:
                node = node.named_children[0]
            refs = self.references(text_of(self._tree, node))
            here = refs.get(self._tree.index(node.start_byte))
            declarations = [
                reference
                for reference in refs.values()
                if reference.declares and here is not None and reference.scope == here.scope
            ]
            if not declarations or all(reference.is_foreign for reference in declarations):
                is_named = here is not None and self._tree.grammar not in ("go", "rust", "java")
                return bool(declarations) or (is_named and self._tree.grammar != "csharp")
            declared = self._tree.node(declarations[0].start, declarations[0].end)
            outer = declared.parent if declared is not None and len(declarations) == 1 else None
            value = outer and (
                outer.child_by_field_name("right") or outer.child_by_field_name("value")
            )
            if value is None or value == declared or outer is None or _LOOPS.match(outer.type):
                return False
            node = value
        return False

    def _assigned(self, value: Node, index: int, steps: int) -> str:
        if index >= 0 and "list" in value.type and value.named_child_count > 1:
            return self.of(value.named_children[index], steps)
        type_name = self.of(value, steps)
        if type_name.startswith("("):
            arguments = _arguments(type_name[1:-1])
            return arguments[max(index, 0)] if index < len(arguments) else ""
        # What a map of Go holds comes with whether it holds it.
        return type_name if index < 0 or (index == 0 and self._tree.grammar == "go") else ""

    def _of_loop(self, value: Node, index: int, steps: int) -> str:
        called = text_of(self._tree, value.child_by_field_name("function"))
        arguments = value.child_by_field_name("arguments")
        if called == "enumerate" and arguments is not None and index == 1:
            return element_of(self.of(arguments.named_children[0], steps), is_loop=True)
        if called.endswith(".items") and index >= 0:
            function = value.child_by_field_name("function")
            held = self.of(_receiver(function) if function is not None else None, steps)
            return element_of(held, is_loop=index == 0)
        if self._tree.grammar == "go":
            return element_of(self.of(value, steps)) if index == 1 else ""
        return element_of(self.of(value, steps), is_loop=True) if index < 0 else ""

    def _of_lambda(self, parameters: Node, steps: int) -> str:
        """Return the type of the parameter of a lambda that is called on the elements of a
        container."""
        function = parameters.parent if parameters.type.endswith("parameters") else parameters
        outer = function.parent if function is not None else None
        for _ in range(2):
            if outer is not None and "argument" in outer.type:
                outer = outer.parent
        called = outer.child_by_field_name("function") if outer is not None else None
        before = _receiver(called) if called is not None else None
        if before is None and outer is not None and outer.type == "method_invocation":
            before = _receiver(outer)
        arguments = outer.child_by_field_name("arguments") if before is None and outer else None
        if arguments is not None:
            # ``max(items, key=lambda item: …)``, ``map(lambda item: …, items)``
            others = (argument for argument in arguments.named_children if argument != function)
            before = next((other for other in others if other.type != "keyword_argument"), None)
        return element_of(self.of(before, steps), is_loop=True)


def _is_property(parameter: Node) -> bool:
    """Return whether a parameter of a constructor is a field, too."""
    outer = parameter.parent
    return outer is not None and any("modifier" in child.type for child in outer.children)


def _receiver(member: Node) -> Node | None:
    """Return the expression before the dot of a member."""
    if member.type not in _WITHOUT_DOT:
        return None
    return next((child for field in _OBJECTS if (child := member.child_by_field_name(field))), None)


def _member(node: Node) -> Node | None:
    """Return the name after the dot."""
    fields = ("attribute", "property", "field", "name")
    return next((child for field in fields if (child := node.child_by_field_name(field))), None)


def receiver_of(name: Node) -> Node | None:
    """Return the expression before the dot of the member ``node``; None without a dot."""
    outer = name.parent
    if outer is None or _member(outer) != name:
        return None
    return _receiver(outer)
