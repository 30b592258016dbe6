"""Formats of the samples, holes, and packing that never cuts a unit."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
import tiny

from accel.training.corpus import SourceFile
from accel.training.edits import make_edit
from accel.training.packing import Mix, chunk_of_rows, pack
from accel.training.tokenizer import load_tokenizer
from accel.training.units import (
    CHANGED_WEIGHT,
    COPIED_WEIGHT,
    MIDDLE_WEIGHT,
    PLACE_END_TOKEN,
    PLACE_TOKEN,
    UNSURE_WEIGHT,
    Unit,
    UnitMaker,
    draw_hole,
    edit_units,
    pieces,
    text_units,
)

_FILES = [file for file in tiny.corpus().training if "<|" not in file.text]
_END = "<|endoftext|>"


@pytest.fixture(scope="module")
def maker(tmp_path_factory: pytest.TempPathFactory) -> UnitMaker:
    return UnitMaker(load_tokenizer(tiny.run_folder(tmp_path_factory.mktemp("units"))))


def _text(maker: UnitMaker, ids: list[int]) -> str:
    return maker.tokenizer.decode(ids, skip_special_tokens=False)


def test_both_orders_hold_the_text(maker: UnitMaker) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(300):
        text = rng.choice(pieces(rng.choice(_FILES).text, 1400, rng))
        start, end = draw_hole(text, rng)
        assert 0 <= start <= end <= len(text), f"seed {seed}"
        unit = maker.fill_in_the_middle(text, start, end, True)
        found = _text(maker, unit.ids)
        assert found.startswith("<|fim_suffix|>")
        suffix, rest = found[len("<|fim_suffix|>") :].split("<|fim_prefix|>")
        given, middle = rest.split("<|fim_middle|>")
        assert suffix == text[end:]
        assert given + middle == text[:end] + _END, f"seed {seed}"
        assert text[:start].startswith(given)
        unit = maker.fill_in_the_middle(text, start, end, False)
        found = _text(maker, unit.ids)
        assert found.startswith("<|fim_prefix|>")
        given, rest = found[len("<|fim_prefix|>") :].split("<|fim_suffix|>")
        suffix, middle = rest.split("<|fim_middle|>")
        assert suffix == text[end:]
        assert given + middle == text[:end] + _END, f"seed {seed}"
        # The border is the last one before the cursor: what is typed after it is short.
        assert text[:start].startswith(given)


def test_prefix_tokens_before_the_border_are_those_of_the_prefix_alone(maker: UnitMaker) -> None:
    rng = random.Random(3)
    text = _FILES[0].text[:600]
    for _ in range(100):
        start, end = draw_hole(text, rng)
        unit = maker.fill_in_the_middle(text, start, end, True)
        joint = [n for n in unit.ids[unit.ids.index(maker.prefix) + 1 :] if n != maker.middle]
        alone = maker.tokenizer.encode(text[:start], add_special_tokens=False).ids
        same = 0
        while same < min(len(alone), len(joint)) and alone[same] == joint[same]:
            same += 1
        assert len(alone) - same <= 4


def test_middle_counts_more_and_marks_count_nothing(maker: UnitMaker) -> None:
    unit = maker.fill_in_the_middle("a = 1\nb = 2\nc = 3\n", 6, 11, True)
    place = unit.ids.index(maker.middle)
    assert unit.weights[place] == 0.0
    assert unit.weights[-1] == MIDDLE_WEIGHT
    assert MIDDLE_WEIGHT in unit.weights[place:-1]
    assert MIDDLE_WEIGHT not in unit.weights[:place]


def test_edit_format_and_weights(maker: UnitMaker) -> None:
    source = "def f(first, second):\n    return first + second\n"
    edit = make_edit(source, "rename_parameter", 1)
    assert edit is not None
    marked = maker.edit(edit)
    text = _text(maker, marked.ids)
    assert text.count(PLACE_TOKEN) == text.count(PLACE_END_TOKEN) == len(edit.places)
    old, new = (edit.before[slice(*edit.places[0])], edit.after[slice(*edit.changed[0])])
    assert text.count(f"{PLACE_TOKEN}{old}{PLACE_END_TOKEN}") == len(edit.places)
    name = maker.tokenizer.encode(new, add_special_tokens=False).ids
    shown = range(len(marked.ids) - len(name))
    assert sum(marked.ids[n : n + len(name)] == name for n in shown) >= len(edit.places)
    unit = maker.edit(edit, marked=False)
    assert _text(maker, unit.ids) == (
        f"<|edit_instruction|>{edit.instruction}<|edit_before|>{edit.before}"
        f"<|edit_after|>{edit.after}{_END}"
    )
    split = unit.ids.index(maker.after) + 1
    answer = zip(unit.ids[split:], unit.weights[split:], strict=True)
    heavy = [number for number, weight in answer if weight > COPIED_WEIGHT]
    assert len(heavy) < len(unit.ids) - split
    start, end = edit.changed[0]
    name = edit.after[start:end]
    assert name in _text(maker, heavy)
    assert CHANGED_WEIGHT in unit.weights[split:]


def test_left_to_right_header_and_end(maker: UnitMaker) -> None:
    unit = maker.left_to_right("x = 1\n", "a/b.py", ends=False)
    assert _text(maker, unit.ids) == "<|file_sep|>a/b.py\nx = 1\n" + _END
    assert unit.weights[-1] == 0.0
    assert maker.left_to_right("x = 1\n", None, ends=True).weights[-1] == 1.0


def test_copy_drills_copy(maker: UnitMaker) -> None:
    rng = random.Random(1)
    changed = 0
    for _ in range(50):
        unit = maker.copy_drill(rng)
        before = unit.ids[unit.ids.index(maker.before) + 1 : unit.ids.index(maker.after)]
        after = unit.ids[unit.ids.index(maker.after) + 1 : -1]
        changed += before != after
        assert set(after) & set(before)
        assert min(after) >= maker.ordinary
    assert 20 < changed < 48


def test_where_copying_is_not_obvious_tokens_count_more(maker: UnitMaker) -> None:
    source = "def f(a):\n    g(a)\n    h(a)\n    g(a)\n    return k(a)\n"
    edit = make_edit(source, "rename_function", 1)
    assert edit is not None
    unit = maker.edit(edit)
    split = unit.ids.index(maker.after) + 1
    weights = dict(zip(range(split, len(unit.ids)), unit.weights[split:], strict=True))
    after = unit.ids[split:]
    triples = [tuple(after[n - 3 : n]) for n in range(3, len(after))]
    assert len(set(triples)) < len(triples), "two places follow the same three tokens"
    counted = {w for n, w in weights.items() if n >= split + 3}
    assert {COPIED_WEIGHT, UNSURE_WEIGHT} <= counted


def test_pieces_give_the_text_back() -> None:
    rng = random.Random(2)
    for file in _FILES:
        found = "".join(pieces(file.text, 900, rng))
        assert len(found) >= 0.9 * len(file.text) or len(file.text) < 900
        assert all(piece.endswith("\n") for piece in pieces(file.text, 900, rng))


def test_units_fit(maker: UnitMaker) -> None:
    rng = random.Random(4)
    units = [unit for file in _FILES[:6] for unit in text_units(file, maker, 96, rng)]
    sources = ["def f(a):\n    return a\n", "def g(b, c=1):\n    '''Doc.'''\n    return b\n"]
    units += edit_units(sources, maker, 96, 3000, rng)
    assert len(units) > 100
    assert max(len(unit.ids) for unit in units) <= 96


def test_packing_never_cuts_a_unit() -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    for _ in range(60):
        length, begin = rng.randrange(8, 64), 100
        units = []
        for _ in range(rng.randrange(1, 80)):
            size = rng.randint(1, length)
            units.append(Unit(list(range(begin, begin + size)), [1.0] * size))
            begin += size
        rows = pack(units, length, 7, rng)
        flat = {tuple(unit.ids) for unit in units}
        for row in rows.ids.tolist():
            place = 0
            while place < length and row[place] != 7:
                unit = next(u for u in flat if u[0] == row[place])
                assert tuple(row[place : place + len(unit)]) == unit, f"seed {seed}"
                flat.remove(unit)
                place += len(unit)
            assert set(row[place:]) <= {7}, f"seed {seed}"
        assert not flat, f"seed {seed}"
        assert (rows.weights[rows.ids == 7] == 0).all()
        assert (rows.weights[:, 0] == 0).all()


def test_a_unit_longer_than_a_row_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        pack([Unit([1] * 9, [1.0] * 9)], 8, 0, random.Random(0))


def test_chunks_are_determined_and_differ(maker: UnitMaker) -> None:
    mix = Mix(3, 40_000, 0.4, 0.1)
    first = chunk_of_rows(_FILES, maker.tokenizer, mix, 0, 256)
    again = chunk_of_rows(_FILES, maker.tokenizer, mix, 0, 256)
    # The same files again, one pass later: new holes, new edits.
    later = chunk_of_rows(_FILES, maker.tokenizer, Mix(4, 40_000, 0.4, 0.1), 0, 256)
    assert np.array_equal(first.ids, again.ids)
    assert np.array_equal(first.weights, again.weights)
    assert first.ids.shape != later.ids.shape or not np.array_equal(first.ids, later.ids)
    share = float((first.ids == maker.tokenizer.token_to_id("<|pad|>")).mean())
    assert share < 0.1


def test_a_file_of_one_long_line_is_left_out(maker: UnitMaker) -> None:
    file = SourceFile("x", "x.py", "x = [" + "1, " * 3000 + "]\n")
    assert text_units(file, maker, 64, random.Random(0)) == []
