"""The names of a text: where each is declared and used, in which scope, and of which type an
expression is as far as the text tells. Types are read from annotations, constructors, what
functions return, loops over containers and the calls of lambdas on them; none is guessed."""

from __future__ import annotations

import re
from functools import lru_cache
from threading import RLock
from typing import TYPE_CHECKING

from lsp_server.text.syntax.checked_types import checked_type
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import around, child_of, enclosing, inner, kind_of, outside
from lsp_server.text.syntax.python_names import PythonNames
from lsp_server.text.syntax.references import references
from lsp_server.text.syntax.tree import SyntaxTree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

_CLASS = re.compile(
    r"(?:class|struct|interface|trait|enum|record|impl)_(?:definition|declaration|item|specifier)"
    r"|^type_spec$|^type_alias_declaration$|^impl_item$|^class$"
)
_BASES = re.compile(r"super|extends|implements|heritage|base_list|argument_list")
_BEFORE = re.compile(r"^(?::|&(?:'\w+)?|\*|mut\s|const\s|final\s|readonly\s|dyn\s|impl\s|->|\s)+")
_OPTIONAL = re.compile(r"\s*\|\s*(?:None|null|undefined)\b|\b(?:None|null|undefined)\s*\|\s*|[?!]$")
_WRAPPED = re.compile(
    r"(?:\w+(?:\.|::))*(?:Result|Omit|Pick|Optional|Promise|Awaitable|Readonly|Partial|Required|Final|ClassVar|Annotated|Box"
    r"|Rc|Arc|Option|Task)[\[<](.*)[\]>]"
)
_GENERIC = re.compile(r"([\w.:]+)[\[<](.*)[\]>]", re.DOTALL)
_LISTED = re.compile(
    r"(.+)\[\]|\[[\w.]*\](.+)|\[([^;\[\]]+)(?:;[^\n]*)?\]|map\[[^\]]+\]([^\n]+)"
    r"|(?:<-)?chan(?:<-)?\s([^\n]+)", re.DOTALL
)  # fmt: skip
_TUPLE = re.compile(r"(?:[Tt]uple)?[(\[](.*)[)\]]", re.DOTALL)
_FUNCTION_TYPE = re.compile(
    r"\(([^()]*)\)\s*=>.*|(?:\w+\.)?(?:FC|(?:V|Function)\w*Component)<(.*)>", re.DOTALL
)
"""A function of TypeScript, by its parameters, or a component of React, by its properties."""
_MAPS = re.compile(r"[Dd]ict|Map|Record|Dictionary")
_SAME = re.compile(
    r"(?:into_)?iter(?:_mut)?|stream|filter|slice|sort(?:ed)?|reversed?|list|tuple|set|ToList|Where"
    r"|OrderBy|clone|cloned|copy|copied|as_(?:ref|mut)|unwrap|expect|concat|toList|to_vec|collect"
    r"|take|skip|borrow(?:_mut)?|to_owned|append|to(?:Sorted|Reversed|Spliced)|splice"
)
"""Functions and methods that give what they are called on, or containers of the same."""
_ELEMENT = re.compile(
    r"find|pop|get|at|(?:First|Last)(?:OrDefault)?|Single|first|last|next|max|min|shift|get(?:First"
    r"|Last)|remove|findLast"
)
HOOKS = {"useState": "({0}, Setter<{0}>)", "useMemo": "{0}", "useRef": "{{ current: {0} }}"}
"""What functions of React give for a value, or for what a lambda returns."""
_OBJECTS = ("object", "operand", "expression", "value")
_RETURNS = re.compile(r"function|method|lambda|closure")
_LOOPS = re.compile(r"^(?:for_|foreach|enhanced_for|range_clause)")
_IMPORT = re.compile(
    r"^(?:import_statement|import_from_statement|import_spec|export_statement|variable_declarator)$"
)
HERE = re.compile(r"from\s+\.+\s+import|['\"]\.{1,2}/?(?:index[\w.]*)?['\"]")
"""Imports that name no module: the package around."""
_AROUND = re.compile("await|reference_|unary_|pointer_|non_null|try_exp|with_exp|expression_list"
                     "|.*parenthesized")  # fmt: skip
_UNKNOWN = ("var", "auto", "let", "")
_WITHOUT_DOT = {"attribute", "member_expression", "selector_expression", "field_access",
                "member_access_expression", "field_expression", "method_invocation"}  # fmt: skip
MOST_STEPS = 8


def class_around(tree: SyntaxTree, node: Node) -> str:
    """Return the name of the class whose member is declared, or whose method is, around a node."""
    for outer in around(node):
        if own := nameless(tree, outer):
            return own
        receiver = outer.child_by_field_name("receiver")
        if outer.type == "method_declaration" and receiver is not None:
            owner = re.search(r"(\w+)(?:\[.*\])?\)$", tree.text_of(receiver))
            return owner[1] if owner else ""
        if is_class(outer):
            name = child_of(outer, "type" if outer.type == "impl_item" else "name")
            if name != node:
                return class_named(tree.text_of(name))
    return ""


def is_class(node: Node | None) -> bool:
    """Return whether a node declares a class, an interface or a struct."""
    return _CLASS.search(kind_of(node)) is not None


def nameless(tree: SyntaxTree, node: Node) -> str:
    """Return a name of our own for a structure of Go that has none; empty for any other node, and
    for a structure that a function's signature writes out: they are one type."""
    start, is_own = tree.start(node), node.type == "struct_type"
    is_own &= tree.grammar == "go" and kind_of(node.parent) != "type_spec"
    signature = rf"^func[^\n]*{re.escape(tree.text_of(node))}" if is_own else ""
    is_own = is_own and re.search(signature, tree.text, re.MULTILINE) is None
    return f"nameless_{start}_{abs(hash(tree.text[:start]))}" if is_own else ""


def class_named(text: str) -> str:
    """Return the name of the class that a type is, without what may be around it."""
    text = _OPTIONAL.sub("", _BEFORE.sub("", text.strip().strip("'\""))).strip()
    text = re.split(r"(?<=[\w>])\s*&\s*(?=\w)", text)[0]
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped:
        return class_named(_arguments(wrapped[1])[0])
    generic = _GENERIC.fullmatch(text)
    head = generic[1] if generic else text
    return re.split(r"[.:]", head)[-1] if re.fullmatch(r"[\w.:]+", head) else ""


def element_of(text: str, *, is_loop: bool = False) -> str:
    """Return the type of what a container holds: of a map its values, or its keys in a loop."""
    text = _OPTIONAL.sub("", _BEFORE.sub("", text.strip().strip("'\""))).strip()
    if match := _LISTED.fullmatch(text):
        return next(filter(None, match.groups()))
    generic = _GENERIC.fullmatch(text)
    if generic is None:
        return ""
    arguments = _arguments(generic[2])
    if len(arguments) > 1 and not _MAPS.search(generic[1]):
        return arguments[0] if arguments[1] == "..." else ""
    return arguments[0] if is_loop else arguments[-1]


def bases_of(tree: SyntaxTree, node: Node | None) -> list[str]:
    """Return the names that a class is derived from, or that the type of an alias consists of."""
    bases = []
    for child in node.children if node is not None else ():
        if _BASES.search(child.type):
            bases += re.findall(r"[^\W\d]\w*", without_arguments(tree.text_of(child)))
        elif child.type == "intersection_type" or _WRAPPED.fullmatch(tree.text_of(child)):
            bases += re.findall(r"\w+", re.sub(r"\{[^}]*\}", "", tree.text_of(child)))
    return [base for base in bases if base not in ("extends", "implements", "object")]


def without_arguments(text: str) -> str:
    """Return a type, or some, without what stands between its brackets."""
    inner = re.sub(r"[\[<][^\[\]<>]*[\]>]", "", text)
    return inner if inner == text else without_arguments(inner)


def _result(text: str) -> str:
    """Return what a function of Go gives whose type is written so; any other text as it is."""
    function = re.fullmatch(r"func\((?:[^()]|\([^()]*\))*\)\s*(.*)", text, re.DOTALL)
    return function[1] if function else text


def _arguments(text: str) -> list[str]:
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "[<({") - (character in "]>)}")
        if character == "," and not depth:
            pieces.append("")
        else:
            pieces[-1] += character
    return [piece.strip() for piece in pieces]


def _in_tuple(text: str, index: int) -> str:
    """Return the type at a place of a tuple."""
    match = _TUPLE.fullmatch(text)
    arguments = _arguments(match[1]) if match else []
    return arguments[index] if index < len(arguments) else ""


class ResolvedNames:
    """The names of one version of a text. What was asked of it is kept."""

    def __init__(
        self, tree: SyntaxTree, module: ResolvedNames | None = None, module_name: str = ""
    ) -> None:
        """module: the names of the file that this one uses; module_name: the end of its path."""
        self.tree, self.module, self._module_name = tree, module, module_name
        self.python = PythonNames(tree)
        self._uses: dict[str, dict[int, Reference]] = {}
        self._types: dict[int, str] = {}
        self._lock = RLock()
        """A type that is being read is empty to whoever asks for it meanwhile."""

    @classmethod
    def of(cls, text: str, language: str, path: str = "") -> ResolvedNames | None:
        """Return the names of a text, the same as a moment ago; None where it has no grammar."""
        grammar = grammar_of(language, path)
        return _of_version(text, grammar) if grammar else None

    def uses(self, name: str) -> list[Reference]:
        """Return all places of a name in code, in order."""
        return [*self._by_start(name).values()]

    def use_at(self, node: Node, name: str = "") -> Reference | None:
        """Return the use of a name, by default the text of ``node``, where a node begins."""
        return self._by_start(name or self.tree.text_of(node)).get(self.tree.start(node))

    def _by_start(self, name: str) -> dict[int, Reference]:
        if name not in self._uses:
            uses = references(self.tree, name, self.python)
            self._uses[name] = {use.start: use for use in uses}
        return self._uses[name]

    def declared(self, name: str) -> Iterator[tuple[Reference, Node]]:
        """Yield the places that declare a name, each with its node."""
        for use in self._by_start(name).values():
            if use.declares and use.node is not None:
                yield use, use.node

    def class_named(self, text: str) -> str:
        """Return the class that a type is; with what is before its dot, or a sign, if not ours."""
        generic = re.match(r"[*&\s]*(?:\w+\.)?(\w+)[\[<][^\]]", text)
        is_known = generic is not None and self._giver(generic[1]) is not None
        name = generic[1] if generic and is_known else class_named(text)
        if not name or self.tree.grammar in ("java", "csharp", "rust"):
            return name
        before = re.search(rf"(\w+)\.{name}\b", text)
        first = before[1] if before else name
        is_known = any(True for _ in self.declared(first))
        is_ours = self._is_ours(first) if is_known else not before or self._is_of_modules(first)
        is_ours |= before is None and self.module is None
        return name if is_ours else f"{first if before else '?'}.{name}"

    def _is_ours(self, name: str) -> bool:
        """Return whether a name is declared here, or taken from the module."""
        outer = [(outside(node), use.is_foreign) for use, node in self.declared(name)]
        imports = [enclosing(node, _IMPORT) for node, is_foreign in outer
                   if is_foreign or "require(" in self.tree.text_of(node)]  # fmt: skip
        if len(imports) < len(outer):
            return True
        texts = [self.tree.text_of(each) for each in imports]
        return all(HERE.search(text) or self._is_of_modules(text) for text in texts)

    def _is_of_modules(self, text: str) -> bool:
        """Return whether a text names the module, or one that this one's is known by."""
        if self.module is None:
            return False
        is_named = re.search(rf"\b{self._module_name}\b", text) is not None
        return is_named or self.module._is_of_modules(text)

    def class_of(self, node: Node | None) -> str:
        """Return the name of an expression's class; empty where the text does not tell."""
        name = self.class_named(self.type_of(node))
        for _, declared in self.declared(name) if name.isidentifier() else ():
            if "type_parameter" in kind_of(declared.parent):
                # What it is at least.
                limit = self.tree.text_of(child_of(declared.parent, "constraint", "type"))
                return self.class_named(limit.removeprefix("extends")) or name
        return name

    def type_of(self, node: Node | None, steps: int = 0) -> str:
        """Return the type of an expression as it is written; empty where it is not told."""
        if node is None or steps > MOST_STEPS:
            return ""
        with self._lock:
            if node.id not in self._types:
                self._types[node.id] = ""
                self._types[node.id] = self._read(node, steps + 1)
            return self._types[node.id]

    def _read(self, node: Node, steps: int) -> str:
        kind, text = node.type, self.tree.text_of(node)
        if text in ("this", "self", "cls"):
            return class_around(self.tree, node)
        if "identifier" in kind and node.child_count == 0:
            return self._of_variable(node, text, steps)
        if re.search(r"^(?:new|object_creation|composite|struct)_", kind):
            constructor = child_of(node, "constructor", "type", "name")
            types = child_of(node, "type_arguments")
            return self.written(constructor) + self.tree.text_of(types)
        is_generic = kind_of(child_of(node, "type")) == "generic_type"
        if "call" in kind or "invocation" in kind or (is_generic and "conversion" in kind):
            return self._of_call(node, steps)
        if kind in _WITHOUT_DOT:
            name = self.tree.text_of(_member(node))
            return self._of_field(self.type_of(_receiver(node), steps), name, steps)
        if re.match("subscript|index_exp|array_access|element_access|slice_exp", kind):
            held = self.type_of(node.named_children[0], steps)
            is_slice = "slice" in (kind_of(child_of(node, "subscript")), kind[:5])
            return held if is_slice else self.element(held)
        if kind in ("arrow_function", "function_expression", "lambda_expression"):
            returned = self.tree.text_of(child_of(node, "return_type"))
            return returned or self.type_of(child_of(node, "body"), steps)
        if kind == "func_literal":
            return f"func() {self.written(child_of(node, 'result'))}"
        if re.match("as_exp|satisfies_|cast_exp|type_assertion|type_conversion", kind):
            return self.tree.text_of(child_of(node, "type") or node.named_children[-1])
        if re.search("^generator_exp|^(?:list|set)_compr", kind):
            return f"list[{self.type_of(child_of(node, 'body'), steps)}]"
        if kind.startswith("dictionary"):
            pair = child_of(node, "body") or next(iter(node.named_children), None)
            value = self.type_of(child_of(pair, "value"), steps)
            return f"dict[str, {value}]" if value else ""
        operator = self.tree.text_of(child_of(node, "operator"))
        if operator == "<-":
            return self.element(self.type_of(child_of(node, "operand"), steps))
        if operator in ("or", "||", "??", "and", "&&"):
            sides = ("left", "right") if operator in ("or", "||", "??") else ("right",)
            operands = (self.type_of(child_of(node, side), steps) for side in sides)
            return next(filter(None, operands), "")
        if kind == "object":
            # A copy with other fields.
            copied = (each for each in node.named_children if each.type == "spread_element")
            copies = {self.type_of(inner(each)[0], steps) for each in copied}
            return copies.pop() if len(copies) == 1 else ""
        if kind in ("list", "array"):
            first = next(iter(node.named_children), None)
            if kind_of(first) == "spread_element":
                return self.type_of(inner(first)[0], steps)
            element = self.type_of(first, steps)
            return f"list[{element}]" if element else ""
        last = node.named_children[-1:] if _AROUND.match(kind) else ()
        return self.type_of(last[0], steps) if last else ""

    def _of_variable(self, node: Node, name: str, steps: int) -> str:
        here = self.use_at(node)
        if here is None or here.scope is None:
            return self._of_module(name) if self.tree.grammar == "go" else ""
        if here.use is NameUse.MEMBER:
            return self.type_of_member(class_around(self.tree, node), name, steps)
        checked = checked_type(self.tree, node, name)
        if checked and " == " not in checked:
            return checked
        own = [pair for pair in self.declared(name) if pair[0].scope == here.scope]
        outer = outside(node, 2)
        is_copied = kind_of(outer) == "short_var_declaration" and own and node != own[0][1]
        if is_copied and outer == outside(own[0][1], 2):
            # ``name := name``: the variable of a scope around.
            own = [pair for pair in self.declared(name) if pair[0].scope
                   and pair[0].start < own[0][0].start < pair[0].scope.end][-1:]  # fmt: skip
        types = {self._declared(declared, steps) for use, declared in own if not use.is_foreign}
        type_name = types.pop() if len(types) == 1 else "" if types else self._of_module(name)
        return self._variant(type_name, checked) if checked else type_name

    def _variant(self, union: str, checked: str) -> str:
        """Return the one type of a union that has a value in a field: ``.field == value``."""
        field, value = checked[1:].split(" == ")
        kinds = (self._named(self.class_named(union)) or union).strip("|").split("|")
        fields = {kind: self.type_of_member(self.class_named(kind), field) for kind in kinds}
        same = [kind for kind, text in fields.items() if text.strip("\"'") == value]
        return same[0].strip() if len(same) == 1 else union

    def _of_module(self, name: str) -> str:
        """Return the type of a variable of the module, or what a function of it returns."""
        declared = self.module.declared(name) if self.module is not None else ()
        for use, node in declared:
            if use.scope is not None and use.scope.kind == "module" and not use.is_foreign:
                assert self.module is not None
                return name if is_class(node.parent) else self.module._declared(node, 0)
        return self.module._of_module(name) if self.module is not None else ""

    def written(self, node: Node | None) -> str:
        """Return a type as it is written, with names of our own for structures that have none."""
        text = self.tree.text_of(node)
        if kind_of(node) == "parameter_list":
            types = [self.written(child_of(each, "type")) for each in inner(node)
                     for _ in each.children_by_field_name("name") or [each]]  # fmt: skip
            return f"({', '.join(types)})" if len(types) > 1 else "".join(types)
        if node is None or self.tree.grammar != "go" or "{" not in text:
            return text
        if own := nameless(self.tree, node):
            return own
        start = self.tree.start(node)
        for child in reversed(node.named_children):
            head = text[: self.tree.start(child) - start]
            text = head + self.written(child) + text[self.tree.end(child) - start :]
        return text

    def class_node(self, name: str) -> Node | None:
        """Return the class of a name that the text declares."""
        if name.startswith("nameless_"):
            start = int(name.split("_")[1])
            node = enclosing(self.tree.node(start, start + 1), "^struct_type$")
            return node if node is not None and nameless(self.tree, node) == name else None
        outer = (node.parent for _, node in self.declared(name) if name.isidentifier())
        return next((node for node in outer if is_class(node)), None)

    def _giver(self, name: str) -> ResolvedNames | None:
        """Return the names of the text, this or the module's, that declares a class."""
        if self.class_node(name) is not None:
            return self
        return self.module._giver(name) if self.module is not None else None

    def _given(self, type_name: str, held: str) -> str:
        """Return the type of a member of something whose type is written as ``held``, with what
        that has for the parameters of a generic one."""
        owner = self.class_named(held)
        generic = re.fullmatch(rf"[*&\s]*(?:\w+\.)?{re.escape(owner)}[\[<](.*)[\]>]", held)
        giver, arguments = self._giver(owner) or self, _arguments(generic[1]) if generic else ()
        declared = child_of(giver.class_node(owner), "type_parameters")
        parameters = re.findall(r"[\[<,]\s*(\w+)", giver.tree.text_of(declared))
        given = dict(zip(parameters, arguments, strict=False))
        return re.sub(r"\w+", lambda word: given.get(word[0], word[0]), type_name)

    def parameter(self, name: str, number: int, *, is_method: bool = False) -> str:
        """Return the type of a parameter of a function that this file or its module has."""
        declarations = [use for use in self.uses(name)
                        if use.declares and (use.use is NameUse.MEMBER) == is_method]  # fmt: skip
        if len(declarations) != 1 or declarations[0].is_foreign:
            is_foreign = bool(declarations) or self.tree.grammar == "go"
            module = self.module if is_foreign or is_method else None
            return module.parameter(name, number, is_method=is_method) if module else ""
        function = outside(declarations[0].node)
        if is_class(function):
            constructors = (outside(node) for _, node in self.declared("constructor"))
            function = next((each for each in constructors if outside(each, 2) == function), None)
        function = child_of(function, "value") or function
        parameter = next(iter(inner(child_of(function, "parameters"))[number:]), None)
        text = _BEFORE.sub("", self.tree.text_of(child_of(parameter, "type")))
        for each in inner(child_of(function, "type_parameters")):
            if self.tree.text_of(child_of(each, "name")) == text:
                return self.tree.text_of(child_of(each, "constraint")).removeprefix("extends ")
        return text

    def _of_field(self, held: str, name: str, steps: int) -> str:
        """Return the type of a field of something whose type is written so."""
        if owner := self.class_named(held):
            return self._given(self.type_of_member(owner, name, steps), held)
        written = rf"[{{;,\s]{re.escape(name)}\??:?\s+([^;,\n}}]+)"
        nameless = re.search(written, held) if "{" in held else None
        return nameless[1].strip() if nameless else ""

    def type_of_member(self, owner: str, name: str, steps: int = 0) -> str:
        """Return the type of a field, or what a method returns."""
        for use, node in self.declared(name):
            is_member = use.use is NameUse.MEMBER or is_property(node)
            is_own = is_member and class_around(self.tree, node) == owner
            if is_own and (type_name := self._declared(node, steps)):
                return re.sub(r"^this$|\bSelf\b", owner, type_name)
        for base in bases_of(self.tree, self.class_node(owner)) if steps <= MOST_STEPS else ():
            if base != owner and (type_name := self.type_of_member(base, name, steps + 1)):
                return type_name
        if self.module and (type_name := self.module.type_of_member(owner, name, steps)):
            return type_name
        # A struct of Go that is embedded has the name of its type.
        return name if self.tree.grammar == "go" and self.class_node(name) else ""

    def _of_call(self, node: Node, steps: int) -> str:
        # A generic function of Go with its types is read as a type.
        generic = child_of(child_of(node, "type"), "type")
        called = child_of(node, "function", "name", "macro") or generic
        if kind_of(called) == "await_expression":
            # ``await called<Type>()`` is read as a call of what was awaited.
            called = inner(called)[-1]
        if called is None:
            return ""
        name = re.split(r"\W+", self.tree.text_of(called))[-1]
        before = _receiver(called) or _receiver(node)
        path, arguments = child_of(called, "path"), inner(child_of(node, "arguments"))
        if path is not None:
            owner = self.class_named(self.tree.text_of(path))
            owner = class_around(self.tree, node) if owner == "Self" else owner
            member_type = self.type_of_member(owner, name, steps)
            return member_type or (owner if name in ("new", "default") else "")
        held = self.type_of(before, steps)
        owner = self.class_named(held)
        if owner and (member_type := self.type_of_member(owner, name, steps)):
            return _result(self._given(member_type, held))
        is_same = _SAME.fullmatch(name) is not None
        if (is_same or _ELEMENT.fullmatch(name)) and (before or arguments):
            held = self.type_of(before or arguments[0], steps)
            if is_same:
                return held
            return self.element(held) or held if _GENERIC.fullmatch(held) or "[" in held else ""
        if name in HOOKS and arguments:
            held = self.tree.text_of(child_of(node, "type_arguments"))[1:-1]
            value = child_of(arguments[0], "body") or arguments[0]
            held = held or self.type_of(value, steps)
            return HOOKS[name].format(held) if held else ""
        if name in ("all", "gather") and arguments:
            waited = inner(arguments[0]) if arguments[0].type == "array" else arguments
            types = {self.type_of(each, steps) for each in waited}
            return f"list[{types.pop()}]" if len(types) == 1 else ""
        if before is not None:
            return self._of_method(before, name, arguments, steps)
        if name in ("new", "make") and arguments and self.tree.grammar == "go":
            return self.written(arguments[0])
        return self._returned(called, name, steps)

    def _returned(self, called: Node, name: str, steps: int) -> str:
        """Return the type of what a function gives that is called by its name alone."""
        here = self.use_at(called, name)
        scope = here.scope if here is not None else None
        for use, declared in self.declared(name):
            if use.scope != scope:
                continue
            if use.is_foreign or is_class(declared.parent):
                return self._of_module(name) or (name if name[:1].isupper() else "")
            declared_type = self._declared(declared, steps)
            is_function = "declaration" in kind_of(declared.parent)
            named = self._named(self.class_named(declared_type))
            return declared_type if is_function else _result(named or declared_type)
        return "" if scope is not None else self._of_module(name)

    def _of_method(self, before: Node, name: str, arguments: list[Node], steps: int) -> str:
        """Return the type of what a method of ``before`` returns."""
        if name in ("map", "flatMap") and arguments:
            text = self.tree.text_of(arguments[0])
            named = self._returned(arguments[0], text, steps) if text.isidentifier() else ""
            body = named or self.type_of(arguments[0], steps)
            return body if name == "flatMap" or not body else f"list[{body}]"
        if name == "values":
            # ``map.values()``, ``Object.values(map)``
            held = self.type_of(arguments[0] if arguments else before, steps)
            return f"list[{self.element(held)}]"
        is_module = not self.class_of(before) and self._is_module(self.tree.text_of(before))
        return self._of_module(name) if is_module else ""

    def _is_module(self, name: str) -> bool:
        """Return whether an import gives the module a name."""
        if not name.isidentifier() or not self._module_name:
            return False
        module = re.escape(self._module_name)
        alias = f"(?:{name}[ \t]+)" + ("?" if name == self._module_name else "")
        line = rf"(?:import|from|use|const|let|var)\b(?=.*\b{name}\b).*\b{module}\b"
        if self.tree.grammar == "go":
            line = rf'[ \t]*(?:import[ \t]+)?{alias}"(?:[^"\n]*/)?{module}"'
        return re.search(f"^{line}", self.tree.text, re.MULTILINE) is not None

    def _declared(self, node: Node, steps: int) -> str:
        """Return the type that a declaration gives the name at a node."""
        last, outer, position, several = node, node.parent, 0, False
        for _ in range(6):
            if outer is None or is_class(outer):
                return ""
            if outer.type == "tuple_struct_pattern":
                return self._matched(outer, steps)
            if outer.type == "as_pattern":
                return self._entered(outer, steps)
            if outer.type == "object_pattern":
                key = self.tree.text_of(child_of(last, "key") or last)
                return self._of_field(self._declared(outer, steps), key, steps)
            whole = outer.parent if outer.type == "variable_declarator" else None
            for name in ("return_type", "result", "returns", "type"):
                annotation = child_of(outer, name) or child_of(whole, name)
                text = self.written(annotation)
                if annotation is not None and annotation != last and text not in _UNKNOWN:
                    is_many = outer.type == "variadic_parameter_declaration"
                    return f"[]{text}" if is_many else _BEFORE.sub("", text)
            if re.search(r"pattern_list|^expression_list$|(?:tuple|array)_pattern", outer.type):
                position = outer.named_children.index(last)
            else:
                is_list = "list" in last.type and last.named_child_count > 1
                several = is_list or last.type == "array_pattern"
            value = child_of(outer, "value", "right")
            if value is None and outer.type == "variable_declarator" and outer.child_count > 2:
                value = outer.children[-1]
            if value is not None and value != last:
                read = self._of_loop if _LOOPS.match(outer.type) else self._assigned
                return read(value, position if several else -1, steps)
            if re.search(r"parameters$|^lambda_expression$|^arrow_function$", outer.type):
                parameters = outer.named_children
                number = parameters.index(last) if last in parameters else 0
                return self._of_lambda(outer, number, steps)
            if re.search(r"(?:statement|definition|declaration|function_item)$", outer.type):
                return ""
            last, outer = outer, outer.parent
        return ""

    def _entered(self, pattern: Node, steps: int) -> str:
        """Return the type of what ``with`` or ``except`` gives a name."""
        if kind_of(pattern.parent) == "except_clause":
            return self.tree.text_of(pattern.named_children[0])
        held = self.type_of(pattern.named_children[0], steps)
        owner = self.class_named(held)
        names = ("__enter__", "__aenter__") if owner else ()
        entered = (self.type_of_member(owner, name, steps) for name in names)
        yielded = re.match(r"\w*(?:Iterator|Generator)\[(.*)\]", held)
        return next(filter(None, entered), _arguments(yielded[1])[0] if yielded else held)

    def _matched(self, pattern: Node, steps: int) -> str:
        """Return the type of what a pattern of Rust takes out: ``Ok(name)``."""
        value = child_of(enclosing(pattern.parent, "^match_exp|^let_"), "value")
        kind = self.tree.text_of(child_of(pattern, "type"))
        generic = _GENERIC.fullmatch(self.type_of(value, steps)) if kind in ("Ok", "Some") else None
        return _arguments(generic[2])[0] if generic and pattern.named_child_count == 2 else ""

    def is_foreign(self, node: Node) -> bool:
        """Return whether an expression begins with what another file gives, or has its value so."""
        for _ in range(3):
            while node.named_children and "literal" not in node.type:
                node = node.named_children[0]
            here = self.use_at(node)
            pairs = self.declared(self.tree.text_of(node))
            declared = [pair for pair in pairs if here and pair[0].scope == here.scope]
            if all(use.is_foreign for use, _ in declared):
                is_named = here is not None and self.tree.grammar not in ("go", "rust", "java")
                return bool(declared) or (is_named and self.tree.grammar != "csharp")
            outer = outside(declared[0][1]) if len(declared) == 1 else None
            value = child_of(outer, "right", "value")
            if value is None or value == declared[0][1] or _LOOPS.match(kind_of(outer)):
                return False
            node = value
        return False

    def _assigned(self, value: Node, index: int, steps: int) -> str:
        if index >= 0 and "list" in value.type and value.named_child_count > 1:
            return self.type_of(value.named_children[index], steps)
        type_name = self.type_of(value, steps)
        if _TUPLE.fullmatch(type_name) and (index >= 0 or type_name[0] == "("):
            return _in_tuple(type_name, max(index, 0))
        if self.tree.grammar != "go":
            return type_name if index < 0 else element_of(type_name)
        # What a map of Go holds comes with whether it holds it.
        return type_name if index <= 0 else ""

    def _of_loop(self, value: Node, index: int, steps: int) -> str:
        function, arguments = child_of(value, "function"), child_of(value, "arguments")
        called = self.tree.text_of(function)
        number = {"enumerate": index - 1, "zip": index}.get(called, -1)
        if 0 <= number < len(inner(arguments)):
            return self.element(self.type_of(inner(arguments)[number], steps), is_loop=True)
        if called.endswith(".items") and index >= 0:
            return self.element(self.type_of(_receiver(function), steps), is_loop=index == 0)
        if self.tree.grammar == "go":
            held = self.type_of(value, steps)
            return self.element(held) if (index < 1) == ("chan" in held[:6]) else ""
        held = self.type_of(value, steps)
        if index >= 0:
            is_map = _MAPS.match(held) is not None
            element = self.element(held, is_loop=not is_map or not index)
            return element if is_map else _in_tuple(element, index)
        iterated = self.type_of_member(self.class_named(held), "__iter__", steps) if held else ""
        return self.element(iterated or held, is_loop=True)

    def element(self, held: str, *, is_loop: bool = False) -> str:
        """Return the type of what is in a container, whose type may have a name of its own."""
        return element_of(self._named(self.class_named(held)) or held, is_loop=is_loop)

    def _named(self, name: str) -> str:
        """Return the type that a name is given to; empty where it is a class's."""
        for _, node in self.declared(name) if name else ():
            outer = node.parent
            is_type = kind_of(outer) in ("type_spec", "type_alias", "type_alias_declaration")
            value = child_of(outer, "type", "value") if is_type else child_of(outer, "right")
            if value is not None and not re.search("struct|interface|object|call", value.type):
                return self.tree.text_of(value)
        return self.module._named(name) if self.module is not None else ""

    def expected(self, node: Node | None, steps: int = 0) -> str:
        """Return the type that is given where a literal or a lambda is."""
        tree, outer = self.tree, outside(node)
        if node is None or outer is None or steps > MOST_STEPS:
            return ""
        if node.type == "object_pattern":
            return self._declared(node, steps)
        annotation = child_of(outer, "type")
        if annotation is not None and annotation != node:
            return _BEFORE.sub("", self.written(annotation))
        if outer.type in ("as_expression", "satisfies_expression"):
            return tree.text_of(outer.named_children[-1])
        if outer.type in ("array", "list", "literal_value", "literal_element"):
            around = outer.parent if outer.type == "literal_element" else outer
            around = outside(around) if kind_of(outer.parent) == "keyed_element" else around
            return self.element(self.expected(around, steps + 1))
        if outer.type == "pair" or node.type == "method_definition":
            pair = outer if outer.type == "pair" else node
            held = self.expected(outside(pair), steps + 1)
            written = self._named(self.class_named(held)) or held
            key = tree.text_of(child_of(pair, "key", "name"))
            is_map = _MAPS.match(written) is not None
            return element_of(written) if is_map else self._of_field(held, key, steps)
        if outer.type == "assignment_expression":
            return self.type_of(child_of(outer, "left"))
        if outer.type in ("arguments", "argument_list"):
            call, number = outer.parent, outer.named_children.index(node)
            function = child_of(call, "function", "constructor")
            called = tree.text_of(function).split(".")[-1]
            if (setter := self.type_of(function)).startswith("Setter<"):
                return element_of(setter)
            if called == "append":
                return element_of(self.type_of(child_of(function, "object")))
            if called in HOOKS:
                return tree.text_of(child_of(call, "type_arguments"))[1:-1]
            before = _receiver(function)
            is_method = before is not None and not self._is_module(tree.text_of(before))
            held = _OPTIONAL.sub("", _BEFORE.sub("", self.type_of(before))).partition("<")[0]
            if is_method and "function" in node.type and self._giver(held) is None:
                return ""
            return self.parameter(called, number, is_method=is_method)
        if outer.type in ("return_statement", "arrow_function"):
            function = enclosing(outer, _RETURNS)
            returned = tree.text_of(child_of(function, "return_type"))
            call = outside(function, 2)
            is_map = tree.text_of(child_of(call, "function")).endswith(".map") and not returned
            return element_of(self.expected(call, steps + 1)) if is_map else returned
        if outer.type == "switch_case":
            return self.type_of(child_of(outside(outer, 2), "value"), steps)
        if re.match("[!=]==?$", tree.text_of(child_of(outer, "operator"))):
            sides = (child_of(outer, side) for side in ("left", "right"))
            return self.type_of(next(side for side in sides if side != node), steps)
        is_value = re.match("parenthesized|binary|ternary|conditional", outer.type) is not None
        return self.expected(outer, steps + 1) if is_value else ""

    def _of_lambda(self, parameters: Node, number: int, steps: int) -> str:
        """Return the type of a parameter of a lambda whose type is told, or of one that is called
        on a container's elements."""
        function = outside(parameters) if parameters.type.endswith("parameters") else parameters
        expected = self.expected(function, steps)
        written = self._named(self.class_named(expected)) or expected
        if match := _FUNCTION_TYPE.fullmatch(written):
            given = [*_arguments(match[1] or f": {match[2]}")[number:], ""]
            return given[0].partition(":")[2].strip()
        outer = enclosing(outside(function), "^(?!.*argument)")
        called = child_of(outer, "function")
        if (setter := self.type_of(called, steps)).startswith("Setter<"):
            return element_of(setter)
        before = _receiver(called)
        before = None if self.tree.text_of(before) == "Array" else before
        if before is None and kind_of(outer) == "method_invocation":
            before = _receiver(outer)
        if before is None:
            # ``max(items, key=lambda item: …)``, ``map(lambda item: …, items)``
            arguments = inner(child_of(outer, "arguments"))
            others = (each for each in arguments if each != function)
            before = next((each for each in others if each.type != "keyword_argument"), None)
        return self.element(self.type_of(before, steps), is_loop=True)


@lru_cache(maxsize=4)
def _of_version(text: str, grammar: str) -> ResolvedNames:
    return ResolvedNames(SyntaxTree.parsed(text, grammar))


def is_property(parameter: Node) -> bool:
    """Return whether a parameter of a constructor is a field, too."""
    outer = parameter.parent
    return outer is not None and any("modifier" in child.type for child in outer.children)


def _receiver(member: Node | None) -> Node | None:
    """Return the expression before the dot of a member."""
    return child_of(member, *_OBJECTS) if kind_of(member) in _WITHOUT_DOT else None


def _member(node: Node | None) -> Node | None:
    """Return the name after the dot."""
    return child_of(node, "attribute", "property", "field", "name")


def receiver_of(name: Node | None) -> Node | None:
    """Return the expression before the dot of the member ``name``; None without a dot."""
    if kind_of(outside(name, 2)) == "case_pattern":
        return name.prev_named_sibling if name is not None else None
    return _receiver(outside(name)) if _member(outside(name)) == name else None
