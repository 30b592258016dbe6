"""What counts as exactly right when a model spells a text in other tokens."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from accel.training.quality import Judge

BYTES = [b"", b"must", b"m", b"ust", b" be", b"x"]
END, MUST, M, UST, BE, X = range(6)


def _judge(written: list[int]) -> Judge:
    """One whose model writes these tokens behind a prompt of one token, whatever stands there."""
    judge: Any = object.__new__(Judge)
    judge.maker = SimpleNamespace(end=END)
    judge._bytes = BYTES

    def logits(ids: list[int], keep: int) -> torch.Tensor:
        places = range(len(ids) - 1 - keep + 1, len(ids))
        likely = [written[place] if place < len(written) else END for place in places]
        return torch.nn.functional.one_hot(torch.tensor(likely), len(BYTES)).float()

    judge.logits = logits
    return judge


@pytest.mark.parametrize(
    ("written", "is_right"),
    [
        ([M, UST, BE, END], True),
        ([M, UST, BE, X, END], False),
        ([M, UST, END], False),
        ([M, X, BE, END], False),
        ([X, UST, BE, END], False),
    ],
)
def test_the_same_text_in_other_tokens_is_right(written: list[int], is_right: bool) -> None:
    judge = _judge(written)
    reference = [MUST, BE, END]
    best = judge.logits([X, *reference[:-1]], len(reference)).argmax(-1).tolist()
    assert best != reference
    assert judge._spells([X], reference, best) is is_right
