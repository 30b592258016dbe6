"""Finds the other files of a workspace that import a name from a Python module.

Files are read as the index reads them: none that is ignored, large, binary or holds secrets. What
an editor has open counts instead of the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.text.syntax.imports import python_paths
from lsp_server.text.syntax.python_names import Occurrence, Use, occurrences
from lsp_server.text.syntax.tree import SyntaxTree

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_FILES = 3_000
"""Of a larger workspace the first so many files are looked through."""


@dataclass(frozen=True, slots=True)
class ImportingFile:
    """A file that imports a name of a module, or the module itself."""

    path: str
    """Relative to the workspace, with slashes."""
    text: str
    tree: SyntaxTree
    places: tuple[Occurrence, ...]
    """Where the name of the module is meant: where it is imported, what that import binds, and
    attributes of the module."""


def importing_files(
    folder: Path, module: str, name: str, opened: Mapping[str, str]
) -> Iterator[ImportingFile]:
    """Files below ``folder`` that use ``name`` of the Python file ``module``, a path in the folder.

    ``opened``: the text of open documents by their paths in the folder; empty where it is not to be
    read. Reads the disk: not for the event loop.
    """
    for path, text in readable_texts(folder, opened, (".py", ".pyi")):
        if path != module and name in text:
            tree = SyntaxTree.parsed(text, "python")
            places = tuple(_places(tree, path, module, name))
            if places:
                yield ImportingFile(path, text, tree, places)


def imports_name(tree: SyntaxTree, path: str, module: str, name: str) -> bool:
    """Whether the file at ``path`` uses ``name`` of the Python file ``module``."""
    return next(_places(tree, path, module, name), None) is not None


def readable_texts(
    folder: Path, opened: Mapping[str, str], endings: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    """Paths and texts of the files of a folder that end so; ``opened`` as in ``importing_files``,
    and first. Reads the disk."""
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


def _places(tree: SyntaxTree, path: str, module: str, name: str) -> Iterator[Occurrence]:
    folder = posixpath.dirname(path)
    found = occurrences(tree, name)
    bound = set()
    looked_up = cache(partial(occurrences, tree))
    for one in found:
        if _is_taken_from(tree, one, folder, module):
            yield one
            if one.use is Use.IMPORT:
                bound.add(one.scope)
    for one in found:
        is_bound = one.scope is not None and one.scope in bound and one.use is not Use.IMPORT
        if is_bound or _is_attribute_of(tree, one, looked_up, folder, module):
            yield one


def _is_taken_from(tree: SyntaxTree, one: Occurrence, folder: str, module: str) -> bool:
    """Whether a place is the name in ``from module import name``."""
    node: Node | None = one.node
    if one.use not in (Use.IMPORT, Use.MODULE) or node is None:
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
    one: Occurrence,
    occurrences_of: Callable[[str], list[Occurrence]],
    folder: str,
    module: str,
) -> bool:
    """Whether a place is the name in ``module.name``, with the module as this file imports it."""
    attribute = one.node.parent
    if one.use is not Use.ATTRIBUTE or attribute is None:
        return False
    receiver = attribute.child_by_field_name("object")
    if receiver is None:
        return False
    path = _text(tree, receiver)
    first = path.split(".")[0]
    places = occurrences_of(first)
    bound = [at for at in places if at.use in (Use.IMPORT, Use.ALIAS)]
    meant = [at.scope for at in places if at.start == tree.index(receiver.start_byte)]
    return any(
        at.scope in meant and module in python_paths(_imported(tree, at, path), folder)
        for at in bound
    )


def _imported(tree: SyntaxTree, bound: Occurrence, path: str) -> str:
    """The module that ``path`` names where an import binds its first part; empty where it names
    none."""
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
    own = _text(tree, named) if named is not None else ""
    head = _text(tree, source) if source is not None else ""
    return f"{head}{'' if not head or head.endswith('.') else '.'}{own}"


def _is_module(tree: SyntaxTree, source: Node, folder: str, module: str) -> bool:
    return module in python_paths(_text(tree, source), folder)


def _text(tree: SyntaxTree, node: Node) -> str:
    return tree.text[tree.index(node.start_byte) : tree.index(node.end_byte)]
