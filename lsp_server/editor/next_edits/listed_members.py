"""Tables and switches that list all members of an enum, a union or constants of one type: a member
that is added is offered its entry, copied from the last."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.renames import is_given
from lsp_server.text.syntax.nodes import around, child_of
from lsp_server.text.text_edit import TextEdit
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from tree_sitter import Node

    from lsp_server.editor.next_edits.history import RecordedEdit
    from lsp_server.text.syntax.tree import SyntaxTree

FEWEST = 2
"""Members that a table lists before it is one of all of them."""
_TABLE = re.compile(
    r"^(?:dictionary|object|array|list|literal_value|switch_body|block|expression_switch_statement)$"
)
_WORD = r"(?<![^\W_])%s(?![^\W_])"
_KEY = re.compile(r"(?:case\s+)?[\[(\"']?(?:\w+(?:\.|::))*(\w+)[\]\"']?\s*(?::|=>|,|\Z)")


@dataclass(frozen=True, slots=True)
class AddedMember:
    """A member that came to an enum, a union or a list of constants."""

    name: str
    others: tuple[str, ...]
    exported: str
    """The name that files which list the members have from this one; empty where they have none."""

    def entries(self, tree: SyntaxTree) -> Iterator[TextEdit[int]]:
        """Yield the member's entries in the tables of a text that list every other one."""
        for table in _tables(tree, self.others[-1]):
            entries = {key[1]: child for child in table.named_children
                       if (key := _KEY.match(tree.text_of(child)))}  # fmt: skip
            if set(self.others) <= set(entries) and self.name not in entries:
                yield _copied(tree, [entries[member] for member in self.others], self.name)


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
    if identifier is None:
        return AddedMember(came[0], others, others[-1])
    return AddedMember(
        came[0], others, now.text_of(identifier) if is_given(now, identifier) else ""
    )


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
            if _TABLE.match(node.type) and node.id not in visited:
                visited.add(node.id)
                yield node


def _copied(tree: SyntaxTree, entries: Sequence[Node], name: str) -> TextEdit[int]:
    """Return the insertion of an entry of ``name`` after the last, with its value. If all values
    hold the names of their members, in one spelling, so does the new one."""
    texts = [tree.text_of(entry).rstrip() for entry in entries]
    keys = [_KEY.match(text) for text in texts]
    pairs = [(key[1], text[key.end(1) :]) for key, text in zip(keys, texts, strict=True) if key]
    entry, text, key, (member, value) = max(
        zip(entries, texts, keys, pairs, strict=True), key=lambda each: each[0].start_byte
    )
    for spelt in (str, str.lower, str.upper, str.capitalize):
        holds = [re.search(_WORD % re.escape(spelt(word)), rest) for word, rest in pairs]
        if all(holds):
            value = re.sub(_WORD % re.escape(spelt(member)), spelt(name), value)
            break
    assert key is not None
    copy = text[: key.start(1)] + name + value
    start = tree.start(entry)
    end = start + len(text)
    line = tree.text[tree.text.rfind("\n", 0, start) + 1 : start]
    between = f"\n{line}" if not line.strip() else " "
    if tree.text[end : end + 1] == ",":
        return TextEdit(end + 1, end + 1, f"{between}{copy},", f"add {name}")
    comma = "" if "case" in entry.type else ","
    return TextEdit(end, end, f"{comma}{between}{copy}", f"add {name}")
