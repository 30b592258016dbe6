"""Lookups beside the text itself: earlier requests, an index of files."""

from __future__ import annotations

from accel.draft_tree import TokenArray
from accel.drafting.base import ContinuationIndex, Continuations
from accel.drafting.history import History
from accel.drafting.retrieval.candidate_features import MatchRows


def found_beside(
    context: TokenArray,
    history: History | None,
    workspace: str,
    index: ContinuationIndex | None,
    *,
    max_match: int,
    limit: int,
    depth: int,
) -> list[Continuations]:
    """Return continuations of ``context`` (int32 [m]) from each that is there, ``limit`` rows of
    ``depth`` tokens at most."""
    continuations: list[Continuations] = []
    if history is not None and history.knows(workspace):
        continuations.append(
            history.lookup(workspace, context, max_match=max_match, limit=limit, depth=depth)
        )
    if index is not None:
        continuations.append(index.lookup(context, max_match=max_match, limit=limit, depth=depth))
    return continuations


def write_rows(rows: MatchRows, continuations: list[Continuations], depth: int) -> int:
    """Write continuations of ``depth`` tokens into rows that are long enough; returns how many."""
    first = 0
    for each in continuations:
        stop = first + len(each)
        rows.tokens[first:stop, :depth] = each.tokens
        rows.tokens[first:stop, depth:] = -1
        rows.lengths[first:stop] = each.lengths
        rows.counts[first:stop] = each.counts
        rows.sources[first:stop] = each.sources
        first = stop
    return first
