"""What an editor makes of next edits: never a character changes outside of the renamed names."""

from __future__ import annotations

import random
import re

from seeds import Amount
from typist import Typist

from lsp_server.editor.next_edits.suggestion import Suggestion
from lsp_server.text.documents.document import units_of

ENDS = ["\n", "\r\n", "\r"]


def applied_by_utf16(text: str, edits: list[Suggestion]) -> str:
    """The text as a client has it that counts in UTF-16 and knows LSP's lines alone."""
    starts = [0, *(at.end() for at in re.finditer("\r\n|\n|\r", text))]
    data = text.encode("utf-16-le")
    spans = []
    for one in edits:
        lines = one.document.lines
        places = []
        for at in (one.region.start, one.region.end):
            units = units_of(lines[at.line], at.column, "utf-16")
            places.append(len(text[: starts[at.line]].encode("utf-16-le")) + 2 * units)
        spans.append((*places, one.new_text))
    for start, end, new in sorted(spans, reverse=True):
        assert new is not None
        data = data[:start] + new.encode("utf-16-le") + data[end:]
    return data.decode("utf-16-le")


def renamed_by_hand(text: str, new: str) -> str:
    """The text with another word for ``name``, but in strings and comments."""
    tokens = re.compile(r'"[^"]*"|#[^\r\n]*|(?<!\w)name(?!\w)')
    return tokens.sub(lambda at: new if at[0] == "name" else at[0], text)


def test_only_the_names_change(amount: Amount) -> None:
    rounds = amount(150, 100_000)
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for number in range(rounds):
        end = rng.choice(ENDS)
        indent = rng.choice(["    ", "\t"])
        body = []
        for _ in range(rng.randrange(1, 5)):
            noise = rng.choice(['"é😀 name"', '"漢\\t"', "1"])
            body.append(
                f"{indent}x{rng.randrange(9)} = [{noise}, name, {noise}] + [name]  # name 😀"
            )
        text = end.join(["def f(name):", *body, f"{indent}return name", "", "name = 1", ""])
        if rng.random() < 0.3:
            text = f'"""é😀"""{end}' + text
        typist = Typist()
        document = typist.open(text)
        first = next(at for at, one in enumerate(document.lines) if one.startswith("def"))
        new = rng.choice(["value", "n", "größe", "名前"])
        cursor = typist.retype(document, first, "name", new)
        found = typist.next_edits(document, cursor)
        made = applied_by_utf16(document.text, found)
        head, _, tail = document.text.rpartition(f"{end}name = 1")
        wanted = renamed_by_hand(head, new)
        assert made == f"{wanted}{end}name = 1{tail}", f"seed {seed}, round {number}"
        assert found, f"seed {seed}, round {number}"
