"""Finds the other files of a workspace that use a name of a file: Python, JavaScript, TypeScript,
Go and Rust; of Java and C# the members of classes.

Files are read as the index reads them: none that is ignored, large, binary or holds secrets. What
an editor has open counts instead of the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.text.syntax.go_types import GoTypes
from lsp_server.text.syntax.imports import python_paths, script_paths
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.members import Members, left_out
from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import child_of, enclosing, inner, kind_of, outside
from lsp_server.text.syntax.python_names import Occurrence, Use
from lsp_server.text.syntax.resolved_names import HERE, ResolvedNames
from lsp_server.text.syntax.scopes import Scope
from lsp_server.text.syntax.tree import SyntaxTree
from repo_index.source_tree import FolderTree

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_FILES = 3_000
"""Of a larger workspace the first so many files are looked through."""
_SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs")
_ENDINGS = {
    "python": (".py", ".pyi"), "go": (".go",), "rust": (".rs",), "java": (".java",),
    "csharp": (".cs",), "javascript": _SCRIPTS, "typescript": _SCRIPTS, "tsx": _SCRIPTS,
}  # fmt: skip
_NOT_BOUND = {Use.IMPORT, Use.ATTRIBUTE, Use.KEYWORD, Use.MODULE}
_ATTRIBUTE = re.compile(r"(?:\w+\.)*(?:[gs]etattr|hasattr|delattr|patch\.object)\(")
MOST_MODULES = 16
"""Files that hand a name on, those of packages first."""
_PACKAGE = re.compile(r"(?:^|/)(?:__init__\.pyi?|index\.\w+|mod\.rs|lib\.rs)$")
_ALL_ON = re.compile(
    r"^\s*export\s*\*\s*from\s*['\"]([^'\"]+)['\"]|^from\s+([\w.]+)\s+import\s*\*", re.MULTILINE
)
_GIVEN = re.compile(
    r"(?m)^(?:(?:export|default|declare|async|abstract|pub|def|class|function|func|fn|const|let|var"
    r"|type|interface|enum|struct)\s+)*(\w+)"
)
"""The name that a line of a file gives to others."""
_DEFAULT = re.compile(
    r"""^import\s+(?:type\s+)?(\w+)\s*(?:,[^;'"]*)?\bfrom\s*['"]([^'"]+)""", re.MULTILINE
)
"""A name that a file gives the default of a module, and the module."""
_UNNAMED = re.compile(f"{_ALL_ON.pattern}|{_DEFAULT.pattern}", re.MULTILINE)
"""What may give a file the default of another one under any name."""
_SCRIPT_IMPORT = re.compile(r"^(?:(?:import|export)_statement|variable_declarator)$")


@dataclass(frozen=True, slots=True)
class ImportingFile:
    """A file that uses a name of another one."""

    path: str
    """Relative to the workspace, with slashes."""
    names: ResolvedNames
    places: tuple[Reference, ...]
    """Where the name is meant: where it is imported, what that import binds, and after the name of
    the module."""

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.names.tree.text

    def with_aliases(self) -> Iterator[Reference]:
        """Yield the places, then those of the aliases that some get where they are imported."""
        yield from self.places
        for use in self.places:
            specifier = outside(use.node)
            specifier = outside(specifier) if kind_of(specifier) == "dotted_name" else specifier
            alias = child_of(specifier, "alias")
            same = self.names.uses(self.names.tree.text_of(alias)) if alias is not None else []
            scopes = {other.scope for other in same if other.node == alias}
            yield from (other for other in same if other.scope in scopes and not other.declares)


def importing_files(
    folder: Path,
    module: str,
    name: str,
    opened: Mapping[str, str],
    owner: str = "",
    *,
    is_argument: bool = False,
    renamed: str = "",
) -> Iterator[ImportingFile]:
    """Yield files below ``folder`` that use ``name`` of the file ``module``, a path in the folder;
    with ``owner`` a member of that class, which is given by its name where the class is called if
    ``is_argument``. renamed: the new name, which the file may have already.

    ``opened``: the text of open documents by their paths in the folder; empty where it is not to be
    read. Reads the disk: not for the event loop.
    """
    is_go = module.endswith(".go")
    declaring, texts, unnamed = _texts(folder, module, name, opened, owner, renamed)
    types = ResolvedNames.of(declaring, "", module) if owner or is_go else None
    # What stands between brackets of a type is no base, nor one of several.
    heirs = re.compile(
        r"(?:class|interface|type)\s+(\w+)(?:\s*\(|[^\n{]*?(?:\bextends|\bimplements|:)|[^\n{(]*?="
        rf"\s*(?:(?!{left_out(owner, name)})(?:Required|Partial|Readonly|Pick|Omit)<)*)"
        rf"[^\n{{<\[|]*\b{re.escape(owner)}\b(?!\s*(?:[\[.]|\|\s*(?!null|undefined)))"
    )
    # Files of the package are in ``declaring``.
    others = (text for path, text in texts.items() if not _is_beside(path, module))
    go_types = GoTypes("\n".join([declaring, *others])) if owner and is_go else None
    sharing = go_types.sharing(owner, name) if go_types is not None else {owner}
    rivals = _rivals(texts, module, owner) if is_go else set()
    files: dict[str, ResolvedNames] = {}
    words: dict[str, frozenset[str]] = {}
    by_path: dict[str, dict[int, Reference]] = {}
    names_of = {module: types}
    """The names of the module, and of files that hand on what is theirs or have it in their own."""
    for use in (modules := [module]):
        handed = texts[use] if owner and use != module else ""
        giver_names = [owner, *_GIVEN.findall(declaring)] if owner else [name]
        if handed:
            # What the file has of its own, and what it may hand on.
            giver_names = [giver for giver in giver_names if giver in words[use]]
            giver_names += _GIVEN.findall(handed)
        owners = {*sharing, *heirs.findall(f"{declaring}\n{handed}")}
        for path, text in sorted(texts.items(), key=lambda file: not _PACKAGE.search(file[0])):
            if path not in words:
                words[path] = frozenset(re.findall(r"\w+", text))
            is_meant = not words[path].isdisjoint(giver_names) or unnamed.search(text) is not None
            is_rival = use != module and posixpath.dirname(path) in rivals
            is_beside = is_go and _is_beside(path, use)
            is_near = is_beside or (is_meant and _names_file(path, text, use))
            if path == use or is_rival or not is_near or (handed and name not in words[path]):
                continue
            if path not in files:
                tree = SyntaxTree.parsed(text, grammar_of("", path))
                files[path] = ResolvedNames(tree, types, _stem(module))
            names = files[path]
            uses = [] if owner else [*_places(names, path, use, name)]
            uses += _by_default(names, path, use) if unnamed is _UNNAMED and use == module else ()
            is_user = bool(owner) and _uses_any(names, path, use, giver_names, words[path])
            is_own = use != module and names.class_node(owner) is not None and not is_beside
            if is_user and (is_own or _has_another(names, path, modules, owner)):
                continue
            if is_user:
                members = Members(ResolvedNames(names.tree, names_of[use], _stem(use)))
                for each in owners.union(heirs.findall(text)):
                    uses += members.places(name, each, is_argument=is_argument).meant
            by_path.setdefault(path, {}).update((each.start, each) for each in uses)
            # Types of Java and C# are told by their names alone.
            is_end = path.endswith((".java", ".cs")) or (is_go and _is_beside(path, module))
            hands_on = (is_user and not is_end) or _hands_on(names, path, use, owner or name)
            is_new = path not in modules and posixpath.dirname(path) not in rivals
            if hands_on and is_new and len(modules) < MOST_MODULES:
                modules.append(path)
                names_of[path] = ResolvedNames(names.tree, names_of[use], _stem(use))
    for path in filter(by_path.get, texts):
        uses = sorted(by_path[path].values(), key=lambda each: each.start)
        yield ImportingFile(path, files[path], tuple(uses))


def _texts(
    folder: Path, module: str, name: str, opened: Mapping[str, str], owner: str, renamed: str
) -> tuple[str, dict[str, str], re.Pattern[str]]:
    """Return the text that gives a name to others, of Go that of its package, the texts by path in
    which it may be used, or where it is a member one of its file's classes, and what gives it to
    files that have not its name. A file that has the name from a default is none of these, unless
    that is what the file's default is called."""
    endings, declaring = _ENDINGS.get(grammar_of("", module), ()), opened.get(module, "")
    words = [giver for giver in _GIVEN.findall(declaring) if owner and giver[:1].isupper()]
    word = rf"(?:{owner or name}|{owner or renamed or name})\b"
    default = rf"\bexport\s+default\s+(?:[a-z]+\*?\s+)*{word}|\b{word}\s+as\s+default\b"
    has_other = rf"^import\s+(?:type\s+)?{owner or name}\b(?:.*|\s*,\s*\{{[^}}]*\}}\s*)\bfrom\b"
    is_default = re.search(default, declaring) is not None
    others = re.compile("(?!)" if is_default else has_other, re.MULTILINE)
    unnamed = _UNNAMED if is_default and not owner and not renamed else _ALL_ON
    texts: dict[str, str] = {}
    for path, text in readable_texts(folder, opened, endings) if endings else ():
        is_used = any(word in text for word in (name, *words)) or unnamed.search(text)
        if path != module and is_used and not others.search(text):
            texts[path] = text
        if path != module and path.endswith(".go") and _is_beside(path, module):
            declaring += f"\n{text}"
    return declaring, texts, unnamed


def _rivals(texts: Mapping[str, str], module: str, owner: str) -> set[str]:
    """Return the packages of Go that have a type of their own that is called as ``owner``."""
    declared = re.compile(rf"^(?:type |\t){owner}\b[^\n]* (?:struct|interface)\b", re.MULTILINE)
    rivals = {posixpath.dirname(path) for path, text in texts.items() if declared.search(text)}
    return rivals - {posixpath.dirname(module)} if owner else set()


def _names_file(path: str, text: str, module: str) -> bool:
    """Return whether a text has the name by which a file is imported, or what is around it."""
    is_named = path.endswith((".java", ".cs")) or _stem(module) in text
    return is_named or HERE.search(text) is not None


def _stem(path: str) -> str:
    """Return the last part of what a file is imported by."""
    stem = posixpath.basename(path).split(".")[0]
    is_folder = path.endswith(".go") or stem in ("__init__", "index", "mod", "lib")
    return posixpath.basename(posixpath.dirname(path)) if is_folder else stem


def _has_another(names: ResolvedNames, path: str, modules: list[str], owner: str) -> bool:
    """Return whether a file has something else that is called as a class of some modules."""
    imported = [use for use, _ in names.declared(owner) if use.is_foreign]
    uses = (next(_places(names, path, module, owner), None) for module in modules)
    return bool(imported) and not any(uses)


def _hands_on(names: ResolvedNames, path: str, module: str, name: str) -> bool:
    """Return whether a file gives others a name that it has from a module."""
    bound = _python_places(names, path, module, name) if names.tree.grammar == "python" else ()
    scopes = {use.scope.kind for use in bound if use.declares and use.scope is not None}
    return "module" in scopes or _has_all(names.tree, posixpath.dirname(path), module)


def _has_all(tree: SyntaxTree, folder: str, module: str) -> bool:
    """Return whether a file takes or hands on all that a module gives."""
    paths = python_paths if tree.grammar == "python" else script_paths
    modules = (match[1] or match[2] for match in _ALL_ON.finditer(tree.text))
    return any(module in paths(each, folder) for each in modules)


def looks_into_others(module: str) -> bool:
    """Return whether it is known what other files make of a file's names."""
    return grammar_of("", module) in _ENDINGS


def readable_texts(
    folder: Path, opened: Mapping[str, str], endings: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield paths and texts of the files of a folder that end so; ``opened`` as in
    ``importing_files``, and first. Reads the disk."""
    yield from opened.items()
    tree = FolderTree(folder, endings=endings)
    for (path, _), _number in zip(tree.walk(), range(MOST_FILES), strict=False):
        if path in opened:
            continue
        try:
            content = tree.read(path)
        except OSError:
            continue
        # Editors do not count a byte order mark as a character of the text.
        if not content.reason and not content.text.startswith("\ufeff"):
            yield path, content.text


def _uses_any(
    names: ResolvedNames, path: str, module: str, givers: list[str], words: frozenset[str]
) -> bool:
    """Return whether a file uses one of some names of a module, the first of which is a class."""
    tree = names.tree
    is_near = tree.grammar in ("go", "java") and _is_beside(path, module)
    if is_near or tree.grammar == "csharp":
        return True
    if tree.grammar == "java":
        return f".{givers[0]};" in tree.text
    folder = posixpath.dirname(path)
    defaults = _DEFAULT.findall(tree.text) if path.endswith(_SCRIPTS) else ()
    if any(module in script_paths(use, folder) for _, use in defaults):
        return True
    used = (name for name in dict.fromkeys(givers) if name in words)
    return any(next(_places(names, path, module, name), None) is not None for name in used)


def _is_beside(path: str, module: str) -> bool:
    return posixpath.dirname(path) == posixpath.dirname(module)


def _places(names: ResolvedNames, path: str, module: str, name: str) -> Iterator[Reference]:
    if names.tree.grammar == "python":
        yield from _python_places(names, path, module, name)
    elif path.endswith(_SCRIPTS):
        yield from _script_places(names, path, module, name)
    elif names.tree.grammar == "go":
        yield from _go_places(names, path, module, name)
    elif names.tree.grammar == "rust":
        yield from _rust_places(names, module, name)


def _script_places(names: ResolvedNames, path: str, module: str, name: str) -> Iterator[Reference]:
    tree, folder = names.tree, posixpath.dirname(path)
    bound = set()
    for use in names.uses(name):
        node, specifier = use.node, outside(use.node)
        statement = enclosing(node, _SCRIPT_IMPORT)
        if node is None or specifier is None or not _is_of(tree, statement, folder, module):
            continue
        is_name, alias = child_of(specifier, "name") == node, child_of(specifier, "alias")
        is_specified = specifier.type == "import_specifier" and is_name
        if is_specified or specifier.type == "import_clause":
            bound |= {use.scope} if alias is None else set()
            yield replace(use, before="", declares=True)
        elif specifier.type == "export_specifier" and is_name:
            yield replace(use, after=f" as {name}" if alias is None else "")
        elif "property_identifier" in node.type and "pattern" in (specifier.type + node.type):
            # ``const { name } = require(…)``: the variable stays.
            is_short = node.type.startswith("shorthand")
            yield replace(use, before="", after=f": {name}" if is_short else "")
    for use in names.uses(name):
        if use.use is NameUse.VARIABLE and use.scope in bound and not use.declares:
            yield use
        elif use.use is NameUse.MEMBER and use.receiver:
            outer = [outside(each.node) for each in names.uses(use.receiver)]
            outer += [outside(each, 2) for each in outer if kind_of(each) == "namespace_import"]
            if any(_is_of(tree, each, folder, module) for each in outer):
                yield use


def _by_default(names: ResolvedNames, path: str, module: str) -> Iterator[Reference]:
    """Yield the uses of what is a module's default under the name that a file gives it."""
    for local, source in _DEFAULT.findall(names.tree.text):
        uses = names.uses(local) if module in script_paths(source, posixpath.dirname(path)) else []
        scopes = {use.scope for use in uses if use.is_foreign}
        yield from (use for use in uses if use.scope in scopes and not use.declares)


def _is_of(tree: SyntaxTree, statement: Node | None, folder: str, module: str) -> bool:
    """Return whether a statement takes something from a module: an import, or what requires it."""
    text = tree.text_of(child_of(statement, "source"))
    if kind_of(statement) == "variable_declarator":
        value = tree.text_of(child_of(statement, "value"))
        required = re.fullmatch(r"require\(\s*(['\"].*['\"])\s*\)", value)
        text = required[1] if required else ""
    return bool(text) and module in script_paths(text.strip("'\"`"), folder)


def _go_places(names: ResolvedNames, path: str, module: str, name: str) -> Iterator[Reference]:
    package, uses = posixpath.dirname(module), names.uses(name)
    # A test may have a package of its own.
    is_outside = re.search(r"^package \w+_test$", names.tree.text, re.MULTILINE) is not None
    if _is_beside(path, module) and (not is_outside or module.endswith("_test.go")):
        yield from (use for use in uses if use.use is NameUse.VARIABLE and use.scope is None)
        members = Members(names)
        yield from (*members.of_embedded(name, name), *members.map_keys(name))
        return
    tail = re.escape(posixpath.basename(package))
    line = rf'^[ \t]*(?:import[ \t]+)?(\w+[ \t]+)?"(?:[^"\n]*/)?{tail}"'
    declared = re.search(line, names.tree.text, re.MULTILINE)
    if declared is None or not tail or not name[:1].isupper():
        return
    receiver = (declared[1] or posixpath.basename(package)).strip()
    yield from (use for use in uses if use.receiver == receiver and use.use is NameUse.MEMBER)
    yield from Members(names).of_embedded(name, f"{receiver}.{name}")


def _rust_places(names: ResolvedNames, module: str, name: str) -> Iterator[Reference]:
    stem = posixpath.splitext(posixpath.basename(module))[0]
    if stem == "mod":
        stem = posixpath.basename(posixpath.dirname(module))
    pattern = re.compile(rf"\b{re.escape(stem)}::(?:\{{(?:[^{{}}]*\W)?)?{re.escape(name)}\b")
    bound = set()
    for use in names.uses(name):
        declaration = names.tree.text_of(enclosing(use.node, "^use_declaration$"))
        if pattern.search(declaration):
            yield replace(use, before="")
            if not re.search(rf"\b{re.escape(name)}\s+as\b", declaration):
                bound.add(use.scope)
        elif use.receiver == stem and use.use is NameUse.MEMBER:
            yield use
    for use in names.uses(name):
        if use.use is NameUse.VARIABLE and use.scope in bound and not use.declares:
            yield use


# Python


def _python_places(names: ResolvedNames, path: str, module: str, name: str) -> Iterator[Reference]:
    folder = posixpath.dirname(path)
    uses = names.python.of(name).values()
    bound: set[Scope | None] = {None} if _has_all(names.tree, folder, module) else set()
    for use in uses:
        if _is_taken_from(names.tree, use, folder, module):
            yield _reference(use)
            if use.use is Use.IMPORT:
                bound.add(use.scope)
    for use in uses:
        outer = use.node.parent if use.use is Use.ATTRIBUTE else None
        receiver = names.tree.text_of(child_of(outer, "object"))
        is_bound = use.scope in bound and use.use not in _NOT_BOUND
        if is_bound or _is_named(names, receiver, outer or use.node, folder, module):
            yield _reference(use)
    yield from _in_strings(names, folder, module, name)
    for each in names.uses(name) if bound else ():
        # ``__all__``, and types in strings.
        if each.scope in bound and each.start not in names.python.of(name):
            yield each


def _in_strings(names: ResolvedNames, folder: str, module: str, name: str) -> Iterator[Reference]:
    """Yield where strings name what is of a module: ``patch("module.name")`` and
    ``setattr(module, "name", value)``."""
    tree = names.tree
    for match in re.finditer(rf"(?<![\w.])((?:\w+\.)*)({name})(?!\w)", tree.text):
        node, path = tree.node(*match.span(2)), match[1][:-1]
        if node is None or node.type != "string_content":
            continue
        is_path = path and module in python_paths(path, folder)
        arguments, call = inner(outside(node, 2)), tree.text_of(outside(node, 3))
        if not path and arguments[1:2] == [outside(node)] and _ATTRIBUTE.match(call):
            node, path = arguments[0], tree.text_of(arguments[0])
        if is_path or _is_named(names, path, node, folder, module):
            yield Reference(*match.span(2), NameUse.VARIABLE)


def _reference(use: Occurrence) -> Reference:
    return Reference(use.start, use.end, NameUse.VARIABLE, use.scope, use.use.binds, use.node)


def _is_taken_from(tree: SyntaxTree, use: Occurrence, folder: str, module: str) -> bool:
    """Return whether a place is the name in ``from module import name``."""
    if use.use not in (Use.IMPORT, Use.MODULE):
        return False
    path = statement = use.node.parent
    while statement is not None and statement.type in ("dotted_name", "aliased_import"):
        path, statement = statement, statement.parent
    source = child_of(statement, "module_name")
    is_import = kind_of(statement) == "import_from_statement" and path != source
    return is_import and module in python_paths(tree.text_of(source), folder)


def _is_named(names: ResolvedNames, path: str, node: Node, folder: str, module: str) -> bool:
    """Return whether a path that begins where a node does names the module, as this file imports
    it; in a string it may be imported anywhere."""
    uses = names.python.of(path.partition(".")[0]) if path else {}
    here = uses.get(names.tree.start(node))
    scoped = (other for other in uses.values() if here is None or other.scope == here.scope)
    imports = (other for other in scoped if other.use in (Use.IMPORT, Use.ALIAS))
    paths = (python_paths(_imported(names.tree, other, path), folder) for other in imports)
    return any(module in each for each in paths)


def _imported(tree: SyntaxTree, bound: Occurrence, path: str) -> str:
    """Return the module that ``path`` names where an import binds its first part, if any."""
    node = bound.node.parent
    statement = enclosing(node, "^import_")
    if statement is None:
        return ""
    source, is_alias = child_of(statement, "module_name"), kind_of(node) == "aliased_import"
    if not is_alias and source is None:
        return path
    if "." in path:
        return ""
    own = tree.text_of(child_of(node, "name") if is_alias else bound.node)
    head = tree.text_of(source)
    return f"{head}{'' if not head or head.endswith('.') else '.'}{own}"
