"""How much text of other files a completion's prompt has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.tasks.completion.task import (
    CONTEXT_S,
    CONTEXT_STEP,
    MOST_CONTEXT_TOKENS,
    _context_tokens,
)


@pytest.mark.parametrize(
    ("row_s", "asked", "positions", "expected"),
    [
        (1e-6, -1, 1 << 20, MOST_CONTEXT_TOKENS),
        (1e-6, -1, 1064, 250),
        (CONTEXT_S / (3.5 * CONTEXT_STEP), -1, 1 << 20, 3 * CONTEXT_STEP),
        (1.0, -1, 1 << 20, 0),
        (1.0, 700, 1 << 20, 700),
        (1e-6, 0, 1 << 20, 0),
        (1e-6, 700, 1064, 250),
    ],
)
def test_it_is_what_was_asked_for_or_what_is_computed_in_time(
    row_s: float, asked: int, positions: int, expected: int
) -> None:
    costs = SimpleNamespace(prefill_seconds=lambda rows, _: rows * row_s)
    planner = SimpleNamespace(costs=costs)
    engine = cast("Any", SimpleNamespace(max_positions=positions, planner=planner))
    job = CompletionJob("", "a.py", "x", "", "python", context_tokens=asked, max_tokens=64)
    assert _context_tokens(engine, job) == expected
