"""The weights of copy rows, as fitted by ``tests.benchmarks train copy-weights``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from accel.drafting.copy import candidates as copy_rows


@cache
def row_weights() -> NDArray[np.float64]:
    """Return weights of the rows' features, fitted on public commit histories and made-up edits.

    They say how often text of a kind, at a position, after such a match, is what comes next; see
    ``tests/benchmarks/training/copy_weights.py``.
    """
    weights = np.load(Path(__file__).with_name("copy_weights.npy")).astype(np.float64)
    assert len(weights) == copy_rows.WEIGHTS, "copy_weights.npy is of another version; fit it anew"
    return weights
