"""Finds the other files of a workspace that use a name of a file: Python, JavaScript, TypeScript,
Go and Rust; of Java and C# the members of classes.

Files are read as the index reads them: none that is ignored, large, binary or holds secrets. What
an editor has open counts instead of the file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.text.syntax.expression_types import ExpressionTypes
from lsp_server.text.syntax.imports import python_paths, script_paths
from lsp_server.text.syntax.languages import grammar_of
from lsp_server.text.syntax.members import Members
from lsp_server.text.syntax.name_uses import NameUse, Reference, text_of
from lsp_server.text.syntax.python_names import Occurrence, Use, occurrences
from lsp_server.text.syntax.references import references
from lsp_server.text.syntax.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_FILES = 3_000
"""Of a larger workspace the first so many files are looked through."""
_SCRIPTS = (".ts", ".tsx", ".js", ".jsx", ".mts", ".cts", ".mjs", ".cjs")
_ENDINGS = {
    "python": (".py", ".pyi"), "go": (".go",), "rust": (".rs",), "java": (".java",),
    "csharp": (".cs",), "javascript": _SCRIPTS, "typescript": _SCRIPTS, "tsx": _SCRIPTS,
}  # fmt: skip
MOST_MODULES = 8
"""Files that hand a name on."""
_ALL_ON = re.compile(r"^\s*export\s*\*\s*from\s*['\"]([^'\"]+)['\"]", re.MULTILINE)
_GIVEN = re.compile(
    r"^(?:(?:export|default|declare|async|abstract|pub|def|class|function|func|fn|const|let|var|type"
    r"|interface|enum|struct)\s+)*(\w+)",
    re.MULTILINE,
)
"""The name that a line of a file gives to others."""
_SCRIPT_IMPORT = re.compile(r"^(?:import|export)_statement$")


@dataclass(frozen=True, slots=True)
class ImportingFile:
    """A file that uses a name of another one."""

    path: str
    """Relative to the workspace, with slashes."""
    text: str
    tree: SyntaxTree
    places: tuple[Reference, ...]
    """Where the name is meant: where it is imported, what that import binds, and after the name of
    the module."""


def importing_files(
    folder: Path,
    module: str,
    name: str,
    opened: Mapping[str, str],
    owner: str = "",
    *,
    is_argument: bool = False,
) -> Iterator[ImportingFile]:
    """Yield files below ``folder`` that use ``name`` of the file ``module``, a path in the folder;
    with ``owner`` a member of that class, which is given by its name where the class is called if
    ``is_argument``.

    ``opened``: the text of open documents by their paths in the folder; empty where it is not to be
    read. Reads the disk: not for the event loop.
    """
    endings = _ENDINGS.get(grammar_of("", module), ())
    trees: dict[str, SyntaxTree] = {}
    declaring = opened.get(module, "")
    types = ExpressionTypes(SyntaxTree.parsed(declaring, grammar_of("", module))) if owner else None
    # What stands between brackets of a type is no base.
    heirs = re.compile(
        r"(?:class|interface)\s+(\w+)(?:\s*\(|[^\n{]*?(?:\bextends|\bimplements|:))"
        rf"[^\n{{<\[]*\b{re.escape(owner)}\b(?!\s*[\[<.])"
    )
    givers = [owner, *_GIVEN.findall(declaring)] if owner else [name]
    for path, text in readable_texts(folder, opened, endings) if endings else ():
        is_meant = name in text and any(giver in text for giver in givers)
        is_meant = is_meant or _ALL_ON.search(text) is not None
        grammar = grammar_of("", path) if is_meant and path.endswith(endings) else ""
        if grammar and path != module:
            trees[path] = SyntaxTree.parsed(text, grammar)
    by_path: dict[str, dict[int, Reference]] = {}
    modules = [module]
    for use in modules:
        for path, tree in trees.items():
            uses = [] if owner else list(_places(tree, path, use, name))
            if types is not None and _uses_any(tree, path, use, givers):
                members = Members(tree, module=types)
                for each in (owner, *heirs.findall(declaring), *heirs.findall(tree.text)):
                    uses += members.places(name, each, is_argument=is_argument).meant
            by_path.setdefault(path, {}).update((each.start, each) for each in uses)
            if path not in modules and len(modules) < MOST_MODULES:
                modules += [path] if _hands_on(tree, path, use, owner or name) else []
    for path, by_start in by_path.items():
        if by_start:
            uses = sorted(by_start.values(), key=lambda each: each.start)
            yield ImportingFile(path, trees[path].text, trees[path], tuple(uses))


def aliased(tree: SyntaxTree, uses: Iterable[Reference]) -> Iterator[Reference]:
    """Yield the places of the aliases that some uses get where they are imported."""
    for use in uses:
        node = tree.node(use.start, use.end)
        specifier = node.parent if node is not None else None
        if specifier is not None and specifier.type == "dotted_name":
            specifier = specifier.parent
        alias = specifier.child_by_field_name("alias") if specifier is not None else None
        if alias is not None:
            names = references(tree, text_of(tree, alias))
            scopes = {name.scope for name in names if name.start == tree.index(alias.start_byte)}
            yield from (name for name in names if name.scope in scopes and not name.declares)


def _hands_on(tree: SyntaxTree, path: str, module: str, name: str) -> bool:
    """Return whether a file gives others a name that it has from a module."""
    if tree.grammar == "python":
        return any(
            use.declares and use.scope is not None and use.scope.kind == "module"
            for use in _python_places(tree, path, module, name)
        )
    declared = (by_path[1] for by_path in _ALL_ON.finditer(tree.text))
    return any(module in script_paths(use, posixpath.dirname(path)) for use in declared)


def looks_into_others(module: str) -> bool:
    """Return whether it is known what other files make of a file's names."""
    return grammar_of("", module) in _ENDINGS


def readable_texts(
    folder: Path, opened: Mapping[str, str], endings: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Yield paths and texts of the files of a folder that end so; ``opened`` as in
    ``importing_files``, and first. Reads the disk."""
    from repo_index.source_tree import FolderTree

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


def _uses_any(tree: SyntaxTree, path: str, module: str, names: list[str]) -> bool:
    """Return whether a file uses one of some names of a module, the first of which is a class."""
    if tree.grammar == "csharp":
        return True
    if tree.grammar == "java":
        is_beside = posixpath.dirname(path) == posixpath.dirname(module)
        return is_beside or f".{names[0]};" in tree.text
    words = set(re.findall(r"\w+", tree.text))
    return any(
        next(_places(tree, path, module, name), None) is not None
        for name in dict.fromkeys(names)
        if name in words
    )


def _places(tree: SyntaxTree, path: str, module: str, name: str) -> Iterator[Reference]:
    if tree.grammar == "python":
        yield from _python_places(tree, path, module, name)
    elif path.endswith(_SCRIPTS):
        yield from _script_places(tree, path, module, name)
    elif tree.grammar == "go":
        yield from _go_places(tree, path, module, name)
    elif tree.grammar == "rust":
        yield from _rust_places(tree, module, name)


def _script_places(tree: SyntaxTree, path: str, module: str, name: str) -> Iterator[Reference]:
    folder = posixpath.dirname(path)
    names = references(tree, name)
    bound = set()
    for use in names:
        node = tree.node(use.start, use.end)
        statement = node
        while statement is not None and not _SCRIPT_IMPORT.match(statement.type):
            if statement.type == "variable_declarator":
                break
            statement = statement.parent
        if node is None or node.parent is None or not _is_of(tree, statement, folder, module):
            continue
        specifier = node.parent
        if specifier.type == "import_specifier" and specifier.child_by_field_name("name") == node:
            if specifier.child_by_field_name("alias") is None:
                bound.add(use.scope)
            yield replace(use, before="", declares=True)
        elif specifier.type == "export_specifier" and specifier.child_by_field_name("name") == node:
            alone = specifier.child_by_field_name("alias") is None
            yield replace(use, after=f" as {name}" if alone else "")
        elif "property_identifier" in node.type and "pattern" in (specifier.type + node.type):
            # ``const { name } = require(…)``: the variable stays.
            is_short = node.type.startswith("shorthand")
            yield replace(use, before="", after=f": {name}" if is_short else "")
    for use in names:
        if use.use is NameUse.VARIABLE and use.scope in bound and not use.declares:
            yield use
        elif use.use is NameUse.MEMBER and use.receiver:
            for declared in references(tree, use.receiver):
                node = tree.node(declared.start, declared.end)
                statement = node.parent if node is not None else None
                if statement is not None and statement.type == "namespace_import":
                    statement = statement.parent.parent if statement.parent is not None else None
                if _is_of(tree, statement, folder, module):
                    yield use
                    break


def _is_of(tree: SyntaxTree, statement: Node | None, folder: str, module: str) -> bool:
    """Return whether a statement takes something from a module: an import, or what requires it."""
    source = statement.child_by_field_name("source") if statement is not None else None
    text = text_of(tree, source)
    if statement is not None and statement.type == "variable_declarator":
        required = re.fullmatch(
            r"require\(\s*(['\"].*['\"])\s*\)",
            text_of(tree, statement.child_by_field_name("value")),
        )
        text = required[1] if required else ""
    return bool(text) and module in script_paths(text.strip("'\"`"), folder)


def _go_places(tree: SyntaxTree, path: str, module: str, name: str) -> Iterator[Reference]:
    package = posixpath.dirname(module)
    names = references(tree, name)
    if posixpath.dirname(path) == package:
        yield from (use for use in names if use.use is NameUse.VARIABLE and use.scope is None)
        return
    tail = re.escape(posixpath.basename(package))
    declared = re.search(
        rf'^[ \t]*(?:import[ \t]+)?(\w+[ \t]+)?"(?:[^"\n]*/)?{tail}"', tree.text, re.M
    )
    if declared is None or not tail or not name[:1].isupper():
        return
    receiver = (declared[1] or posixpath.basename(package)).strip()
    yield from (use for use in names if use.receiver == receiver and use.use is NameUse.MEMBER)


def _rust_places(tree: SyntaxTree, module: str, name: str) -> Iterator[Reference]:
    stem = posixpath.splitext(posixpath.basename(module))[0]
    if stem == "mod":
        stem = posixpath.basename(posixpath.dirname(module))
    pattern = re.compile(rf"\b{re.escape(stem)}::(?:\{{(?:[^{{}}]*\W)?)?{re.escape(name)}\b")
    names, bound = references(tree, name), set()
    for use in names:
        node = tree.node(use.start, use.end)
        while node is not None and node.type != "use_declaration":
            node = node.parent
        if node is not None and pattern.search(text_of(tree, node)):
            yield replace(use, before="")
            if not re.search(rf"\b{re.escape(name)}\s+as\b", text_of(tree, node)):
                bound.add(use.scope)
        elif use.receiver == stem and use.use is NameUse.MEMBER:
            yield use
    for use in names:
        if use.use is NameUse.VARIABLE and use.scope in bound and not use.declares:
            yield use


# Python


def _python_places(tree: SyntaxTree, path: str, module: str, name: str) -> Iterator[Reference]:
    folder = posixpath.dirname(path)
    by_path = occurrences(tree, name)
    bound = set()
    looked_up = cache(partial(occurrences, tree))
    for use in by_path:
        if _is_taken_from(tree, use, folder, module):
            yield _reference(use)
            if use.use is Use.IMPORT:
                bound.add(use.scope)
    for use in by_path:
        is_bound = use.scope is not None and use.scope in bound and use.use is not Use.IMPORT
        if is_bound or _is_attribute_of(tree, use, looked_up, folder, module):
            yield _reference(use)


def _reference(use: Occurrence) -> Reference:
    return Reference(use.start, use.end, NameUse.VARIABLE, use.scope, use.use.binds)


def _is_taken_from(tree: SyntaxTree, use: Occurrence, folder: str, module: str) -> bool:
    """Return whether a place is the name in ``from module import name``."""
    node: Node | None = use.node
    if use.use not in (Use.IMPORT, Use.MODULE) or node is None:
        return False
    path, node = node.parent, node.parent
    while node is not None and node.type in ("dotted_name", "aliased_import"):
        path, node = node, node.parent
    if node is None or node.type != "import_from_statement":
        return False
    source = node.child_by_field_name("module_name")
    return source is not None and path != source and _is_module(tree, source, folder, module)


def _is_attribute_of(
    tree: SyntaxTree,
    use: Occurrence,
    occurrences_of: Callable[[str], list[Occurrence]],
    folder: str,
    module: str,
) -> bool:
    """Return whether a place is the name in ``module.name``, with the module as this file imports
    it."""
    attribute = use.node.parent
    if use.use is not Use.ATTRIBUTE or attribute is None:
        return False
    receiver = attribute.child_by_field_name("object")
    if receiver is None:
        return False
    path = text_of(tree, receiver)
    first = path.split(".")[0]
    uses = occurrences_of(first)
    bound = [bound_use for bound_use in uses if bound_use.use in (Use.IMPORT, Use.ALIAS)]
    scopes = [
        bound_use.scope for bound_use in uses if bound_use.start == tree.index(receiver.start_byte)
    ]
    return any(
        bound_use.scope in scopes
        and module in python_paths(_imported(tree, bound_use, path), folder)
        for bound_use in bound
    )


def _imported(tree: SyntaxTree, bound: Occurrence, path: str) -> str:
    """Return the module that ``path`` names where an import binds its first part; empty where it
    names none."""
    node = bound.node.parent
    statement = node
    while statement is not None and not statement.type.startswith("import_"):
        statement = statement.parent
    if statement is None or node is None:
        return ""
    source = statement.child_by_field_name("module_name")
    if node.type != "aliased_import" and source is None:
        return path
    if "." in path:
        return ""
    named = node.child_by_field_name("name") if node.type == "aliased_import" else bound.node
    own = text_of(tree, named)
    head = text_of(tree, source)
    return f"{head}{'' if not head or head.endswith('.') else '.'}{own}"


def _is_module(tree: SyntaxTree, source: Node, folder: str, module: str) -> bool:
    return module in python_paths(text_of(tree, source), folder)
