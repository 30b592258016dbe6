"""Code that a model's change may not touch unless the last edits name what it changes: signatures,
types, imports and literals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.anti_unification import is_body, is_literal
from lsp_server.editor.next_edits.history import RecordedEdit
from lsp_server.editor.next_edits.windows import shown_line
from lsp_server.text.syntax.nodes import around, child_of
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

if TYPE_CHECKING:
    from tree_sitter import Node

LAST_EDITS = 5
"""A change is named in one of the last edits."""
_IMPORT = re.compile(r"import|^use_declaration$|include|using_directive")
_TYPE = re.compile(r"(?:^|_)types?(?:_|$)|annotation")
_DEFINITION = re.compile(
    r"function|method|class|interface|struct|enum|trait|impl|constructor"
    r"|type_(?:declaration|spec|alias|item)"
)
_NAMING = re.compile(r"declarat|definition|field|property")
_PARAMETERS = re.compile(r"parameter")
_TEMPLATE = re.compile(r"interpolation|substitution")
_TOKEN = re.compile(r"\w+|[^\w\s]")
_PUNCTUATION = set(",()")
_ROLES = ("a signature", "a type", "an import", "a literal")


def refused_change(tree: SyntaxTree, hunk: TextEdit[int], recent: Sequence[RecordedEdit]) -> str:
    """Return why a change of a document is not shown, in words; empty where it may be.

    tree: of the document as it is; recent: the edits of all documents, the latest first."""
    edits = recent[:LAST_EDITS]
    taken_away = sum((_tokens(edit.old_text) - _tokens(edit.new_text) for edit in edits), Counter())
    added = sum((_tokens(edit.new_text) - _tokens(edit.old_text) for edit in edits), Counter())
    old = tree.text[hunk.start : hunk.end]
    after = tree.edited([hunk])
    before_roles = _tokens_by_role(tree, hunk.start, hunk.end)
    after_roles = _tokens_by_role(after, hunk.start, hunk.start + len(hunk.text))
    is_new_lines = not old.strip() and "\n" in hunk.text
    is_deletion = not hunk.text.strip() and "\n" in old
    for role in () if is_deletion else _ROLES:
        gone = before_roles.get(role, Counter()) - after_roles.get(role, Counter())
        came = after_roles.get(role, Counter()) - before_roles.get(role, Counter())
        if role == "a literal" or is_new_lines:
            came = Counter()
        if not _are_named(gone, taken_away) or not _are_named(came, added):
            return f"it changes {role} that no edit names"
        if role == "a signature" and came and not gone:
            return "it adds a name to another definition"
    names = {word for word in added - taken_away if word.isidentifier()}
    if names & set(_tokens(hunk.text) - _tokens(old)):
        start = hunk.start + len(hunk.text) - len(hunk.text.lstrip())
        end = hunk.start + len(hunk.text.rstrip())
        owner = _owner(after, start, max(start, end))
        if owner and owner not in _names_of(tree, edits):
            return "it adds a name to another definition"
    return ""


def _are_named(tokens: Counter[str], named: Counter[str]) -> bool:
    return all(token in named or token in _PUNCTUATION for token in tokens)


def _tokens(text: str) -> Counter[str]:
    return Counter(_TOKEN.findall(text))


def _tokens_by_role(tree: SyntaxTree, start: int, end: int) -> dict[str, Counter[str]]:
    """Count the tokens between two offsets by the protected role that they have."""
    roles: dict[str, Counter[str]] = {}
    for leaf in _leaves(tree, start, end):
        if role := _role(leaf):
            first, last = (max(start, tree.start(leaf)), min(end, tree.end(leaf)))
            roles.setdefault(role, Counter()).update(_TOKEN.findall(tree.text[first:last]))
    return roles


def _leaves(tree: SyntaxTree, start: int, end: int) -> Iterator[Node]:
    node = tree.node(start, end) if start < end else None
    remaining = [node] if node is not None else []
    while remaining:
        node = remaining.pop()
        if tree.end(node) <= start or tree.start(node) >= end:
            continue
        if node.child_count:
            remaining += reversed(node.children)
        else:
            yield node


def _role(leaf: Node) -> str:
    """Return the protected role of a leaf; empty for other code and for comments."""
    node: Node | None = leaf
    inner = leaf
    while node is not None and "comment" not in node.type:
        if is_literal(node):
            return "a literal"
        if _TEMPLATE.search(node.type) or is_body(node):
            # What runs in a text is code again, and so is what a body holds.
            return ""
        if _IMPORT.search(node.type):
            return "an import"
        if _TYPE.search(node.type) and not _DEFINITION.search(node.type):
            return "a type"
        body = node.child_by_field_name("body")
        is_header = body is not None and inner.end_byte <= body.start_byte
        is_name = node.child_by_field_name("name") == leaf and _NAMING.search(node.type)
        if (
            _PARAMETERS.search(node.type)
            or (is_header and _DEFINITION.search(node.type))
            or is_name
        ):
            return "a signature"
        inner, node = node, node.parent
    return ""


def _owner(tree: SyntaxTree, start: int, end: int) -> str:
    """Return the name of what is called where a range gives it an argument, or of the class where
    it gives it a member; empty elsewhere."""
    node = tree.node(start, end)
    for outer in (node, *around(node)) if node is not None else ():
        called, arguments = child_of(outer, "function", "constructor"), child_of(outer, "arguments")
        if called is not None and arguments is not None and start > tree.end(called):
            declared = tree.text[start:end]
            is_argument = "," in declared or tree.text_of(arguments)[1:-1].strip() == declared
            return _TOKEN.findall(tree.text_of(called))[-1] if is_argument else ""
        if outer.parent is not None and is_body(outer):
            is_class = re.search("class|interface", outer.parent.type)
            return tree.text_of(child_of(outer.parent, "name")) if is_class else ""
    return ""


def _names_of(tree: SyntaxTree, edits: Sequence[RecordedEdit]) -> set[str]:
    """Return the words of the edits' lines, and the names of the definitions around them."""
    words: set[str] = set()
    lines = tree.text.split("\n")
    for edit in edits:
        words.update(_TOKEN.findall(edit.old_text + edit.new_text))
        if not edit.new or lines[edit.line : edit.line + 1] != [shown_line(edit.new[0])]:
            continue
        line = lines[edit.line]
        start = sum(len(above) + 1 for above in lines[: edit.line]) + len(line) - len(line.lstrip())
        definitions = (each for each in around(tree.node(start, start))
                       if _DEFINITION.search(each.type))  # fmt: skip
        words.update(tree.text_of(child_of(each, "name")) for each in definitions)
    return words
