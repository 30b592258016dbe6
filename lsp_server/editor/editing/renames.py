"""Exact renames by the syntax tree; whole words in marked text and prose. A name that exists
already in scope, or cannot be a name, is refused with its line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.editor.editing.hunks import Hunk, apply_hunks
from lsp_server.editor.editing.rename_wordings import (
    RenameWording,
    plain_rename,
    rename_wording,
    with_sigils_of,
)
from lsp_server.shared.errors import EditRefused
from lsp_server.text.syntax.keywords import is_keyword
from lsp_server.text.syntax.roles import MARKUP, PROSE, Role
from lsp_server.text.syntax.scopes import Scope, function_named, scopes_at
from lsp_server.text.syntax.tree import SyntaxTree

Span = tuple[int, int]

_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME = re.compile(r"[^\W\d][\w$]*")
_NAME_OF_MARKUP = re.compile(r"[^\W\d][\w$]*(?:[-.:][\w$]+)*")
"""Elements, classes and words of prose may have hyphens in them."""
_MEMBER = re.compile(r"([\w$\])]*)\s*(?:(?<!\.)\.|\?\.|->|::)\s*\Z")
_KEYS = {"property_identifier", "hash_key_symbol", "statement_identifier", "value_argument_label"}
"""Kinds of names that are no variables: they collide with none."""
_KEYED = {"keyword_argument", "named_argument", "field_initializer", "keyed_element", "field"}

_NOT_OF_A_CLASS = {"function_definition", "lambda", "argument_list"}
"""What stands in a class's body in Python and has names of its own."""


@dataclass(frozen=True, slots=True)
class EditedPart:
    """A document and the part of it that an edit is about."""

    text: str
    start: int
    end: int
    language: str
    path: str = ""

    @property
    def code(self) -> str:
        """The part."""
        return self.text[self.start : self.end]


def line_of(text: str, offset: int) -> int:
    """The number of the line that holds a character, from 1."""
    return len(_LINE_END.findall(text, 0, offset)) + 1


def rename_changes(instruction: str, where: EditedPart) -> list[Hunk] | None:
    """The changes of the part that an instruction's rename makes; None where it asks for another.

    What is renamed must be a name; other words are left to the model. Raises EditRefused where the
    rename makes no sense, as where the new name exists in the scope.
    """
    wording = rename_wording(instruction, re.sub(r"\r\n?", "\n", where.code))
    if wording is None:
        wording = plain_rename(instruction)
    if wording is None:
        return None
    wording = with_sigils_of(wording, where.language)
    tree = SyntaxTree.of(where.text, where.language, where.path)
    hyphens = tree is not None and tree.grammar in MARKUP
    if tree is not None and _is_read_by_words(wording.old, where, tree):
        tree = None
    known = _NAME if tree else _NAME_OF_MARKUP
    if not all(known.fullmatch(name.lstrip("$@#:")) for name in (wording.old, wording.new)):
        return None
    if wording.old == wording.new:
        raise EditRefused(f"{wording.old[:40]} has that name already; nothing changes")
    code = _code_places(wording, where, tree, hyphens=hyphens)
    places = sorted({*code, *_places_beside_code(wording, where, tree, in_text=not code)})
    if not places:
        raise EditRefused(f"there is no name {wording.old[:40]} in the selected lines")
    hunks = [Hunk(start - where.start, end - where.start, wording.new) for start, end in places]
    if tree is not None:
        _refuse_no_name(wording, hunks, code, where, tree)
    _refuse_collision(wording, code, where, tree, hyphens=hyphens)
    return hunks


def _is_read_by_words(name: str, where: EditedPart, tree: SyntaxTree) -> bool:
    """Whether a rename is about the words of the part: it is prose, or it is marked text, data or
    comments, and no identifier in it has that name."""
    if tree.grammar in PROSE:
        return True
    if tree.identifiers(name, where.start, where.end):
        return False
    return tree.grammar in MARKUP or not tree.has_identifiers(where.start, where.end)


def _code_places(
    wording: RenameWording, where: EditedPart, tree: SyntaxTree | None, *, hyphens: bool
) -> list[Span]:
    """Where the name stands in the code, in order. Raises EditRefused where that is not clear."""
    if tree is None:
        return _words(wording.old, where, hyphens=hyphens)
    found = _identifiers(tree, wording.old, where)
    if not wording.within:
        return found
    scope = function_named(tree, wording.within, where.start, where.end)
    if scope is None:
        raise EditRefused(f"there is no function {wording.within[:40]} in the selected lines")
    return [span for span in found if scope.start <= span[0] < scope.end]


def _places_beside_code(
    wording: RenameWording, where: EditedPart, tree: SyntaxTree | None, *, in_text: bool
) -> list[Span]:
    """Where the name stands in comments, strings and text, as far as they are meant. in_text: text
    between tags is meant."""
    is_meant = {
        Role.COMMENT: wording.comments, Role.STRING: wording.strings, Role.TEXT: in_text
    }  # fmt: skip
    meant = {role for role, does in is_meant.items() if does}
    if tree is None or not meant:
        return []
    pieces = [one for one in tree.pieces(where.start, where.end) if one.role in meant]
    return [
        span
        for span in _words(wording.old, where)
        if any(piece.start <= span[0] < piece.end for piece in pieces)
    ]


def _words(name: str, where: EditedPart, *, hyphens: bool = False) -> list[Span]:
    before, behind = (r"(?<!\w-)", r"(?!-\w)") if hyphens else ("", "")
    word = re.compile(rf"(?<![\w$]){before}{re.escape(name)}(?![\w$]){behind}")
    return [found.span() for found in word.finditer(where.text, where.start, where.end)]


def _identifiers(tree: SyntaxTree, name: str, where: EditedPart) -> list[Span]:
    """Identifiers of a name in the part. In Python, attributes and names of arguments in calls are
    names of other things, as are lifetimes in Rust, unless there is nothing else of that name or it
    is a class's own."""
    found = tree.identifiers(name, where.start, where.end)
    _refuse_unread(tree, name, found, where)
    if tree.grammar == "rust":
        return [span for span in found if where.text[span[0] - 1 : span[0]] != "'"] or found
    if tree.grammar != "python":
        return found
    own = [
        span for span in found if _receiver(where.text, span) is None and not _is_key(tree, span)
    ]
    if not own or any(_is_of_class(tree, span) for span in own):
        return found
    called = _called_with(tree, name, [span for span in found if _is_key(tree, span)], own)
    return sorted([*own, *called])


def _refuse_unread(tree: SyntaxTree, name: str, found: list[Span], where: EditedPart) -> None:
    """Raises EditRefused where the grammar does not tell what a word in the code is."""
    if not tree.has_errors:
        return
    unread = [
        span
        for span in _words(name, where)
        if span not in found and tree.role_at(span[0]) is Role.CODE and _is_near_error(tree, span)
    ]
    if unread:
        line = line_of(where.text, unread[0][0])
        raise EditRefused(
            f"line {line} cannot be read, so {name[:40]} is not renamed; mend it first"
        )


def _is_near_error(tree: SyntaxTree, span: Span) -> bool:
    node = tree.node(*span)
    for _ in range(3):
        if node is not None:
            if node.has_error:
                return True
            node = node.parent
    return False


def _is_of_class(tree: SyntaxTree, span: Span) -> bool:
    node = tree.node(*span)
    outer = node.parent if node is not None else None
    if outer is not None and outer.type == "function_definition":
        outer = outer.parent
    while outer is not None and outer.type not in _NOT_OF_A_CLASS:
        if outer.type == "class_definition":
            return outer.child_by_field_name("name") != node
        outer = outer.parent
    return False


def _called_with(tree: SyntaxTree, name: str, keys: list[Span], own: list[Span]) -> list[Span]:
    """Names of arguments in calls of functions whose parameter is renamed."""
    found = []
    for key in keys:
        node = tree.node(*key)
        call = node.parent.parent.parent if node and node.parent and node.parent.parent else None
        function = call.child_by_field_name("function") if call is not None else None
        if function is None:
            continue
        called = tree.text[tree.index(function.start_byte) : tree.index(function.end_byte)]
        scope = function_named(tree, called, 0, len(tree.text)) if called.isidentifier() else None
        if scope is not None and any(
            scope.start < span[0] < scope.end and _is_parameter(tree, span) for span in own
        ):
            found.append(key)
    return found


def _is_parameter(tree: SyntaxTree, span: Span) -> bool:
    node = tree.node(*span)
    while node is not None and node.type != "block":
        if node.type == "parameters":
            return True
        node = node.parent
    return False


def _receiver(text: str, span: Span) -> str | None:
    found = _MEMBER.search(text, max(0, span[0] - 80), span[0])
    return found.group(1) if found else None


def _is_key(tree: SyntaxTree, span: Span) -> bool:
    node = tree.node(*span)
    if node is None or node.type in _KEYS:
        return node is not None
    parent = node.parent
    return (
        parent is not None
        and parent.type in _KEYED
        and parent.child_count > 1
        and parent.child(0) == node
    )


# A name that is there already


def _refuse_collision(
    wording: RenameWording,
    code: list[Span],
    where: EditedPart,
    tree: SyntaxTree | None,
    *,
    hyphens: bool,
) -> None:
    """Raises EditRefused with the line where the new name stands for something else already."""
    new = wording.new
    taken = _words(new, where, hyphens=hyphens) if tree is None else _colliding(tree, code, new)
    if taken:
        line = line_of(where.text, taken[0][0])
        raise EditRefused(
            f"{new} exists in line {line} already; choose another name for {wording.old}"
        )


def _colliding(tree: SyntaxTree, places: list[Span], new: str) -> list[Span]:
    """Where the new name would come to mean the same as, or hide, what has that name."""
    others = tree.identifiers(new)
    if not others:
        return []
    text = tree.text
    members = {_receiver(text, span) for span in places} - {None}
    renamed = {
        scopes_at(tree, *span)
        for span in places
        if _receiver(text, span) is None and not _is_key(tree, span)
    }
    of_others = {span: scopes_at(tree, *span) for span in others}
    found = []
    for span, scopes in of_others.items():
        receiver = _receiver(text, span)
        if receiver is not None:
            if receiver in members:
                found.append(span)
        elif not _is_key(tree, span) and any(
            _meets(scopes, other, renamed, set(of_others.values())) for other in renamed
        ):
            found.append(span)
    return found


_Scopes = tuple[Scope, ...]


def _meets(new: _Scopes, old: _Scopes, all_old: set[_Scopes], all_new: set[_Scopes]) -> bool:
    """Whether a name in one scope would be confused with one in another, both given from the
    outermost to the innermost."""
    if new == old:
        return True
    if old[: len(new)] == new:
        # The new name stands further out: it matters where the old one comes from further still.
        return any(new[: len(outer)] == outer and outer != new for outer in all_old)
    if new[: len(old)] == old:
        # It stands further in: it matters where it comes from further out than the old one.
        return any(old[: len(outer)] == outer and outer != old for outer in all_new)
    return False


def _refuse_no_name(
    wording: RenameWording, hunks: list[Hunk], code: list[Span], where: EditedPart, tree: SyntaxTree
) -> None:
    refusal = EditRefused(f"{wording.new} cannot be a name here; choose another one")
    if is_keyword(wording.new, tree.grammar):
        raise refusal
    before, start = tree, where.start
    part = SyntaxTree.of(where.code, where.language, where.path)
    if part is not None and not part.has_errors:
        # The part is read as well alone, which is quicker.
        before, start = part, 0
    text = before.text[:start] + apply_hunks(where.code, hunks)
    after = SyntaxTree.of(text + before.text[start + len(where.code) :], where.language, where.path)
    assert after is not None
    found, moved, places = set(after.identifiers(wording.new, start, len(text))), start, set(code)
    for hunk in hunks:
        at = hunk.start + moved
        is_code = (hunk.start + where.start, hunk.end + where.start) in places
        if is_code and (at, at + len(wording.new)) not in found:
            raise refusal
        moved += len(wording.new) - len(wording.old)
    if after.has_errors and not before.has_errors:
        raise refusal
