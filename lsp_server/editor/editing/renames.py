"""Exact renames by the syntax tree, and of whole words in marked text and prose. Ambiguous
occurrences are refused with their line, or marked; so is a new name that exists already, or cannot
be a name."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from typing import TypeAlias

from lsp_server.editor.editing.hunks import apply_hunks
from lsp_server.editor.editing.rename_wordings import (
    RenameWording,
    plain_rename,
    rename_wording,
    with_sigils_of,
)
from lsp_server.shared.errors import EditRefused
from lsp_server.text.syntax.keywords import is_keyword
from lsp_server.text.syntax.members import READ, MemberPlaces, Members
from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import around
from lsp_server.text.syntax.references import STYLES, is_selected, not_renamed
from lsp_server.text.syntax.resolved_names import ResolvedNames, class_around
from lsp_server.text.syntax.roles import MARKUP, PROSE, Role
from lsp_server.text.syntax.scopes import Scope, ScopeFinder, function_named
from lsp_server.text.syntax.tree import SyntaxTree
from lsp_server.text.text_edit import TextEdit

Span = tuple[int, int]
FileEdit: TypeAlias = tuple[str, str, TextEdit[int]]
"""An edit of another file, behind its path and its text."""

_LINE_END = re.compile(r"\r\n|\r|\n")
_NAME = re.compile(r"[^\W\d][\w$]*")
_NAME_OF_MARKUP = re.compile(r"[^\W\d][\w$]*(?:[-.:][\w$]+)*")
"""Elements, classes and words of prose may have hyphens in them."""
MAY_BE_ANOTHER = "may be another one of that name"
"""The note of hunks that are applied only if the user confirms them."""


@dataclass(frozen=True, slots=True)
class EditedPart:
    """A document and the range of it that an edit may change."""

    text: str
    start: int
    end: int
    language: str
    path: str = ""

    @property
    def code(self) -> str:
        """The text of the range."""
        return self.text[self.start : self.end]

    def line(self, offset: int) -> int:
        """Return the number of the line, from 1, that holds the character at ``offset``."""
        return len(_LINE_END.findall(self.text, 0, offset)) + 1


@dataclass(frozen=True, slots=True)
class AskedRename:
    """A rename by instruction: ``hunks`` by offsets from the start of the edited range, some of
    them outside of it, and ``doubt``, a sentence that names lines that may mean something else.
    ``declared``: the places in the document that give the name its meaning. ``others``: the edits
    of other files, each behind its file's path and text."""

    hunks: list[TextEdit[int]]
    doubt: str = ""
    old: str = ""
    new: str = ""
    declared: tuple[int, ...] = ()
    others: tuple[FileEdit, ...] = ()

    def moved(self, by: int) -> list[TextEdit[int]]:
        """Return the hunks in a text with ``by`` more characters before the range."""
        return [replace(hunk, start=hunk.start + by, end=hunk.end + by) for hunk in self.hunks]

    def code(self, where: EditedPart) -> str:
        """Return the range, renamed."""
        length = where.end - where.start
        return apply_hunks(where.code, [hunk for hunk in self.hunks if 0 <= hunk.start < length])


def rename_changes(instruction: str, where: EditedPart) -> AskedRename | None:
    """Return the rename that ``instruction`` asks for; None if it asks for something else, or for
    words that are not names, which are left to the model.

    What the range renames is renamed in all of the document: hunks may lie outside of the range.
    Occurrences that may be another thing of that name have a note. Raises EditRefused if the new
    name exists in the scope, or the old one has several meanings.
    """
    code = re.sub(r"\r\n?", "\n", where.code)
    wording = rename_wording(instruction, code) or plain_rename(instruction)
    if wording is None:
        return None
    wording = with_sigils_of(wording, where.language)
    names = ResolvedNames.of(where.text, where.language, where.path)
    grammar = names.tree.grammar if names is not None else ""
    if grammar in STYLES and re.match(r"(?i)\W*(?:please )?change\b", instruction):
        # A property of a style sheet gets another value: nobody can give it another name.
        return None
    hyphens = grammar in MARKUP | STYLES
    if names is not None and _is_read_by_words(wording.old, where, names):
        names = None
    name_pattern = _NAME if names and not hyphens else _NAME_OF_MARKUP
    if not all(name_pattern.fullmatch(name.lstrip("$@#:")) for name in (wording.old, wording.new)):
        return None
    if wording.old == wording.new:
        raise EditRefused(f"{wording.old[:40]} has that name already; nothing changes")
    uses: list[Reference] = []
    unclear: list[Reference] = []
    if names is None:
        hunks = _hunks(_words(wording.old, where, hyphens=hyphens), wording, where)
    else:
        uses = _references(wording, where, names)
        marked = _marked(uses)
        beside = _places_beside_code(wording, where, names.tree, in_text=not uses)
        outside, unclear = _outside(wording, uses, where, names)
        uses += outside
        hunks = [_hunk(use, wording, where, is_marked=use in marked) for use in uses]
        known_starts = {hunk.start for hunk in hunks}
        hunks += [use for use in _hunks(beside, wording, where) if use.start not in known_starts]
        hunks.sort(key=lambda hunk: hunk.start)
        offset = not_renamed(names.tree, wording.old, uses) if not wording.strings else None
        if offset is not None:
            line, old = f"line {where.line(offset)}", wording.old[:40]
            if names.tree.text[offset] == "&":
                raise EditRefused(f"{line} makes another name of {old}; write that one out first")
            raise EditRefused(f"{line} has {old}, too; select it as well, or ask for strings, too")
    if not hunks:
        raise EditRefused(f"there is no name {wording.old[:40]} in the selected lines")
    if names is not None:
        _refuse_no_name(wording, hunks, uses, where, names.tree)
    _refuse_collision(wording, uses, where, names, hyphens=hyphens)
    noted = _lines((where.start + hunk.start for hunk in hunks if hunk.note), where)
    other = _lines((use.start for use in unclear), where, f"{wording.old} stays, ")
    declared = tuple(use.start for use in uses if use.declares)
    doubt = "; ".join(filter(None, (noted, other)))
    return AskedRename(hunks, doubt, wording.old, wording.new, declared)


def told_elsewhere(old: str, uses: Sequence[FileEdit], *, are_renamed: bool = False) -> str:
    """Return a sentence that names the first use of ``old`` in another file, and says that it stays
    or that all ``are_renamed``; empty without any."""
    if not uses:
        return ""
    path, text, edit = uses[0]
    line = EditedPart(text, 0, 0, "").line(edit.start)
    more = f", and {len(uses) - 1} more" if len(uses) > 1 else ""
    if are_renamed:
        return f"{path} line {line}{more}: {old} is renamed in other files, too"
    return f"{path} line {line}{more}: {old} stays in other files; rename it there, too"


def _lines(offsets: Iterable[int], where: EditedPart, stays: str = "") -> str:
    """Return a sentence about the lines of places that may be of another name; empty without."""
    lines = list(dict.fromkeys(str(where.line(offset)) for offset in offsets))
    named = ", ".join(lines[:5]) + ", …" * (len(lines) > 5)
    return f"line {named}: {stays}{MAY_BE_ANOTHER}" if lines else ""


def _outside(
    wording: RenameWording, renamed: list[Reference], where: EditedPart, names: ResolvedNames
) -> tuple[list[Reference], list[Reference]]:
    """Return the places outside of the range that mean the ``renamed`` ones, and others there that
    may do so."""
    scopes = {use.scope for use in renamed if use.scope is not None and not is_selected(use)}
    if wording.within or not scopes:
        return [], []
    inside = range(where.start, where.end)
    same = {use.start: use for use in names.uses(wording.old) if use.scope in scopes}
    starts = [start for start, use in same.items() if use.declares]
    members = Members(names, by_words=True)
    member = members.given(wording.old, starts) if names.tree.grammar in READ else None
    owner = class_around(names.tree, member.node) if member and member.node else ""
    of_class = members.places(wording.old, owner) if owner else MemberPlaces((), ())
    same |= {use.start: use for use in of_class.meant}
    others = [use for use in of_class.unclear if use.start not in {*same, *inside}]
    return [use for start, use in sorted(same.items()) if start not in inside], others


def _hunk(
    use: Reference, wording: RenameWording, where: EditedPart, *, is_marked: bool
) -> TextEdit[int]:
    start, end = use.span
    note = MAY_BE_ANOTHER if is_marked else ""
    return TextEdit(start - where.start, end - where.start, use.written(wording.new), note)


def _hunks(spans: list[Span], wording: RenameWording, where: EditedPart) -> list[TextEdit[int]]:
    return [TextEdit(start - where.start, end - where.start, wording.new) for start, end in spans]


def _is_read_by_words(name: str, where: EditedPart, names: ResolvedNames) -> bool:
    """Return True if words are renamed instead of identifiers: the range is prose, or it is marked
    text, data or comments without an identifier ``name``."""
    tree = names.tree
    if tree.grammar in PROSE:
        return True
    if tree.identifiers(name, where.start, where.end) or any(map(is_selected, names.uses(name))):
        return False
    return tree.grammar in MARKUP or not tree.has_identifiers(where.start, where.end)


def _places_beside_code(
    wording: RenameWording, where: EditedPart, tree: SyntaxTree, *, in_text: bool
) -> list[Span]:
    """Return the spans of the name in comments and strings if the instruction includes them, and
    with ``in_text`` in the text between tags."""
    are_meant = wording.comments, wording.strings, in_text
    roles = {*compress((Role.COMMENT, Role.STRING, Role.TEXT), are_meant)}
    if not roles:
        return []
    pieces = [piece for piece in tree.pieces(where.start, where.end) if piece.role in roles]
    starts = [piece.start for piece in pieces]
    return [
        span
        for span in _words(wording.old, where)
        if (number := bisect_right(starts, span[0]) - 1) >= 0 and span[0] < pieces[number].end
    ]


def _words(name: str, where: EditedPart, *, hyphens: bool = False) -> list[Span]:
    before, after = (r"(?<!\w-)", r"(?!-\w)") if hyphens else ("", "")
    word = re.compile(rf"(?<![\w$]){before}{re.escape(name)}(?![\w$]){after}")
    return [match.span() for match in word.finditer(where.text, where.start, where.end)]


# What is meant


def _references(wording: RenameWording, where: EditedPart, names: ResolvedNames) -> list[Reference]:
    """Return the references in the range that are renamed, in order. Raises EditRefused if the
    instruction is ambiguous."""
    uses, tree = names.uses(wording.old), names.tree
    inside = [use for use in uses if where.start <= use.span[0] and use.span[1] <= where.end]
    _refuse_unread(tree, wording.old, [(use.start, use.end) for use in inside], where)
    if wording.within:
        scope = function_named(tree, wording.within, where.start, where.end)
        if scope is None:
            raise EditRefused(f"there is no function {wording.within[:40]} in the selected lines")
        inside = [use for use in inside if scope.start <= use.start < scope.end]
    _refuse_doubtful(wording.old, inside, where)
    chosen = _chosen(wording, inside, where)
    scopes = {use.scope for use in chosen if use.scope is not None}
    keys = [use for use in inside if use.use is NameUse.KEY and use.scope in scopes]
    # Without a variable all may be of other files.
    is_variable = any(use.use in (NameUse.VARIABLE, NameUse.FOREIGN) for use in chosen or inside)
    for use in uses:
        is_same = use.scope is None or use.scope in scopes
        if use.use is NameUse.FOREIGN and is_same and is_variable:
            raise EditRefused(
                f"line {where.line(use.start)} takes {wording.old} as it is called elsewhere "
                "and cannot call it otherwise; change that line first"
            )
    return sorted({*chosen, *keys}, key=lambda use: use.start)


def _refuse_doubtful(name: str, names: list[Reference], where: EditedPart) -> None:
    """Raise EditRefused where the language's bindings are not read, and some of its names are
    variables and others may be members or keys."""
    doubtful = [use for use in names if use.is_guessed and use.use is not NameUse.VARIABLE]
    if doubtful and any(use.use is NameUse.VARIABLE for use in names):
        lines = dict.fromkeys(str(where.line(use.start)) for use in doubtful)
        raise EditRefused(
            f"{name[:40]} may be a member or a key in line {', '.join(lines)}; select other lines"
        )


def _chosen(wording: RenameWording, names: list[Reference], where: EditedPart) -> list[Reference]:
    """Return the variables of that name or, without any, the members and keys. If there are both,
    the instruction's wording decides; raises EditRefused if it does not."""
    variables = [use for use in names if use.use is NameUse.VARIABLE]
    members = [use for use in names if use.use in (NameUse.MEMBER, NameUse.KEY)]
    if wording.is_of("member") and members:
        return members
    if selected := [use for use in members if is_selected(use)]:
        return variables or selected
    declared = [use for use in members if use.declares or use.receiver is None]
    declared = [use for use in declared if use.use is NameUse.MEMBER]
    if not variables or not declared or wording.is_of("variable"):
        return variables or members
    name, first, second = wording.old, variables[0].start, declared[0].start
    raise EditRefused(
        f"{name} is a variable in line {where.line(first)} and a member in line "
        f"{where.line(second)}; say which, as in: rename the variable {name} to {wording.new}"
    )


def _marked(chosen: list[Reference]) -> set[Reference]:
    """Return the members that may belong to another class than the renamed one."""
    members = [use for use in chosen if use.use is not NameUse.VARIABLE]
    unknown = {use for use in members if use.scope is None and not use.declares}
    unknown = {use for use in unknown if use.use is NameUse.KEY or use.receiver is not None}
    is_clear = len(unknown) == len(members) and len({use.receiver for use in unknown}) < 2
    return set() if is_clear or len(members) < len(chosen) else unknown


def _refuse_unread(tree: SyntaxTree, name: str, spans: list[Span], where: EditedPart) -> None:
    """Raise EditRefused if the name stands in code that the grammar cannot read."""
    if not tree.has_errors:
        return
    read_spans = set(spans)
    unread = [
        span
        for span in _words(name, where)
        if span not in read_spans
        and tree.role_at(span[0]) is Role.CODE
        and _is_near_error(tree, span)
    ]
    if unread:
        line = where.line(unread[0][0])
        raise EditRefused(
            f"line {line} cannot be read, so {name[:40]} is not renamed; fix it first"
        )


def _is_near_error(tree: SyntaxTree, span: Span) -> bool:
    node = tree.node(*span)
    near = [] if node is None else [node, *islice(around(node), 2)]
    return any(node.has_error for node in near)


# A name that is there already


def _refuse_collision(
    wording: RenameWording,
    code: list[Reference],
    where: EditedPart,
    names: ResolvedNames | None,
    *,
    hyphens: bool,
) -> None:
    """Raise EditRefused with the line in which the new name means something else already."""
    new = wording.new
    collisions = [start for start, _ in _words(new, where, hyphens=hyphens)]
    if names is not None:
        collisions = _colliding(names, code, new)
    if collisions:
        raise EditRefused(
            f"{new} exists in line {where.line(collisions[0])} already; choose another name for "
            f"{wording.old}"
        )


_Scopes = tuple[Scope, ...]


def _colliding(names: ResolvedNames, renamed: list[Reference], new: str) -> list[int]:
    """Return the offsets of uses of ``new`` that the rename would capture or shadow."""
    others = names.uses(new)
    if not others:
        return []
    bare = [use for use in renamed if _is_bare(use)]
    finder = ScopeFinder(names.tree)
    old_scopes = {finder.at(use.start, use.end) for use in bare}
    new_scopes = {use: finder.at(use.start, use.end) for use in others if _is_bare(use)}
    meeting = _Meeting(old_scopes, set(new_scopes.values()))
    receivers = {use.receiver for use in renamed} - {None, ""}
    classes = {use.scope for use in renamed if use.use is not NameUse.VARIABLE} - {None}
    return [
        use.start
        for use in others
        if (use in new_scopes and meeting.confuses(new_scopes[use]))
        or use.receiver in receivers
        or (use.use is not NameUse.VARIABLE and use.scope in classes)
    ]


def _is_bare(use: Reference) -> bool:
    return use.use is NameUse.VARIABLE or (use.use is NameUse.MEMBER and use.receiver is None)


class _Meeting:
    """The scopes of two names, each given from the outermost to the innermost."""

    def __init__(self, old: set[_Scopes], new: set[_Scopes]) -> None:
        self._old = old
        self._new = new
        self._around_old = {scopes[:depth] for scopes in old for depth in range(len(scopes))}

    def confuses(self, new: _Scopes) -> bool:
        """Return True if a use of the new name in these scopes would be confused with the renamed
        one."""
        if new in self._old:
            return True
        if new in self._around_old and _has_outer(new, self._old):
            # It is further out: it matters where the old one comes from further still.
            return True
        # It is further in: it matters where it comes from further out than the old one.
        inner = [new[:depth] for depth in range(len(new)) if new[:depth] in self._old]
        return any(_has_outer(scopes, self._new) for scopes in inner)


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
    first = min(0, hunks[0].start)
    last = max([where.end - where.start, hunks[-1].end])
    hunks = AskedRename(hunks).moved(-first)
    where = replace(where, start=where.start + first, end=where.start + last)
    before, start = tree, where.start
    if tree.grammar not in MARKUP and len(where.code) < len(where.text):
        selection = SyntaxTree.of(where.code, where.language, where.path)
        if selection is not None and not selection.has_errors:
            # The part is read as well alone, which is quicker.
            before, start = selection, 0
    text = before.text[:start] + apply_hunks(where.code, hunks)
    after = SyntaxTree.of(text + before.text[start + len(where.code) :], where.language, where.path)
    assert after is not None
    spans, moved = set(after.identifiers(wording.new, start, len(text))), start
    names = set(tree.identifiers(wording.old, where.start, where.end))
    lead = {
        use.span[0] - where.start: len(use.before) for use in code if (use.start, use.end) in names
    }
    for hunk in hunks:
        offset = hunk.start + moved + lead.get(hunk.start, 0)
        if hunk.start in lead and (offset, offset + len(wording.new)) not in spans:
            raise refusal
        moved += len(hunk.text) - (hunk.end - hunk.start)
    if after.has_errors and not before.has_errors:
        raise refusal
