"""All places of a name, each with what is meant there: a variable of a scope, a member of a class,
a key. What a rename changes is told by this alone, be it typed or asked for.

In Python the bindings are those of its reference manual (:mod:`python_references`). In other
languages a place means the innermost scope around it that declares the name. Where bindings are
not read (:data:`RESOLVED`), signs around a name tell a variable from what may be a member or a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from lsp_server.text.syntax.name_uses import (
    NameUse,
    Reference,
    Spelling,
    guessed,
    leaf_before,
    use_of,
)
from lsp_server.text.syntax.nodes import around, child_of, enclosing, inner, kind_of, outside
from lsp_server.text.syntax.python_names import PythonNames
from lsp_server.text.syntax.python_references import python_references
from lsp_server.text.syntax.roles import Role
from lsp_server.text.syntax.scopes import Scope, ScopeFinder
from lsp_server.text.syntax.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

Span = tuple[int, int]

_BARE_MEMBERS = {"cpp", "csharp", "java", "kotlin", "ruby", "swift"}
"""Grammars in whose languages a class's members are called without it."""
_THIS = {"this", "self", "$this", "Self"}
_NO_THIS = re.compile(r"^object_literal$|^object_creation_expression$")
"""Classes without a name."""
_OWN_THIS = re.compile(r"^(?:generator_)?function(?:_declaration|_expression)?$|^object$")
"""What has a ``this`` of its own in JavaScript."""
_SCRIPTS = {"javascript", "typescript", "tsx"}
RESOLVED = {*_SCRIPTS, *_BARE_MEMBERS, "c", "go", "php", "python", "rust"}
"""Grammars in whose languages bindings are read."""
_WITHOUT_NAMED = {*_SCRIPTS, "c", "cpp", "go", "java", "rust"}
"""Grammars in whose languages no argument is given by its name."""
_METHOD_CALLS = {("java", "method_invocation"): "name", ("ruby", "call"): "method"}
"""By grammar and node the field that names a method, where a variable of that name hides none."""

STYLES = {"css", "scss", "less"}
_SIGNS = {"class": ".", "id": "#", "for": "#", "style": "--"}
"""Attributes that name what a page's style sheets give or select, and the sign before the name
there."""

_HANDLER = re.compile(r"on\w+\s*=|[@:(\[]|(?:x|v|hx)-")
"""Attributes of code that sees what scripts declare, of pages and of libraries for them."""


def references(tree: SyntaxTree, name: str, python: PythonNames | None = None) -> list[Reference]:
    """Return all places of a name in code, in order. python: the names of ``tree`` in Python."""
    if tree.grammar == "python":
        return python_references(python or PythonNames(tree), name)
    result = []
    spans = tree.identifiers(name)
    selectors: list[Span] = []
    for injection in tree.injections() if spans else ():
        inside = [span for span in spans if injection.start <= span[0] < injection.end]
        if not inside:
            continue
        spans = [span for span in spans if span not in set(inside)]
        selectors += inside if injection.language in STYLES else []
        text = tree.text[injection.start : injection.end]
        result += _within(SyntaxTree.of(text, injection.language), inside, injection.start, name)
    if tree.grammar in RESOLVED:
        result += _own(tree, name, spans)
    else:
        uses = {use.start: use for use in result}
        uses |= {span[0]: guessed(tree, span) for span in spans}
        uses |= {use.start: use for use in _styled(tree, selectors, uses)}
        result = list(uses.values())
    return sorted(result, key=lambda use: use.start)


def _styled(
    tree: SyntaxTree, selectors: list[Span], uses: dict[int, Reference]
) -> Iterator[Reference]:
    """Yield the places of a class, an id or a property of a page's style sheets, which name it at
    ``selectors``, there and in tags. ``uses``: by their starts the places that may be others."""
    declared: dict[str, tuple[NameUse, Scope]] = {}
    for span in selectors:
        if sign := _sign(tree.text, span[0]):
            # As style sheets are read: a class stands behind a dot.
            use = NameUse.KEY if sign == "." else NameUse.VARIABLE
            meaning = use, Scope(0, len(tree.text), sign)
            node = tree.node(*span)
            yield Reference(*span, *meaning, sign not in declared, node, is_guessed=True)
            declared[sign] = meaning
    name = tree.text[slice(*selectors[0])] if declared else ""
    for match in _whole(name).finditer(tree.text) if declared else ():
        node = tree.node(*match.span())
        tag = tree.text_of(enclosing(node, "attribute$"))
        attribute = re.split("=|$", tag, maxsplit=1)[0].strip().lower()
        plain = attribute.removeprefix("v-bind").lstrip(":")
        sign = _SIGNS.get(plain.partition(":")[0], "")
        reference = uses.get(match.start())
        is_other = attribute != plain and reference is not None and reference.use is not NameUse.KEY
        if sign in declared and not is_other and (sign != "--" or _sign(tree.text, match.start())):
            # Svelte's ``class:name`` alone takes the variable of that name.
            after = f"={{{name}}}" if ":" in plain and "=" not in tag else ""
            start, end = match.span()
            scoped = (*declared[sign], False, node)
            yield Reference(start, end, *scoped, after=after, is_guessed=True)


def _sign(text: str, start: int) -> str:
    """Return the sign before a name by which a style sheet selects or gives it; empty without."""
    return next((sign for sign in _SIGNS.values() if text.endswith(sign, 0, start)), "")


def _whole(name: str) -> re.Pattern[str]:
    """Finds a name of a style sheet, which may have hyphens in it."""
    return re.compile(rf"(?<!\w)(?<!\w-)(?<!\w--){re.escape(name)}(?![\w-])")


def is_selected(reference: Reference) -> bool:
    """Return whether a name is one of a page's style sheets."""
    return reference.scope is not None and reference.scope.kind in _SIGNS.values()


def not_renamed(tree: SyntaxTree, name: str, renamed: list[Reference]) -> int | None:
    """Return where a name of style sheets or of a page's scripts, renamed at some places, would be
    left: in a tag, in a string of code, or in a nested rule whose name begins with it; None where
    it is all renamed, or another name."""
    kinds = {use.scope.kind for use in renamed if use.scope is not None}
    # What a script declares outermost is known in attributes, too.
    is_global = "module" in kinds and tree.grammar == "html"
    # The words of a page of PHP are renamed outside of its code, which no reference tells.
    is_php, matches = tree.grammar == "php" and not renamed, list(_whole(name).finditer(tree.text))
    signs = {_sign(tree.text, match.start()) for match in matches} if is_php else kinds
    signs &= {*_SIGNS.values()}
    uses = references(tree, name) if signs else ()
    starts = {use.start for use in uses if use.scope and use.scope.kind in signs}
    scripts = [text for text in tree.injections() if tree.text[text.start - 1] == ">"]
    for match in matches if signs or is_global else ():
        start = match.start()
        attribute = tree.text_of(enclosing(tree.node(*match.span()), "attribute$"))
        in_script = is_php or any(text.start <= start < text.end for text in scripts)
        is_named = bool(signs) and (in_script or _sign(tree.text, start) in signs)
        is_handled = is_global and _HANDLER.match(attribute) and tree.text[start - 1] != "."
        if is_handled or (is_named and tree.role_at(start) is Role.STRING):
            starts.add(start)
    for use in renamed if tree.grammar in STYLES else ():
        rule = enclosing(tree.node(*use.span), "^rule_set$")
        nested = re.search(r"&\}?[\w-]", tree.text_of(rule))
        if rule and nested and _sign(tree.text, use.start) in (".", "#"):
            starts.add(tree.start(rule) + nested.start())
    return min(starts - {use.start for use in renamed}, default=None)


def _within(tree: SyntaxTree | None, spans: list[Span], start: int, name: str) -> list[Reference]:
    """Return the references of a text inside of another one."""
    if tree is None:
        return [Reference(*span, NameUse.VARIABLE, is_guessed=True) for span in spans]
    return [use.moved(start) for use in references(tree, name)]


def same_meaning(
    tree: SyntaxTree, names: list[Reference], starts: Iterable[int]
) -> list[Reference]:
    """Return the places that mean what is declared at the places ``starts``, which were changed, in
    order; none where none of them gives the name, or where the text does not tell."""
    changed_starts = set(starts)
    declares = (use for use in names if use.declares and use.scope is not None)
    changed = [use for use in declares if use.start in changed_starts]
    if len({use.scope for use in changed}) != 1:
        return []
    first = changed[0]
    # Members of Go have the scope that functions and variables have.
    same_scope = [use for use in names if use.scope == first.scope and (
                  tree.grammar != "go" or use.use is first.use)]  # fmt: skip
    declared = [use for use in same_scope if use.declares]
    if declared[0] != first or any(use.is_foreign and use.before for use in changed):
        return []
    if not _may_declare_again(tree, declared) and len(declared) > len(changed):
        return []
    if any(use.use is NameUse.FOREIGN for use in names) or _is_hidden(tree, names, declared[0]):
        return []
    return same_scope


def _may_declare_again(tree: SyntaxTree, declared: list[Reference]) -> bool:
    """Return whether later declarations in the same scope are of the same variable."""
    kinds = {kind_of(outside(use.node, 2)) for use in declared[1:]}
    return tree.grammar == "python" or (tree.grammar == "go" and kinds <= {"short_var_declaration"})


def _is_hidden(tree: SyntaxTree, names: list[Reference], declared: Reference) -> bool:
    """Return whether a place of the scope, or of one within it, is before what declares its name
    there, so that it may mean another one."""
    if tree.grammar == "python":
        return False
    scope = declared.scope
    assert scope is not None
    variables = [use for use in names if use.use is NameUse.VARIABLE and use.scope is not None]
    firsts = {use.scope: use.start for use in reversed(variables) if use.declares and use.scope}
    others = {use for use in firsts if use != scope}
    outer = any(use.start <= scope.start and scope.end <= use.end for use in others)
    inner = {use for use in others if scope.start <= use.start and use.end <= scope.end}
    inner |= {scope} if outer else set()
    return any(use.scope in inner and use.start < firsts.get(use.scope, 0) for use in variables)


# Places and their scopes


_Use = tuple[Span, "Node", Spelling, tuple[Scope, ...]]


def _own(tree: SyntaxTree, name: str, spans: list[Span]) -> list[Reference]:
    """Return the references of a text in its own language."""
    root = Scope(0, len(tree.text), "module")
    finder = ScopeFinder(tree, blocks=True)
    uses: list[_Use] = [(span, node, use_of(tree, node, span), (root, *finder.at(*span)))
                        for span in spans if (node := tree.node(*span)) is not None]  # fmt: skip
    if tree.grammar == "rust":
        uses += _rust_formats(tree, name, root, finder)
    if tree.grammar == "php" and any(tree.text[span[0] - 1] == "$" for span in spans):
        # A function or class of that name is another thing.
        key = Spelling(NameUse.KEY)
        uses = [
            (span, node, key if spelling.use is NameUse.VARIABLE and tree.text[span[0] - 1] != "$"
             else spelling, scopes)
            for span, node, spelling, scopes in uses
        ]  # fmt: skip
    return _resolved(tree, uses)


def _resolved(tree: SyntaxTree, uses: list[_Use]) -> list[Reference]:
    variables: set[Scope] = set()
    members: set[Scope] = set()
    classes = _Classes(tree)
    for _, node, spelling, scopes in uses:
        if spelling.declares:
            scope = _declaring(tree, node, scopes)
            if _declares_member(node, spelling, scope):
                members.add(scope)
                classes.add(scope)
            else:
                variables.add(scope)
    functions = _Functions(tree, uses)
    result = []
    for span, node, spelling, scopes in uses:
        use, own, receiver, is_member = spelling.use, None, None, False
        if spelling.declares:
            own = _declaring(tree, node, scopes)
            is_member = _declares_member(node, spelling, own)
        elif use is NameUse.VARIABLE and _is_method_call(tree, node):
            own, is_member = _meant(tree, scopes, set(), members)
            use = NameUse.MEMBER
        elif use is NameUse.VARIABLE:
            own, is_member = _meant(tree, scopes, variables, members)
        if is_member and own is not None:
            use, own = NameUse.MEMBER, classes.of(own)
        elif spelling.use is NameUse.MEMBER:
            receiver, own = classes.owner(node, scopes)
        elif use is NameUse.KEY and tree.grammar not in _WITHOUT_NAMED:
            own = functions.with_argument(node)
        is_whole = kind_of(node.parent) in ("import_clause", "namespace_import")
        is_import = is_whole or spelling.before.endswith(" as ")
        is_foreign = spelling.use is NameUse.VARIABLE and is_import
        written = spelling.start, spelling.end, spelling.before, spelling.after
        meaning = *span, use, own, spelling.declares, node, is_foreign, receiver
        result.append(Reference(*meaning, *written))
    return result


def _is_method_call(tree: SyntaxTree, node: Node) -> bool:
    """Return whether a name is called where methods and variables may share one."""
    name = _METHOD_CALLS.get((tree.grammar, kind_of(node.parent)), "")
    is_called = bool(name) and child_of(node.parent, name) == node
    return is_called and child_of(node.parent, "arguments") is not None


def _declaring(tree: SyntaxTree, node: Node, scopes: tuple[Scope, ...]) -> Scope:
    """Return the scope in which a declaration holds."""
    outer = node.parent
    while outer is not None and outer.type.endswith(("declarator", "pattern")):
        outer = outer.parent
    if tree.grammar in _SCRIPTS and kind_of(outer) == "variable_declaration":
        # ``var`` holds in the whole function.
        holding = re.compile("function|method|^module$")
        return next(scope for scope in reversed(scopes) if holding.search(scope.kind))
    return scopes[-1]


def _declares_member(node: Node, spelling: Spelling, scope: Scope) -> bool:
    if spelling.use is NameUse.MEMBER:
        return True
    parent = node.parent
    kinds = {node.type, kind_of(parent)}
    if not scope.is_class or any("type_parameter" in kind for kind in kinds):
        return False
    if parent is not None and parent.type == "class_parameter":
        words = [child.type for child in parent.children]
        return "binding_pattern_kind" in words or "val" in words or "var" in words
    return True


def _meant(
    tree: SyntaxTree, scopes: tuple[Scope, ...], variables: set[Scope], members: set[Scope]
) -> tuple[Scope | None, bool]:
    """Return the scope that a name without a dot is looked up in, and whether it is a class."""
    for scope in reversed(scopes):
        if scope in variables:
            return scope, False
        if scope in members and tree.grammar in _BARE_MEMBERS:
            return scope, True
    return None, False


class _Classes:
    """The classes that declare a member of the name. Those of one name are one: a ``struct`` and
    its ``impl``, a class and its extension."""

    def __init__(self, tree: SyntaxTree) -> None:
        self._tree = tree
        self._first: dict[str, Scope] = {}

    def add(self, scope: Scope) -> None:
        """A class declares the name."""
        self._first.setdefault(self._name(scope), scope)

    def of(self, scope: Scope) -> Scope:
        """Return the class that stands for all of that name."""
        return self._first.get(self._name(scope), scope)

    def owner(self, node: Node, scopes: tuple[Scope, ...]) -> tuple[str | None, Scope | None]:
        """Return the expression before the dot of a member, and the class of that member."""
        tree = self._tree
        if tree.text[tree.start(node)] == "@":
            return None, None
        outer = node.parent
        is_inner = kind_of(outer) == "variable_name"
        leaf = leaf_before(tree, leaf_before(tree, outer if is_inner else node))
        receiver = tree.text_of(leaf)
        if kind_of(outside(leaf)) == "variable_name":
            receiver = f"${receiver}"
        if receiver in _THIS:
            name = self._name_around(node, scopes)
            return receiver, self._first.get(name) if name else None
        return receiver, self._first.get(receiver) if receiver.isidentifier() else None

    def _name_around(self, node: Node, scopes: tuple[Scope, ...]) -> str:
        tree = self._tree
        class_scope = next((scope for scope in reversed(scopes) if scope.is_class), None)
        for outer in around(node):
            if class_scope is None:
                break
            if tree.start(outer) <= class_scope.start and class_scope.end <= tree.end(outer):
                return self._name(class_scope)
            is_script = tree.grammar in _SCRIPTS
            if _NO_THIS.match(outer.type) or (is_script and _OWN_THIS.match(outer.type)):
                return ""
        return ""

    def _name(self, scope: Scope) -> str:
        node = enclosing(self._tree.node(scope.start, scope.end), f"^{scope.kind}$")
        name = child_of(node, "type" if kind_of(node) == "impl_item" else "name")
        if name is None:
            names = (child for child in inner(node) if "identifier" in child.type)
            name = next(names, None)
        match = re.match(r"\w+", self._tree.text_of(name))
        return match.group() if match else f"{scope.start}"


_CALLED = re.compile(r"function|method|class_d|record_d")
_CALLING = re.compile(r"call(?!_suffix)|invocation|^selector$")
_CALLED_NAMES = ("simple_identifier", "type_identifier")


class _Functions:
    """The functions and classes that have a parameter of the name."""

    def __init__(self, tree: SyntaxTree, uses: list[_Use]) -> None:
        self._tree = tree
        self._of_name: dict[str, list[Scope]] = {}
        for _, node, spelling, scopes in uses:
            outer = node.parent if spelling.declares else None
            while outer is not None and "parameter" in outer.type:
                if outer.type.endswith("parameters"):
                    break
                outer = outer.parent
            if outer is not None and (name := self._named(outer)):
                self._of_name.setdefault(name, []).append(scopes[-1])

    def _named(self, parameters: Node) -> str:
        function = parameters.parent if "parameter" in parameters.type else parameters
        for kind in ("class_parameters", "primary_constructor"):
            function = outside(function) if kind_of(function) == kind else function
        if not _CALLED.search(kind_of(function)):
            return ""
        names = (child for child in inner(function) if child.type in _CALLED_NAMES)
        return self._tree.text_of(child_of(function, "name") or next(names, None))

    def with_argument(self, key: Node) -> Scope | None:
        """Return the function whose parameter an argument names, where the file has one of its
        name."""
        outer = islice(around(key), 7)
        call = next((call for call in outer if _CALLING.search(call.type)), None)
        if call is None or not self._of_name:
            return None
        called = child_of(call, "function") or next(iter(inner(call)), None)
        if call.type == "selector":
            called = call.prev_named_sibling
        if called is not None and called.start_byte > key.start_byte:
            return None
        name = re.sub(r"^(?:this|self)\.", "", self._tree.text_of(called))
        scopes = self._of_name.get(name, [])
        return scopes[0] if len(scopes) == 1 else None


# Names in strings

_FORMATS = re.compile(
    r"e?print(?:ln)?|format(?:_args)?|write(?:ln)?|panic|todo|unimplemented|unreachable|bail|anyhow"
    r"|(?:debug_)?assert(?:_eq|_ne)?|ensure|log|info|warn|error|debug|trace"
)
"""Macros whose strings take variables: those of the standard library and of the usual logs."""


def _rust_formats(tree: SyntaxTree, name: str, root: Scope, finder: ScopeFinder) -> Iterator[_Use]:
    """Yield where a format string of a macro takes a variable: ``"{name}"``, ``"{:name$}"``."""
    word = re.compile(rf"(?<=\{{){re.escape(name)}(?=[:}}])|(?<=[:.<>^]){re.escape(name)}(?=\$)")
    for match in word.finditer(tree.text):
        node = tree.node(*match.span())
        string = node if kind_of(node).endswith("_literal") else outside(node)
        if node is None or string is None or "string_literal" not in string.type:
            continue
        before = tree.text[tree.start(string) : match.start()]
        opened = len(before) - len(before.rstrip("{"))
        is_doubled = before.endswith("{") and opened % 2 == 0
        if kind_of(string.parent) != "token_tree" or is_doubled:
            continue
        macro = leaf_before(tree, leaf_before(tree, string.parent))
        named = (each for each in inner(string.parent) if tree.text_of(each) == name)
        is_given = any(kind_of(argument.next_sibling) == "=" for argument in named)
        if _FORMATS.fullmatch(tree.text_of(macro)) and not is_given:
            scopes = (root, *finder.at(*match.span()))
            yield match.span(), node, Spelling(NameUse.VARIABLE), scopes
