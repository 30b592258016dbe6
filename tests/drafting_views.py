"""The inputs of the next tree of a drafter, for tests and the laboratory."""

from __future__ import annotations

from typing import Any, NamedTuple

from accel.drafting.retrieval.candidate_features import (
    MAX_MATCH,
    Evidence,
    MatchRows,
    TextView,
    places_of,
)
from accel.drafting.retrieval.drafter import LAYERS, ROW_DEPTH, ROWS_PER_SOURCE, RetrievalDrafter
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.drafting.retrieval.tree_search import MAX_DEPTH


class View(NamedTuple):
    """The inputs of a tree's growth. ``accepted``: tokens that the last step accepted."""

    text: TextView
    rows: MatchRows
    shapes: TokenShapes
    accepted: int
    evidence: Evidence


def view_of(drafter: RetrievalDrafter) -> View:
    """Return all that the next tree of ``draft`` depends on."""
    drafter._catch_up()
    count = drafter._look_up_beside(ROWS_PER_SOURCE, ROW_DEPTH)
    if drafter._direct is not None:
        drafter._reserve_rows(count + ROWS_PER_SOURCE * LAYERS, count)
        count += drafter._direct.lookup_into(
            drafter._prompt.context[-MAX_MATCH:],
            places_of(drafter._rows, count),
            max_match=MAX_MATCH,
            limit=ROWS_PER_SOURCE,
            depth=ROW_DEPTH,
        )
    drafter._evidence_for_text()
    arrays: Any = drafter._rows
    rows = MatchRows(*(array[:count] for array in arrays))
    text = drafter._prompt.text(spare=MAX_DEPTH + 1)
    return View(text, rows, drafter._shapes, drafter._accepted, drafter._evidence)
