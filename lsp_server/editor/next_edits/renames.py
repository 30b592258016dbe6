"""Renames the other uses of a name that was changed where it is defined."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.importers import readable_texts
from lsp_server.editor.next_edits.object_keys import object_around, places_of_key
from lsp_server.editor.next_edits.parameters import is_decorated
from lsp_server.editor.next_edits.words import WordChange, changed_word, refuse_many
from lsp_server.shared.errors import EditRefused
from lsp_server.text.syntax.keywords import is_keyword
from lsp_server.text.syntax.members import READ, Members
from lsp_server.text.syntax.name_uses import NameUse, Reference
from lsp_server.text.syntax.nodes import around, child_of, enclosing, kind_of, outside
from lsp_server.text.syntax.references import is_selected, not_renamed, same_meaning
from lsp_server.text.syntax.resolved_names import ResolvedNames, class_around, receiver_of
from lsp_server.text.syntax.roles import MARKUP, PROSE
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit
    from lsp_server.text.syntax.tree import SyntaxTree

_FUNCTION = re.compile(r"function|method|lambda|closure|constructor_d")
_NAME = re.compile(r"[^\W\d]\w*")
Starts = tuple[int, ...]
_FIXTURE = r"(?:\w+\.)?fixture"
_DOCUMENTED = (
    r"^[ \t]*// *(?:(?:A|An|The) )?((?=[A-Z]|\w+ (?:is|are|has|have|can|may|\w\w+[^s\W]s)\b)NAME)\b"
    r"(?!-|\.\w).*\n(?:[ \t]*//.*\n)*[ \t]*(?:(?:func(?: \([^()]*\))?|type|var|const) )?(?=NAME\b)"
)
"""A comment of Go that begins with a name; one with a small letter is a word unless a verb comes
next."""
_PATH = re.compile(r'\s*"(?:[\w.-]+/)*([^\W\d]\w*)(?:/v\d+)?"')
_ASKED = re.compile(r"(?:usefixtures|getfixturevalue)\([^()]*\Z")


@dataclass(frozen=True, slots=True)
class Rename:
    """A name that was changed where it is given."""

    old: str
    new: str
    places: tuple[Reference, ...]
    """Where the old name is left in the text without the change, and is meant."""
    shift: Shift
    is_global: bool
    """Whether the file gives the name to others."""
    owner: str = ""
    """The class whose member it is."""
    is_argument: bool = False
    """Whether calls of that class give it by its name."""
    is_fixture: bool = False
    holder: str = ""
    """The constant object whose key it is, or the namespace that exports it."""
    keys: tuple[str, ...] = ()
    """Those that lead to it from there."""

    @property
    def title(self) -> str:
        """The text that the user is told."""
        return f"rename {self.old} to {self.new}"

    def edits(self) -> tuple[TextEdit[int], ...]:
        """Return the replacements in the text as it is."""
        spans = [(use, self.shift.of(use.span[0]), use.span) for use in self.places]
        return tuple(
            TextEdit(start, start + span[1] - span[0], use.written(self.new), self.title)
            for use, start, span in spans
        )


@dataclass(frozen=True, slots=True)
class Shift:
    """The new offsets of a text in which words were replaced."""

    places: tuple[int, ...]
    by: int

    def of(self, offset: int) -> int:
        """Return where the character after ``offset`` characters is now."""
        return offset + self.by * bisect_left(self.places, offset)


def renamed_by(edit: RecordedEdit) -> str | None:
    """Return the new name of the rename that an edit began, as of :func:`rename_in`."""
    rename = rename_in(edit, before) if (before := edit.names_before()) is not None else None
    return rename.new if rename is not None else None


def refuse_many_uses(edit: RecordedEdit) -> None:
    """Raise WorkTakesTooLong where an edit changes a name that occurs in too many places."""
    if (change := _changed_name(edit)) is not None:
        refuse_many(edit.document.text, change.old, change.new)


def _changed_name(edit: RecordedEdit) -> WordChange | None:
    change = changed_word(edit.old_text, edit.new_text)
    if change is None or not _NAME.fullmatch(change.old) or not _NAME.fullmatch(change.new):
        return None
    return change


def rename_in(edit: RecordedEdit, before: ResolvedNames) -> Rename | None:
    """Return the rename that an edit began; None for none. ``before``: the names without it."""
    change, grammar = _changed_name(edit), before.tree.grammar
    if change is None and grammar not in PROSE | MARKUP:
        return _alias_in(edit, before)
    if change is None or grammar in PROSE or is_keyword(change.new, grammar):
        return None
    changed = tuple(edit.start_offset() + offset for offset, _ in change.places)
    rename = rename_of(before, change.old, change.new, changed)
    if rename is None:
        return None
    uses = tuple(use for use in rename.places if use.start not in changed)
    return replace(rename, places=uses, shift=Shift(changed, len(change.new) - len(change.old)))


def _alias_in(edit: RecordedEdit, before: ResolvedNames) -> Rename | None:
    """Return the rename of the other uses of an import that an edit gave an alias."""
    head, tail = common_ends(edit.old_text, edit.new_text)
    inserted = edit.new_text[head : len(edit.new_text) - tail]
    replaced = edit.old_text[head : len(edit.old_text) - tail]
    if before.tree.grammar == "go":
        alias = re.fullmatch(r"\s*([^\W\d]\w*)\s*", inserted)
        name = _PATH.match(edit.old_text, head)
    else:
        alias = re.fullmatch(r" ?as ([^\W\d]\w*)", inserted)
        name = re.search(r"\bimport\b.*?([^\W\d]\w*)\s*\Z", edit.old_text[:head], re.DOTALL)
    if alias is None or name is None or replaced.strip():
        return None
    if is_keyword(alias[1], before.tree.grammar) or before.uses(alias[1]):
        return None
    start = edit.start_offset() + name.start(1)
    variables = [use for use in before.uses(name[1]) if use.use is NameUse.VARIABLE]
    # An import of Go declares its name without having it.
    scope = next((use.scope for use in variables if use.start == start and use.declares), None)
    uses = tuple(use for use in variables if use.scope == scope and use.start != start)
    is_declared = scope is not None or before.tree.grammar == "go"
    if not is_declared or any(use.declares for use in uses):
        return None
    return Rename(name[1], alias[1], uses, Shift((start,), len(inserted)), is_global=False)


def rename_at(names: ResolvedNames, start: int, end: int, old: str, new: str) -> Rename:
    """Return the rename of what ``old`` means there. Raises EditRefused where that is unclear."""
    if not _NAME.fullmatch(new) or is_keyword(new, names.tree.grammar):
        raise EditRefused(f"{new[:40]} cannot be a name here; choose another one")
    there = {use.scope for use in names.uses(old) if start <= use.start < end}
    if len(there) != 1:
        what = "means more than one thing" if there else "is not a name"
        raise EditRefused(f"{old[:40]} {what} in that line; name a line that gives it")
    declared = [use for use in names.uses(old) if use.declares and use.scope in there]
    if any(use.is_foreign for use in declared):
        raise EditRefused(f"{old} comes from another file; rename it where it is given")
    rename = rename_of(names, old, new, tuple(use.start for use in declared)) if declared else None
    if rename is None:
        raise EditRefused(
            f"the text does not tell all that {old} means there, or {new} is in use; choose "
            "another name, or edit it by hand"
        )
    return rename


def rename_of(before: ResolvedNames, old: str, new: str, changed: Starts) -> Rename | None:
    """Return the rename of what is declared at some places; None if it is unclear or collides."""
    tree, names = before.tree, before.uses(old)
    if tree.grammar in MARKUP:
        # How a script and its template share a name is not read.
        names = [use for use in names if is_selected(use)]
    members = Members(before, by_words=True)
    declared = members.given(old, changed) if tree.grammar in READ else None
    if declared is not None:
        uses = _members_meant(members, before, old, new, changed, declared)
        if declared.use is NameUse.VARIABLE:
            starts = {use.start for use in uses}
            same = same_meaning(tree, names, changed) if uses else []
            uses += [use for use in same if use.start not in starts]
    else:
        uses = same_meaning(tree, names, changed)
        others = before.uses(new) if uses else []
        uses = [] if any(_collides(use, uses[0]) for use in others) else uses
        if uses and tree.grammar == "go":
            uses += [*members.of_embedded(old, old), *members.map_keys(old, uses[0].scope)]
    node = tree.node(min(changed), min(changed) + len(old))
    holder = object_around(tree, node) if declared is None else None
    if holder is not None and (here := before.use_at(holder[0])):
        same = [use for use in before.uses(tree.text_of(holder[0])) if use.scope == here.scope]
        behind = places_of_key(tree, same, holder[1])
        is_taken = not uses and re.search(rf"\b{new}\b", tree.text_of(outside(node, 2)))
        uses += [] if uses else [use for use in before.uses(old) if use.start in changed]
        uses = [] if behind is None or is_taken else [*uses, *behind]
    if not uses or not_renamed(tree, old, uses) is not None:
        return None
    owner = class_around(tree, node) if declared is not None and node is not None else ""
    function = outside(node)
    is_fixture = function is not None and is_decorated(tree, function, _FIXTURE)
    asking = _asking(before, old, new) if is_fixture else []
    uses = sorted([*uses, *asking, *documented(tree, uses, old)], key=lambda use: use.start)
    given = holder[0] if holder is not None else node
    is_global = given is not None and is_given(tree, given) and tree.grammar not in MARKUP
    # ``export { new as old }``: others go on with the old name.
    is_global = is_global and not any(use.after.startswith(" as ") for use in uses)
    is_argument = bool(owner) and declared is not None and declared.receiver is None
    shift, around_it = Shift(changed, 0), (tree.text_of(given), holder[1]) if holder else ("", ())
    flags = is_global, owner, is_argument, is_fixture
    return Rename(old, new, tuple(uses), shift, *flags, *around_it)


def _asking(names: ResolvedNames, name: str, new: str) -> list[Reference]:
    """Return the places where tests and fixtures of pytest ask for a fixture by its name."""
    tree, uses, scopes = names.tree, names.uses(name), set()
    for use in (use for use in uses if use.declares):
        function = enclosing(use.node, "^function_d", "^(?:block|module|(?:typed_)?default_p)")
        own = tree.text_of(child_of(function, "name"))
        is_test = own.startswith("test") or (function and is_decorated(tree, function, _FIXTURE))
        is_given = function and is_decorated(tree, function, rf"[\w.]*parametrize.*?\b{name}\b")
        scopes |= {use.scope} if is_test and own != name and not is_given else set()
    asking = [use for use in uses if use.scope in scopes]
    if any(_collides(use, each) for use in names.uses(new) for each in asking):
        return []
    for match in re.finditer(rf"""(?<=["']){name}(?=["'])""", tree.text):
        is_asked = _ASKED.search(tree.text[: match.start() - 1])
        asking += [Reference(*match.span(), NameUse.KEY)] if is_asked else []
    return asking


def documented(tree: SyntaxTree, uses: Iterable[Reference], name: str) -> Iterator[Reference]:
    """Yield where comments of Go begin with the name of what is declared below them."""
    declared = {use.start for use in uses if use.declares and tree.grammar == "go"
                and kind_of(outside(use.node)) != "expression_list"}  # fmt: skip
    finder = re.compile(_DOCUMENTED.replace("NAME", name), re.MULTILINE)
    for match in finder.finditer(tree.text) if declared else ():
        if match.end() in declared:
            yield Reference(*match.span(1), NameUse.KEY)


def fixture_edits(
    rename: Rename, folder: Path, module: str, opened: Mapping[str, str]
) -> Iterator[tuple[str, str, TextEdit[int]]]:
    """Yield paths, texts and edits of files below a ``conftest.py`` whose fixture is renamed."""
    texts = {path: text for path, text in readable_texts(folder, opened, (".py",))
             if path.startswith(module.removesuffix("conftest.py")) and path != module}  # fmt: skip
    own = (path for path, text in texts.items() if re.search(rf"\bdef {rename.old}\(", text))
    nearer = tuple(path.removesuffix("conftest.py") for path in own)
    pair = rename.old, rename.new
    for path, text in texts.items():
        names = ResolvedNames.of(text, "python") if rename.old in text else None
        for use in _asking(names, *pair) if names and not path.startswith(nearer) else ():
            yield path, text, TextEdit(*use.span, rename.new, rename.title)


def is_given(tree: SyntaxTree, name: Node) -> bool:
    """Return whether other files may use what a name declares: no variable of a function."""
    outer = list(around(name))
    inside = any(_FUNCTION.search(node.type) for node in outer[1:]) and receiver_of(name) is None
    is_script = tree.grammar in ("javascript", "typescript", "tsx")
    own = (tree.text_of(child_of(node, "name")) for node in outer)
    words = "|".join(re.escape(word) for word in (tree.text_of(name), *own) if word)
    by_list = rf"\{{[^}}]*?\b(?<! as )(?:{words})\s*(?:,[^}}]*)?\}}(?!\s*from)"
    listed = rf"^export\s+(?:default\s+(?:{words})\b|{by_list})"
    is_listed = is_script and re.search(listed, tree.text, re.MULTILINE)
    is_inner = enclosing(outside(name, 2), "^internal_module$", "body$|object_type") is not None
    is_exported = is_listed or any(node.type == "export_statement" for node in outer)
    return not (inside or is_inner or "private" in name.type) and bool(is_exported or not is_script)


def _members_meant(
    members: Members, before: ResolvedNames, old: str, new: str, changed: Starts, member: Reference
) -> list[Reference]:
    """Return all places of a class's member; none where one is unclear, or ``new`` is in use."""
    tree, node = before.tree, member.node
    owner = class_around(tree, node) if node is not None else ""
    if not owner:
        return []
    places, is_private = members.places(old, owner), "private" in kind_of(node)
    # ``#name`` is another member than ``name``.
    meant, unclear = ([use for use in some if ("private" in kind_of(use.node)) == is_private]
                      for some in (places.meant, places.unclear))  # fmt: skip
    declaring = (use for use in meant if use.declares and use.receiver is None)
    declared = [use for use in declaring if use.node and class_around(tree, use.node) == owner]
    is_pair = _is_pair(tree, declared)
    is_again = tree.grammar != "python" and len(declared) > len(changed) and not is_pair
    first = next((use for use in meant if use.declares), member)
    is_first = first.start in changed or tree.grammar == "go" or is_pair
    if unclear or not is_first or is_again:
        return []
    others = [use for each in members.sharing(owner, old)
              for use in members.places(new, each).meant if use.declares]  # fmt: skip
    if tree.grammar == "java":
        # A field and a method may have one name.
        is_method, *same = ("method" in kind_of(outside(use.node)) for use in (member, *others))
        others = [use for use, is_like in zip(others, same, strict=True) if is_like == is_method]
    is_new = not others or _is_pair(tree, [member, *others])
    return meant if is_new else []


def _is_pair(tree: SyntaxTree, declared: list[Reference]) -> bool:
    """Return whether two places are a getter and its setter, which are one member."""
    heads = (tree.text_of(outside(use.node)).partition("(")[0] for use in declared)
    words = sorted(word for head in heads for word in head.split()[-2:-1])
    return words == ["get", "set"]


def _collides(use: Reference, renamed: Reference) -> bool:
    """Return whether the new name is in use where the old one is meant."""
    scope = renamed.scope
    if renamed.use is not NameUse.VARIABLE or scope is None:
        return use.scope == scope
    is_other = use.use is NameUse.KEY or (use.use is NameUse.MEMBER and use.scope == scope)
    return not is_other and use.receiver is None and scope.start <= use.start < scope.end
