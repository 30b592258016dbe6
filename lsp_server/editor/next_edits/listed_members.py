"""Tables and switches that list all members of an enum, a union or constants of one type: a member
that is added is offered its entry, copied from that of the member before it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.renames import is_given
from lsp_server.text.syntax.nodes import around, child_of, kind_of
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit
    from lsp_server.text.syntax.tree import SyntaxTree

FEWEST = 2
"""Members that a table lists before it is one of all of them."""
_TABLE = re.compile(
    "^(?:dictionary|object|array|list|tuple|set|literal_value|switch_body|block"
    "|expression_switch_statement)$"
)
_WORD = r"(?:(?<![^\W_])|(?<=[a-z\d])(?=[A-Z]))%s(?:(?![^\W_])|(?<=[a-z])(?=[A-Z]))"
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\WA-Z_]+")
_CASES: tuple[Callable[[str], str], ...] = (str, str.lower, str.upper, str.capitalize, str.title)
_SPELLINGS = tuple(product(_CASES, ("", *"_- ")))
"""How a name is written, as words with something between them."""
_QUOTED = re.compile(r"([\"'`]).*?\1")
_COLUMN = re.compile(r"([^\n:]*:) +(.*)")
_NAME = r"(?:\w+(?:\.|::))*(?P<name>[\w-]+)"
_KEY = re.compile(rf"(?:case\s+)?[\[(\"']?{_NAME}[\]\"']?\s*(?::|=>|,|\Z)")
_VALUE = re.compile(
    rf"(?:case\s+)?[\[(]?([\"'])[\w -]+\1\]?\s*(?::|=>|,)\s*(?:return\s+|\w+\s*=\s*)?[\"']?{_NAME}"
    r"(?:[\"']?[\])]?|(?:,\s*(?:nil|true))?;?)\Z"
)


@dataclass(frozen=True, slots=True)
class AddedMember:
    """A member that came to an enum, a union or a list of constants."""

    name: str
    number: int
    """Members that are declared before it."""
    others: tuple[str, ...]
    exported: str
    """The name that files which list the members have from this one; empty where they have none."""

    def entries(self, tree: SyntaxTree) -> Iterator[TextEdit[int]]:
        """Yield the member's entries in the tables of a text that list every other one: behind that
        of the member before it, or the last where they are in another order."""
        for table, finder in product(_tables(tree, self.others[-1]), (_KEY, _VALUE)):
            entries = {match["name"]: (match, child) for child in table.named_children
                       if (match := finder.match(tree.text_of(child).rstrip()))}  # fmt: skip
            listed = [member for member in entries if member in self.others]
            if len(listed) < len(self.others) or self.name in entries:
                continue
            number = self.number if listed == list(self.others) else len(listed)
            copied = listed[max(number - 1, 0)]
            texts = {member: _without(entries[member][0]) for member in listed}
            copy = self._copied(tree, texts, copied, is_value=finder is _VALUE)
            if copy:
                edit = _insertion(tree, entries[copied][1], copy, is_before=not number)
                yield replace(edit, note=f"add {self.name}")

    def _copied(
        self, tree: SyntaxTree, texts: dict[str, str], copied: str, *, is_value: bool
    ) -> str:
        """Return the entry of a member for this one. If all entries hold the names of their
        members, in one spelling, so does the copy. It is empty where only some do so in their
        code, and where it would hold a name that the text has not.

        is_value: the member is the value, and the key its name."""
        holds_own = is_value
        for case, between in _SPELLINGS:
            spelt = {name: case(" ".join(_PARTS.findall(name))).replace(" ", between)
                     for name in (*texts, self.name)}  # fmt: skip
            holding = {name: re.search(_WORD % re.escape(spelt[name]), text)
                       for name, text in texts.items()}  # fmt: skip
            if all(holding.values()):
                copy = re.sub(_WORD % re.escape(spelt[copied]), spelt[self.name], texts[copied])
                words = re.findall(r"\w+", _QUOTED.sub("", copy))
                text_words = {self.name, *re.findall(r"\w+", tree.text)}
                return copy.replace("\0", self.name) if text_words.issuperset(words) else ""
            code = _QUOTED.sub("", texts[copied])
            holds_own |= re.search(_WORD % re.escape(spelt[copied]), code) is not None
        return "" if holds_own else texts[copied].replace("\0", self.name)


def added_member(last: RecordedEdit, before: SyntaxTree, now: SyntaxTree) -> AddedMember | None:
    """Return the member that an edit added; None for any other edit.

    before, now: the document without the edit and with it."""
    head, tail = common_ends(last.old_text, last.new_text)
    inserted = last.new_text[head : len(last.new_text) - tail]
    start = last.start_offset() + head
    word = start + len(inserted) - len(inserted.lstrip(" \t\r\n|,"))
    above = max(len(before.text[:start].rstrip()) - 1, 0)
    (_, old), (declaration, members) = _members(before, above), _members(now, word)
    came = [name for name in members if name not in old]
    if declaration is None or len(came) != 1 or len(members) <= max(FEWEST, len(old)):
        return None
    others = tuple(name for name in members if name != came[0])
    identifier = child_of(declaration, "name")
    exported = now.text_of(identifier) if identifier and is_given(now, identifier) else ""
    exported = exported if identifier else others[-1]
    return AddedMember(came[0], members.index(came[0]), others, exported)


def _members(tree: SyntaxTree, offset: int) -> tuple[Node | None, list[str]]:
    """Return the enum, the union or the list of constants around a character, and its members."""
    node = tree.node(offset, offset + 1)
    while node is not None:
        if "enum_declaration" in node.type or (
            node.type == "class_definition"
            and re.search(r"Enum|Flag", tree.text_of(child_of(node, "superclasses")))
        ):
            body = tree.text_of(child_of(node, "body"))
            return node, re.findall(r"^[ \t]*(\w+)(?=\s*(?:=[^=]|,|$))", body, re.MULTILINE)
        text = tree.text_of(node)
        typed = re.findall(r"^[ \t]*\w+[ \t]+(\w+)[ \t]*=", text, re.MULTILINE)
        is_of_one_type = len(set(typed)) == 1 and len(typed) == text.count("=")
        if node.type == "const_declaration" and ("iota" in text or is_of_one_type):
            return node, re.findall(r"^[ \t]*(\w+)(?=\s|$)(?!\s*\()", text, re.MULTILINE)
        if node.type == "type_alias_declaration":
            value = tree.text_of(child_of(node, "value"))
            if re.fullmatch(r"[\s|]*(?:([\"'])[\w-]+\1[\s|]*)+", value):
                return node, re.findall(r"[\"']([\w-]+)[\"']", value)
            return None, []
        node = node.parent
    return None, []


def _tables(tree: SyntaxTree, member: str) -> Iterator[Node]:
    """Yield the nodes of entries in which a member is a key."""
    visited = set()
    for match in re.finditer(rf"\b{re.escape(member)}\b", tree.text):
        for node in around(tree.node(*match.span())):
            # What a value is compared with may well be some of all.
            is_compared = kind_of(node.parent) == "comparison_operator"
            if _TABLE.match(node.type) and not is_compared and node.id not in visited:
                visited.add(node.id)
                yield node


def _without(match: re.Match[str]) -> str:
    """Return the text of an entry with its member left out."""
    return f"{match.string[: match.start('name')]}\0{match.string[match.end('name') :]}"


def _insertion(tree: SyntaxTree, entry: Node, copy: str, *, is_before: bool) -> TextEdit[int]:
    """Return the insertion of a copy of an entry before or behind it."""
    start = tree.start(entry)
    end = start + len(tree.text_of(entry).rstrip())
    line = tree.text[tree.text.rfind("\n", 0, start) + 1 : start]
    between = f"\n{line}" if not line.strip() else " "
    comma = "" if "case" in entry.type else ","
    old, new = _COLUMN.fullmatch(tree.text_of(entry)), _COLUMN.fullmatch(copy)
    if old and new and tree.grammar == "go" and "\n" in between:
        # The values stand below each other.
        copy = f"{new[1]} ".ljust(old.start(2)) + new[2]
    if is_before:
        return TextEdit(start, start, f"{copy}{comma}{between}")
    # A comment behind an entry is of that entry.
    comment = r"([ \t]*(?://|#)[^\n]*)?" if "\n" in between else "()"
    rest = re.compile(f"(,?){comment}").match(tree.text, end)
    assert rest is not None
    if rest[1]:
        return TextEdit(rest.end(), rest.end(), f"{between}{copy},")
    return TextEdit(end, rest.end(), f"{comma}{rest[2] or ''}{between}{copy}")
