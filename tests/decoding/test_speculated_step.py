"""The likeliest columns of a speculator's step against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from accel.lanes import LANES
from accel.matmul import BLOCK
from accel.memory import copied
from accel.sources.speculated_head import MOST_COLUMNS
from accel.sources.speculated_step import CHILDREN, likeliest


@pytest.mark.parametrize("shift", [0, 4, 12])
def test_the_likeliest_columns_are_those_of_a_softmax(shift: int) -> None:
    """Of equals the first; the last block is not full, or holds less than is asked for. What they
    lack of 1 in sum is that of tokens without a column: nothing at first, nearly all at last."""
    random = np.random.default_rng(4)
    for count in (CHILDREN, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3, MOST_COLUMNS):
        logits = np.full((1, MOST_COLUMNS), -np.inf, np.float32)
        logits[0, :count] = random.integers(-6, 6, count) / np.float32(2)
        logits[0, :count] -= np.float32(shift)
        candidate, score = (int(random.integers(count)), 1.5) if shift else (-1, 0.0)
        scores = np.exp(logits[0, :count].astype(np.float64))
        before = scores.sum()
        if candidate >= 0:
            before += scores[candidate] * (np.exp(-score) - 1)
        shares = scores / (scores.sum() + max(1 - before, 0))
        expected = np.argsort(-logits[0, :count], kind="stable")[:CHILDREN]
        columns, chances = np.zeros(CHILDREN, np.int32), np.zeros(LANES, np.float32)
        tops = np.zeros(MOST_COLUMNS // BLOCK, np.float32)
        likeliest(copied(logits), count, candidate, score, tops, columns, chances)
        assert columns.tolist() == expected.tolist(), count
        np.testing.assert_allclose(chances[:CHILDREN], shares[expected], rtol=1e-3)


def test_columns_that_have_next_to_nothing_get_next_to_nothing() -> None:
    logits = np.full((1, MOST_COLUMNS), -np.inf, np.float32)
    logits[0, :40] = -np.arange(200, 240)
    columns, chances = np.zeros(CHILDREN, np.int32), np.zeros(LANES, np.float32)
    likeliest(logits, 40, 1, 1.5, np.zeros(MOST_COLUMNS // BLOCK, np.float32), columns, chances)
    assert columns.tolist() == [0, 1, 2]
    assert ((chances[:CHILDREN] >= 0) & (chances[:CHILDREN] < 1e-30)).all()


@pytest.mark.parametrize("count", [CHILDREN, 40, 16 * BLOCK, MOST_COLUMNS])
def test_of_what_is_no_number_a_column_is_taken_that_there_is(count: int) -> None:
    """A broken model's: its tokens are looked up."""
    logits = np.full((1, MOST_COLUMNS), -np.inf, np.float32)
    logits[0, :count] = np.nan
    columns, chances = np.full(CHILDREN, -1, np.int32), np.zeros(LANES, np.float32)
    likeliest(logits, count, 1, 1.5, np.zeros(MOST_COLUMNS // BLOCK, np.float32), columns, chances)
    assert ((columns >= 0) & (columns < count)).all()
