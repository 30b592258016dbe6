"""One draft of an edit, and one step of its cursor, as one call of compiled code each."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import Source, TokenArray
from accel.drafting.copy.alignment import ANCHOR, AT, OFF_TRACK, CursorTexts, follow
from accel.drafting.copy.candidates import (
    COMMON,
    INSTRUCTED,
    REPOSITORY,
    Standing,
    features_of,
    may_begin,
)
from accel.drafting.copy.deviation_rate import FOLLOWING, odds
from accel.drafting.copy.tree_search import CandidateRows, CopyTree, Fitted, Worth, expand_rows
from accel.native.numba_cache import State, compiled

# Measure with `python -m tests.benchmarks edit --cases CASES/edit_canitedit.jsonl`.
ROW_LIMIT = 64
"""Rows that a tree is grown from, the looked-up ones left out."""
LEAST_PROBABILITY = 1e-5
_SOURCES = np.array(
    [Source.ORIGINAL] * 4
    + [Source.PROMPT, Source.PROMPT, Source.REPOSITORY, Source.COMMON, Source.PROMPT],
    np.int8,
)
_COMMON = np.int8(Source.COMMON)


class CopyState(NamedTuple):
    """The arrays of a ``CopyPool``, the weights of ``candidates``, and what a draft writes: rows,
    kinds, scores: [``ROW_LIMIT`` and looked up ones], and the nodes of a tree."""

    pool: TokenArray
    match: TokenArray
    offsets: TokenArray
    places: NDArray[np.int8]
    cursor: TokenArray
    slips: NDArray[np.float64]
    classes: NDArray[np.int8]
    weights: NDArray[np.float64]
    line_starts: TokenArray
    line_ends: TokenArray
    spans: TokenArray
    gather_spans: TokenArray
    rows: TokenArray
    kinds: NDArray[np.int8]
    scores: NDArray[np.float64]
    tree: CopyTree


@compiled()
def copy_state_of(fields: CopyState) -> State:
    """Return a state as one argument."""
    return State(fields)


@compiled(forceinline=True)
def best_rows(
    pool: TokenArray,
    match: TokenArray,
    offsets: TokenArray,
    spans: TokenArray,
    context_stop: int,
    here: Standing,
    classes: NDArray[np.int8],
    weights: NDArray[np.float64],
    rows: TokenArray,
    kinds: NDArray[np.int8],
    scores: NDArray[np.float64],
) -> int:
    """Write the rows of highest score, their kinds and scores, best first, at most as many as
    ``scores`` has; returns how many. spans: int32 [k, 3] of start, stop and kind. Rows that match a
    token count, and places where an edit is likely to join the original again."""
    limit = len(scores)
    count = 0
    for span in range(len(spans)):
        kind = spans[span, 2]
        for row in range(spans[span, 0], spans[span, 1]):
            begins_phrase = row > 0 and pool[row - 1] < 0
            if pool[row] < 0 or not may_begin(kind, match[row], offsets[row], begins_phrase, here):
                continue
            length, age = np.int64(match[row]), context_stop - row
            first, second, third, fourth, fifth = features_of(
                np.int64(kind), length, offsets[row], age, classes[pool[row]], here
            )
            score = weights[first] + weights[second] + weights[third]
            score += weights[fourth] + weights[fifth]
            if count == limit:
                if score <= scores[limit - 1]:
                    continue
                count -= 1
            slot = count
            while slot > 0 and scores[slot - 1] < score:
                rows[slot] = rows[slot - 1]
                kinds[slot] = kinds[slot - 1]
                scores[slot] = scores[slot - 1]
                slot -= 1
            rows[slot] = row
            kinds[slot] = kind
            scores[slot] = score
            count += 1
    return count


@compiled()
def class_of(classes: NDArray[np.int8], tokens: TokenArray, row: int, first: int) -> int:
    """Class of one token; 0 where there is none from ``first`` on, or none of the vocabulary."""
    token = tokens[row] if row >= first else -1
    return classes[token] if 0 <= token < len(classes) else 0


@compiled()
def goes_as_instructed(spans: TokenArray, cursor: TokenArray, slips: NDArray[np.float64]) -> bool:
    """Return whether the text follows the instruction: its changes teach nothing new, and the row
    of the cursor leads. spans: int32 [n, 3], as in ``alignment.follow``."""
    for span in range(len(spans)):
        if spans[span, 2] == INSTRUCTED and spans[span, 0] <= cursor[AT] < spans[span, 1]:
            return odds(slips, FOLLOWING) > 1
    return False


@compiled()
def draft_in(
    arrays: Any,
    home: int,
    context_start: int,
    stop: int,
    max_nodes: int,
    looked_up: TokenArray,
    sources: NDArray[np.int8],
    seconds: NDArray[np.float64],
    marginal: NDArray[np.float64],
    acceptance_scale: float,
    rate: float,
) -> tuple[int, float]:
    """Write the best tree into the state; returns its nodes, and the seconds that it is expected to
    save. See ``tree_search.expand_rows``.

    home: where the original begins in the pool; looked_up, sources: int32 and int8 [rows], rows of
    an index and where it has them from.
    """
    state = arrays.fields
    pool, classes, cursor = state.pool, state.classes, state.cursor
    anchor = min(np.int64(cursor[ANCHOR]), len(state.line_starts) - 1)
    off_track = np.int64(cursor[OFF_TRACK])
    is_inside = anchor < len(state.line_starts) - 1
    last_class = np.int64(class_of(classes, pool, stop - 1, context_start))
    lost_class = np.int64(class_of(classes, pool, home + anchor, home)) if is_inside else 0
    line_start, line_end = np.int64(state.line_starts[anchor]), np.int64(state.line_ends[anchor])
    here = Standing(anchor, off_track, last_class, lost_class, line_start, line_end)
    count = best_rows(
        *(pool, state.match, state.offsets, state.gather_spans, stop, here, classes),
        *(state.weights, state.rows, state.kinds, state.scores),
    )
    for number in range(len(looked_up)):
        state.rows[count] = looked_up[number]
        state.kinds[count] = COMMON if sources[number] == _COMMON else REPOSITORY
        count += 1
    leads = goes_as_instructed(state.spans, cursor, state.slips)
    leading = np.int64(cursor[AT]) if leads else -1
    nodes = expand_rows(
        CandidateRows(
            *(state.rows[:count], state.kinds[:count], pool, state.match, state.offsets),
            *(state.places, classes, stop, leading),
        ),
        here,
        Fitted(state.weights, state.slips),
        Worth(max_nodes, LEAST_PROBABILITY, seconds, marginal, acceptance_scale, rate),
        state.tree,
    )
    expected = 0.0
    for node in range(nodes):
        expected += state.tree.chances[node]
        state.tree.kinds[node] = _SOURCES[state.tree.kinds[node]]
    return nodes, acceptance_scale * expected * seconds[0] - (seconds[nodes] - seconds[0])


@compiled()
def follow_in(arrays: Any, tokens: TokenArray, stop: int) -> tuple[bool, TokenArray]:
    """``alignment.follow`` over ``tokens`` from ``stop`` on, and its events; false without doing so
    where the arrays are too short for them."""
    state = arrays.fields
    if stop + len(tokens) + 2 > len(state.pool):
        return False, np.empty((0, 5), np.int32)
    for token in tokens:
        if token >= len(state.classes):
            return False, np.empty((0, 5), np.int32)
    spans, gather_spans = state.spans, state.gather_spans
    texts = CursorTexts(
        *(state.pool, state.match, state.offsets, spans, state.cursor),
        *(state.classes, state.places, state.slips),
    )
    events = follow(texts, tokens, stop)
    spans[-1, 1] = gather_spans[-1, 1] = stop + len(tokens)
    return True, events
