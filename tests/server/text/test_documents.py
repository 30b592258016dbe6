"""Documents: random edits in three encodings equal a naive model; positions; cost of edits."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from seeds import Amount
from text_cases import data_cases

from lsp_server.text.documents import document as documents
from lsp_server.text.documents.document import Document, Encoding, Position, split_lines
from lsp_server.text.text_edit import TextEdit as DocumentEdit

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
ALPHABET = [
    *("a", "b", "\n", "\r", "\r\n", "é", "𝄞", "\u2028", "\x0c", "\x85", "\t", "漢", "😀", "e\u0301")
]
LINE_END = re.compile("\r\n|\n|\r")


def naive_change(
    text: str, start: tuple[int, int], end: tuple[int, int], new: str, encoding: Encoding
) -> str:
    """The specification word for word, on the encoded bytes of the whole document."""
    codec, width = CODECS[encoding]
    data = text.encode(codec, "surrogatepass")
    starts = [0, *(found.end() for found in LINE_END.finditer(text))]
    ends = [*(found.start() for found in LINE_END.finditer(text)), len(text)]

    def size(part: str) -> int:
        return len(part.encode(codec, "surrogatepass"))

    def offset(line: int, units: int) -> int:
        if line < 0:
            return 0
        if line >= len(starts):
            return len(data)
        place = min(size(text[: starts[line]]) + max(units, 0) * width, size(text[: ends[line]]))
        while encoding == "utf-8" and place < len(data) and data[place] & 0xC0 == 0x80:
            place -= 1
        return place

    first, last = sorted((offset(*start), offset(*end)))
    changed = data[:first] + new.encode(codec, "surrogatepass") + data[last:]
    return changed.decode(codec, "surrogatepass")


def applied(text: str, edit: DocumentEdit) -> str:
    lines = split_lines(text)

    def offset(place: Position) -> int:
        return sum(map(len, lines[: place.line])) + place.column

    return text[: offset(edit.start)] + edit.text + text[offset(edit.end) :]


def test_random_edits_equal_the_naive_model(amount: Amount) -> None:
    rounds = amount(5000, 100_000)
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    encoding: Encoding = "utf-16"
    document, text = Document("u", "python", 0, ""), ""
    for number in range(rounds):
        if number % 30 == 0:
            encoding = rng.choice(("utf-8", "utf-16", "utf-32"))
            text = "".join(rng.choices(ALPHABET, k=rng.randrange(30)))
            document = Document("u", "python", 0, text)
        start, end = (
            (rng.randrange(-1, len(document.lines) + 2), rng.randrange(-1, 12)) for _ in range(2)
        )
        new = "".join(rng.choices(ALPHABET, k=rng.randrange(4)))
        if encoding == "utf-16" and rng.random() < 0.2:
            # JavaScript editors may send halves of a character.
            new = rng.choice(["\ud83d", "\ude00", "\ud834", "\udd1e"])
        wanted = naive_change(text, start, end, new, encoding)
        edit = document.change(start, end, new, encoding)
        where = f"seed {seed}, edit {number}: {text!r} {start} {end} {new!r} {encoding}"
        assert document.text == wanted, where
        assert document.lines == split_lines(wanted), where
        offset = rng.randint(0, len(wanted))
        assert document.offset(document.position_at(offset)) == offset, where
        assert applied(text, edit) == wanted, where
        text = wanted


def test_only_the_three_line_ends_of_lsp_end_lines() -> None:
    text = "a\x0cb\u2028c\x85d\x1ce\r\nf\rg\nh"
    assert split_lines(text) == ["a\x0cb\u2028c\x85d\x1ce\r\n", "f\r", "g\n", "h"]


def test_random_texts_have_the_lines_of_the_specification() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    for few in (ALPHABET[:5], [*ALPHABET, "\v", "\x1c", "\x1d", "\x1e", "\u2029"]):
        for _ in range(2000):
            text = "".join(chance.choices(few, k=chance.randint(0, 12)))
            starts = [0, *(found.end() for found in LINE_END.finditer(text)), len(text)]
            expected = [text[start:end] for start, end in pairwise(starts)]
            assert split_lines(text) == expected, (seed, text)


def test_an_empty_document_has_one_line() -> None:
    assert split_lines("") == [""]
    assert split_lines("\n") == ["\n", ""]


@data_cases()
def test_positions_count_in_the_clients_units(encoding: Encoding, units: int, column: int) -> None:
    # é is 2 bytes, 𝄞 is 4 bytes and two UTF-16 units; a unit inside of it is its start.
    document = Document("u", "python", 0, "aé𝄞z\n")
    assert document.position(0, units, encoding) == Position(0, column)


def test_positions_outside_are_the_nearest_inside() -> None:
    document = Document("u", "python", 0, "ab\r\ncd")
    assert document.position(0, 99, "utf-16") == Position(0, 2)
    assert document.position(9, 0, "utf-16") == Position(1, 2)
    assert document.position(-1, 5, "utf-16") == Position(0, 0)


def test_units_are_the_inverse_of_positions() -> None:
    document = Document("u", "python", 0, "aé𝄞z")
    for encoding in ("utf-8", "utf-16", "utf-32"):
        for column in range(5):
            line, units = document.units(Position(0, column), encoding)
            assert document.position(line, units, encoding) == Position(0, column)


def test_offsets_and_positions_agree() -> None:
    document = Document("u", "python", 0, "ab\r\n\ncd")
    for offset in range(len(document.text) + 1):
        place = document.position_at(offset)
        if document.text[max(0, offset - 1) : offset + 1] != "\r\n":
            assert document.offset(place) == offset
            assert document.between(Position(0, 0), place) == document.text[:offset]


def test_a_snapshot_does_not_change() -> None:
    document = Document("u", "python", 1, "a")
    snapshot = document.snapshot()
    document.change((0, 1), (0, 1), "b", "utf-16")
    assert (snapshot.text, document.text) == ("a", "ab")


def test_an_edit_of_a_long_document_splits_the_line_alone_that_it_touches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = Document("u", "python", 0, "some code = here\n" * 1000)
    split: list[str] = []
    monkeypatch.setattr(
        documents, "split_lines", lambda text: (split.append(text), split_lines(text))[1]
    )
    document.change((500, 4), (500, 4), "x", "utf-16")
    assert split == ["somex code = here\n"]
