"""Exact renames by the syntax tree; whole words in marked text and prose. What cannot be told apart
is refused with its line or marked; so is a new name that exists already, or cannot be a name."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.editing.rename_wordings import (
    RenameWording,
    plain_rename,
    rename_wording,
    with_sigils_of,
)
from lsp_server.shared.errors import EditRefused
from lsp_server.text.syntax.keywords import is_keyword
from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.references import references
from lsp_server.text.syntax.roles import MARKUP, PROSE, Role
from lsp_server.text.syntax.scopes import Scope, ScopeFinder, function_named
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

Span = tuple[int, int]

_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME = re.compile(r"[^\W\d][\w$]*")
_NAME_OF_MARKUP = re.compile(r"[^\W\d][\w$]*(?:[-.:][\w$]+)*")
"""Elements, classes and words of prose may have hyphens in them."""
MAY_BE_ANOTHER = "may be another one of that name"
"""The note of what is renamed if the user says so."""


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

    def line(self, offset: int) -> int:
        """The number of the line that holds a character of the document, from 1."""
        return len(_LINE_END.findall(self.text, 0, offset)) + 1


def rename_changes(instruction: str, where: EditedPart) -> list[TextEdit[int]] | None:
    """The changes of the part that an instruction's rename makes; None where it asks for another.

    What is renamed must be a name; other words are left to the model. What may be another thing of
    that name has a note. Raises EditRefused where the rename makes no sense, as where the new name
    exists in the scope, and where the name has several meanings.
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
    if tree is None:
        code: list[Reference] = []
        hunks = _hunks(_words(wording.old, where, hyphens=hyphens), wording, where)
    else:
        code = _references(wording, where, tree)
        marked = _marked(code)
        hunks = [_hunk(one, wording, where, is_marked=one in marked) for one in code]
        beside = _places_beside_code(wording, where, tree, in_text=not code)
        known_starts = {hunk.start for hunk in hunks}
        hunks += [one for one in _hunks(beside, wording, where) if one.start not in known_starts]
        hunks.sort(key=lambda hunk: hunk.start)
    if not hunks:
        raise EditRefused(f"there is no name {wording.old[:40]} in the selected lines")
    if tree is not None:
        _refuse_no_name(wording, hunks, code, where, tree)
    _refuse_collision(wording, code, where, tree, hyphens=hyphens)
    return hunks


def doubt_about_rename(hunks: list[TextEdit[int]], where: EditedPart) -> str:
    """What to look at: lines with notes; empty for nothing."""
    lines = dict.fromkeys(where.line(where.start + one.start) for one in hunks if one.note)
    if not lines:
        return ""
    named = ", ".join(map(str, list(lines)[:5])) + (", …" if len(lines) > 5 else "")
    return f"line {named}: {MAY_BE_ANOTHER}"


def _hunk(
    one: Reference, wording: RenameWording, where: EditedPart, *, is_marked: bool
) -> TextEdit[int]:
    start, end = one.span
    note = MAY_BE_ANOTHER if is_marked else ""
    return TextEdit(start - where.start, end - where.start, one.written(wording.new), note)


def _hunks(spans: list[Span], wording: RenameWording, where: EditedPart) -> list[TextEdit[int]]:
    return [TextEdit(start - where.start, end - where.start, wording.new) for start, end in spans]


def _is_read_by_words(name: str, where: EditedPart, tree: SyntaxTree) -> bool:
    """Whether a rename is about the words of the part: it is prose, or it is marked text, data or
    comments, and no identifier in it has that name."""
    if tree.grammar in PROSE:
        return True
    if tree.identifiers(name, where.start, where.end):
        return False
    return tree.grammar in MARKUP or not tree.has_identifiers(where.start, where.end)


def _places_beside_code(
    wording: RenameWording, where: EditedPart, tree: SyntaxTree, *, in_text: bool
) -> list[Span]:
    """Where the name occurs in comments, strings and text, as far as they are meant. in_text: text
    between tags is meant."""
    is_meant = {
        Role.COMMENT: wording.comments, Role.STRING: wording.strings, Role.TEXT: in_text
    }  # fmt: skip
    meant = {role for role, does in is_meant.items() if does}
    if not meant:
        return []
    pieces = [one for one in tree.pieces(where.start, where.end) if one.role in meant]
    starts = [piece.start for piece in pieces]
    return [
        span
        for span in _words(wording.old, where)
        if (number := bisect_right(starts, span[0]) - 1) >= 0 and span[0] < pieces[number].end
    ]


def _words(name: str, where: EditedPart, *, hyphens: bool = False) -> list[Span]:
    before, behind = (r"(?<!\w-)", r"(?!-\w)") if hyphens else ("", "")
    word = re.compile(rf"(?<![\w$]){before}{re.escape(name)}(?![\w$]){behind}")
    return [found.span() for found in word.finditer(where.text, where.start, where.end)]


# What is meant


def _references(wording: RenameWording, where: EditedPart, tree: SyntaxTree) -> list[Reference]:
    """The occurrences in the part that are renamed, in order. Raises EditRefused where it is not
    clear what is meant."""
    names = references(tree, wording.old)
    inside = [one for one in names if where.start <= one.span[0] and one.span[1] <= where.end]
    _refuse_unread(tree, wording.old, [(one.start, one.end) for one in inside], where)
    if wording.within:
        scope = function_named(tree, wording.within, where.start, where.end)
        if scope is None:
            raise EditRefused(f"there is no function {wording.within[:40]} in the selected lines")
        inside = [one for one in inside if scope.start <= one.start < scope.end]
    chosen = _chosen(wording, inside, where)
    meant = {one.scope for one in chosen if one.scope is not None}
    keys = [one for one in inside if one.use is NameUse.KEY and one.scope in meant]
    for one in names:
        is_same = one.scope is None or one.scope in meant
        if one.use is NameUse.FOREIGN and is_same and chosen[0].use is NameUse.VARIABLE:
            raise EditRefused(
                f"line {where.line(one.start)} takes {wording.old} as it is called elsewhere and "
                "cannot call it otherwise; change that line first"
            )
    return sorted({*chosen, *keys}, key=lambda one: one.start)


def _chosen(wording: RenameWording, names: list[Reference], where: EditedPart) -> list[Reference]:
    """The variables of the name, or where there are none, the members and keys; what the
    instruction says decides where there are both."""
    variables = [one for one in names if one.use is NameUse.VARIABLE]
    members = [one for one in names if one.use in (NameUse.MEMBER, NameUse.KEY)]
    if wording.is_of_member and members:
        return members
    declared = [one for one in members if one.declares or one.receiver is None]
    declared = [one for one in declared if one.use is NameUse.MEMBER]
    if not variables or not declared or wording.is_of_variable:
        return variables or members
    name, first, second = wording.old, variables[0].start, declared[0].start
    raise EditRefused(
        f"{name} is a variable in line {where.line(first)} and a member in line "
        f"{where.line(second)}; say which, as in: rename the variable {name} to {wording.new}"
    )


def _marked(chosen: list[Reference]) -> set[Reference]:
    """The members of which it cannot be told whether they are those that are meant."""
    members = [one for one in chosen if one.use is not NameUse.VARIABLE]
    unknown = {one for one in members if one.scope is None and not one.declares}
    unknown = {one for one in unknown if one.use is NameUse.KEY or one.receiver is not None}
    is_clear = len(unknown) == len(members) and len({one.receiver for one in unknown}) < 2
    return set() if is_clear or len(members) < len(chosen) else unknown


def _refuse_unread(tree: SyntaxTree, name: str, found: list[Span], where: EditedPart) -> None:
    """Raises EditRefused where the grammar does not tell what a word in the code is."""
    if not tree.has_errors:
        return
    known = set(found)
    unread = [
        span
        for span in _words(name, where)
        if span not in known and tree.role_at(span[0]) is Role.CODE and _is_near_error(tree, span)
    ]
    if unread:
        line = where.line(unread[0][0])
        raise EditRefused(
            f"line {line} cannot be read, so {name[:40]} is not renamed; fix it first"
        )


def _is_near_error(tree: SyntaxTree, span: Span) -> bool:
    node = tree.node(*span)
    for _ in range(3):
        if node is not None:
            if node.has_error:
                return True
            node = node.parent
    return False


# A name that is there already


def _refuse_collision(
    wording: RenameWording,
    code: list[Reference],
    where: EditedPart,
    tree: SyntaxTree | None,
    *,
    hyphens: bool,
) -> None:
    """Raises EditRefused with the line where the new name stands for something else already."""
    new = wording.new
    taken = (
        [start for start, _ in _words(new, where, hyphens=hyphens)]
        if tree is None
        else _colliding(tree, code, new)
    )
    if taken:
        raise EditRefused(
            f"{new} exists in line {where.line(taken[0])} already; choose another name for "
            f"{wording.old}"
        )


_Scopes = tuple[Scope, ...]


def _colliding(tree: SyntaxTree, renamed: list[Reference], new: str) -> list[int]:
    """Where the new name would come to mean the same as, or hide, what has that name."""
    others = references(tree, new)
    if not others:
        return []
    bare = [one for one in renamed if _is_bare(one)]
    finder = ScopeFinder(tree)
    old_scopes = {finder.at(one.start, one.end) for one in bare}
    new_scopes = {one: finder.at(one.start, one.end) for one in others if _is_bare(one)}
    meeting = _Meeting(old_scopes, set(new_scopes.values()))
    receivers = {one.receiver for one in renamed} - {None, ""}
    classes = {one.scope for one in renamed if one.use is NameUse.MEMBER} - {None}
    return [
        one.start
        for one in others
        if (one in new_scopes and meeting.confuses(new_scopes[one]))
        or one.receiver in receivers
        or (one.use is NameUse.MEMBER and one.scope in classes)
    ]


def _is_bare(one: Reference) -> bool:
    return one.use is NameUse.VARIABLE or (one.use is NameUse.MEMBER and one.receiver is None)


class _Meeting:
    """The scopes of two names, each given from the outermost to the innermost."""

    def __init__(self, old: set[_Scopes], new: set[_Scopes]) -> None:
        self._old = old
        self._new = new
        self._around_old = {one[:depth] for one in old for depth in range(len(one))}

    def confuses(self, new: _Scopes) -> bool:
        """Whether the new name in these scopes would be confused with the old one."""
        if new in self._old:
            return True
        if new in self._around_old and _has_outer(new, self._old):
            # It is further out: it matters where the old one comes from further still.
            return True
        # It is further in: it matters where it comes from further out than the old one.
        inner = [new[:depth] for depth in range(len(new)) if new[:depth] in self._old]
        return any(_has_outer(one, self._new) for one in inner)


def _has_outer(scopes: _Scopes, others: set[_Scopes]) -> bool:
    return any(scopes[:depth] in others for depth in range(len(scopes)))


def _refuse_no_name(
    wording: RenameWording,
    hunks: list[TextEdit[int]],
    code: list[Reference],
    where: EditedPart,
    tree: SyntaxTree,
) -> None:
    refusal = EditRefused(f"{wording.new} cannot be a name here; choose another one")
    if is_keyword(wording.new, tree.grammar):
        raise refusal
    before, start = tree, where.start
    if tree.grammar not in MARKUP and len(where.code) < len(where.text):
        part = SyntaxTree.of(where.code, where.language, where.path)
        if part is not None and not part.has_errors:
            # The part is read as well alone, which is quicker.
            before, start = part, 0
    text = before.text[:start] + apply_hunks(where.code, hunks)
    after = SyntaxTree.of(text + before.text[start + len(where.code) :], where.language, where.path)
    assert after is not None
    found, moved = set(after.identifiers(wording.new, start, len(text))), start
    names = set(tree.identifiers(wording.old, where.start, where.end))
    lead = {
        one.span[0] - where.start: len(one.before) for one in code if (one.start, one.end) in names
    }
    for hunk in hunks:
        at = hunk.start + moved + lead.get(hunk.start, 0)
        if hunk.start in lead and (at, at + len(wording.new)) not in found:
            raise refusal
        moved += len(hunk.text) - (hunk.end - hunk.start)
    if after.has_errors and not before.has_errors:
        raise refusal
