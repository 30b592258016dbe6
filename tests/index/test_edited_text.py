"""Editing a text keeps its encoding equal to encoding it afresh."""

from __future__ import annotations

import random

import numpy as np
from seeds import Amount, for_each_seed

from repo_index.edited_text import EditedText
from repo_index.tokens import TextTokenizer
from tests.index.conftest import source_text

_PIECES = [
    *("\n", "\n\n", "    ", "\n        ", " ", "\t", "\r\n", "\r", "x", "foo_bar", "def f(x):\n"),
    *(
        '"""',
        "'",
        "12345",
        "#" * 40,
        "é",
        "e\u0301",
        "日本",
        "👩\u200d👩",
        "\u2028",
        "<|file_sep|>",
    ),
    *("  \n  ", " " * 300, "\n" * 50, "\x0c", "'s ", "\u2581", "\ud800", "return self._value\n"),
]


def random_edit(generator: random.Random, text: str) -> tuple[int, int, str]:
    start = generator.randint(0, len(text))
    length = generator.choice([0, 0, 1, 2, 10, 100, 1000])
    inserted = "".join(generator.choices(_PIECES, k=generator.choice([0, 1, 1, 2, 5])))
    if len(text) < 4000:
        begin = generator.randint(0, 100_000)
        inserted += source_text()[begin : begin + 2000]
    return start, min(len(text), start + length), inserted


@for_each_seed(range(2))
def test_edits_equal_a_fresh_encoding(
    any_tokenizer: TextTokenizer, seed: int, amount: Amount
) -> None:
    generator = random.Random(seed)
    source = source_text()
    begin = generator.randint(0, len(source) - 6000)
    edited = EditedText(any_tokenizer, source[begin : begin + 6000])
    for step in range(amount(50, 5000)):
        before, text = edited.ids, edited.text
        start, stop, inserted = random_edit(generator, text)
        wanted = text[:start] + inserted + text[stop:]
        change = edited.set_text(wanted) if step % 3 == 0 else edited.change(start, stop, inserted)
        fresh = any_tokenizer.encode_with_starts(wanted)
        where = f"seed {seed}, step {step}, {start}:{stop} -> {inserted!r}"
        assert edited.text == wanted
        assert np.array_equal(edited.ids, fresh.ids), where
        assert np.array_equal(edited.starts, fresh.starts), where
        spliced = np.concatenate([before[: change.start], change.inserted, before[change.stop :]])
        assert np.array_equal(spliced, fresh.ids), where


def test_an_edit_encodes_little_of_a_long_text(tokenizer: TextTokenizer) -> None:
    text = source_text()
    edited = EditedText(tokenizer, text)
    place = text.index("\n", len(text) // 2)
    change = edited.change(place, place, "\n    value = 1")
    assert change.stop - change.start < 500
    assert len(change.inserted) < 500
