"""Overlap with measuring data and near duplicates, against plain definitions."""

from __future__ import annotations

import bisect
import json
import os
import random
from pathlib import Path

import _pytest.python
import pytest
import rich.table

from accel.training.ngrams import (
    NearDuplicates,
    ngram_hashes,
    overlap_set,
    overlaps,
    texts_below,
    without_header,
    words,
)

_PROJECT = Path(__file__).parents[2]
_CASES = Path(os.environ.get("REDRAFT_CASES", _PROJECT.parent / "shared" / "cases"))
needs_cases = pytest.mark.skipif(
    not _CASES.exists(), reason=f"no cases in {_CASES}; name their folder in REDRAFT_CASES"
)


def _plain_ngrams(text: str, length: int) -> set[tuple[str, ...]]:
    found = words(without_header(text))
    return {tuple(found[i : i + length]) for i in range(len(found) - length + 1)}


def test_overlap_equals_the_plain_definition() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(300):
        length = rng.choice((2, 3, 13))
        vocabulary = [f"w{n}" for n in range(rng.choice((3, 8, 300)))]
        texts = [" ".join(rng.choices(vocabulary, k=rng.randrange(40))) for _ in range(4)]
        mine = " ".join(rng.choices(vocabulary, k=rng.randrange(40)))
        if rng.random() < 0.3:
            mine += " " + texts[0]
        expected = any(_plain_ngrams(text, length) & _plain_ngrams(mine, length) for text in texts)
        assert overlaps(mine, overlap_set(texts, length), length) == expected, f"seed {seed}"


def test_hashes_tell_order_and_length_apart() -> None:
    text = ["a", "b", "c", "d"]
    assert len(ngram_hashes(text, 5)) == 0
    assert ngram_hashes(text, 2).tolist() != ngram_hashes(text[::-1], 2).tolist()[::-1]
    assert len(set(ngram_hashes(["x"] * 9, 3).tolist())) == 1


def test_thirteen_words_in_a_row_are_found_whatever_stands_between_them() -> None:
    case = "def f(a, b):\n    return one + two * three - four / five % six if seven else eight"
    copied = "x = 1\n" + case.replace("(", " ( ").replace("\n", "\n\n") + "\ny = 2"
    assert overlaps(copied, overlap_set([case]))
    assert not overlaps(copied.replace("three", "drei").replace("b)", "c)"), overlap_set([case]))


def test_licence_headers_are_not_overlap() -> None:
    header = "# " + " ".join(f"licence{n}" for n in range(40)) + "\n"
    assert not overlaps(header + "x = 1\n", overlap_set([header + "y = 2\n"]))


def test_near_duplicates() -> None:
    rng = random.Random(5)
    text = " ".join(rng.choice("abcdefghij") * rng.randint(1, 4) for _ in range(600))
    changed = text.replace(" ", " zz ", 3)
    other = " ".join(rng.choice("klmnopqrst") * rng.randint(1, 4) for _ in range(600))
    near = NearDuplicates()
    assert not near.seen(text)
    assert near.seen(changed)
    assert not near.seen(other)
    assert near.seen(other)


def test_texts_of_json_lines_are_their_strings(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_text('{"a": "one", "b": ["two", {"c": "three"}], "n": 1}\n')
    (tmp_path / "more.py").write_text("four")
    assert set(texts_below(tmp_path)) == {"one", "two", "three", "four"}


@needs_cases
def test_released_copies_of_the_cases_are_found() -> None:
    avoid = overlap_set(texts_below(_CASES))
    for module in (rich.table, _pytest.python):
        assert overlaps(Path(str(module.__file__)).read_text(encoding="utf-8"), avoid)
    for module in (json.decoder, bisect):
        assert not overlaps(Path(str(module.__file__)).read_text(encoding="utf-8"), avoid)


@needs_cases
def test_the_cases_overlap_with_themselves() -> None:
    avoid = overlap_set(texts_below(_CASES))
    long_ones = [text for text in texts_below(_CASES) if len(words(without_header(text))) >= 13]
    assert len(long_ones) > 500
    assert all(overlaps(text, avoid) for text in long_ones[::10])
