"""Evidence for each possible next token of one context: occurrences that match its end exactly, by
source and length, that match in shape, and the token or its word being near."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import Source, TokenArray
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.native.numba_cache import compiled

PROMPT, SUFFIX, REPOSITORY, COMMON, SHAPE, BEFORE, AFTER, VARIANT = range(8)
GROUPS = 8
MATCHED_GROUPS = 5
"""Groups whose level is a match length; those of the others is a distance."""
LEVELS = 9

# Measure with `python -m tests.benchmarks completion --cases CASES/completion_repoeval.jsonl`.
MAX_MATCH = 24
MAX_SHAPE_MATCH = 16
MAX_MATCHED = 96
"""Candidates that occurrences may add."""
MAX_NEAR = 128
"""Candidates that are near."""
MAX_CANDIDATES = MAX_MATCHED + MAX_NEAR
MAX_OCCURRENCES = 400
SHAPE_WINDOW = 384

_MATCH_LEVELS = np.array([0, 0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8], np.int8)
_SHAPE_LEVELS = np.array([0, 0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8], np.int8)
_PROMPT_SOURCE, _SUFFIX_SOURCE = np.int8(Source.PROMPT), np.int8(Source.SUFFIX)
_COMMON_SOURCE = np.int8(Source.COMMON)


class TextView(NamedTuple):
    """The dynamic index: text after the cursor, a separator, prompt and output (``prompt``).

    tokens: int32, long enough for a path of the tree after the end; previous: int32, the position
    before of the same token; newest: int32 [vocabulary], the last position of a token;
    start: where the prompt begins; stop: where the output ends; spelt: int8, shapes of the tokens.
    """

    tokens: TokenArray
    previous: TokenArray
    newest: TokenArray
    start: int
    stop: int
    spelt: NDArray[np.int8]


class MatchRows(NamedTuple):
    """Continuations that an index gave for the context, as in ``base.Continuations``. following:
    int32 [n], for linked lists of rows, -1 ends one."""

    tokens: TokenArray
    lengths: TokenArray
    counts: NDArray[np.float32]
    sources: NDArray[np.int8]
    following: TokenArray

    @classmethod
    def allocate(cls, rows: int, depth: int) -> MatchRows:
        """Return buffers for ``rows`` rows of ``depth`` tokens."""
        return cls(
            np.full((rows, depth), -1, np.int32),
            np.empty(rows, np.int32),
            np.empty(rows, np.float32),
            np.empty(rows, np.int8),
            np.empty(rows, np.int32),
        )


def places_of(rows: MatchRows, first: int = 0) -> NDArray[np.int64]:
    """Return the addresses that an index writes rows to from ``first`` on, see
    ``base.DirectIndex``. They are valid while ``rows`` lives."""
    arrays = rows.tokens[first:], rows.lengths[first:], rows.counts[first:], rows.sources[first:]
    return np.array([*(array.ctypes.data for array in arrays), *arrays[0].shape], np.int64)


class Evidence(NamedTuple):
    """Room for the evidence at one node, used again for the next.

    slots: int16 [vocabulary], candidate of a token that an occurrence added, or -1;
    tokens: int32 [candidates];
    counts: float32 [candidates, MATCHED_GROUPS, levels], zero from level
    reach: int8 [candidates, MATCHED_GROUPS] on; totals: float32 [MATCHED_GROUPS, levels];
    heads: int32 [candidates], first row of each; best: int32 [candidates], longest match, 0 where
    none but in shape; sources: int8 [candidates]; near_items: int32 [candidates], index in ``near``
    or -1.
    near: int32 [tokens], what is near the cursor, and near_counts: float32 [tokens, 3, levels],
    how often and where: the same for all nodes of a tree; items: int32 [vocabulary], index of a
    token in ``near`` or -1; item_slots: int16 [tokens], candidate of each at this node;
    last: int32 [tokens], those in ``items``, and noted: int64 [1], how many they are.
    """

    slots: NDArray[np.int16]
    tokens: TokenArray
    counts: NDArray[np.float32]
    reach: NDArray[np.int8]
    totals: NDArray[np.float32]
    heads: TokenArray
    best: TokenArray
    sources: NDArray[np.int8]
    near_items: TokenArray
    near: TokenArray
    near_counts: NDArray[np.float32]
    items: TokenArray
    item_slots: NDArray[np.int16]
    last: TokenArray
    noted: NDArray[np.int64]

    @classmethod
    def allocate(cls, vocabulary: int) -> Evidence:
        """Return room for token ids below ``vocabulary``."""
        return cls(
            np.full(vocabulary, -1, np.int16),
            np.empty(MAX_CANDIDATES, np.int32),
            np.zeros((MAX_CANDIDATES, MATCHED_GROUPS, LEVELS), np.float32),
            np.zeros((MAX_CANDIDATES, MATCHED_GROUPS), np.int8),
            np.zeros((MATCHED_GROUPS, LEVELS), np.float32),
            np.empty(MAX_CANDIDATES, np.int32),
            np.empty(MAX_CANDIDATES, np.int32),
            np.empty(MAX_CANDIDATES, np.int8),
            np.empty(MAX_CANDIDATES, np.int32),
            np.empty(MAX_NEAR, np.int32),
            np.zeros((MAX_NEAR, GROUPS - MATCHED_GROUPS, LEVELS), np.float32),
            np.full(vocabulary, -1, np.int32),
            np.full(MAX_NEAR, -1, np.int16),
            np.empty(MAX_NEAR, np.int32),
            np.zeros(1, np.int64),
        )


@njit(nogil=True, inline="always")
def _begin_candidate(evidence: Evidence, token: int, slot: int) -> None:
    """Let ``slot`` be the candidate of ``token``, without evidence: its counts are zero."""
    evidence.tokens[slot] = token
    evidence.heads[slot] = -1
    evidence.best[slot] = 0
    evidence.sources[slot] = _PROMPT_SOURCE
    evidence.near_items[slot] = -1


@compiled(forceinline=True, borrows=True)
def gather(
    text: TextView,
    depth: int,
    rows: MatchRows,
    first_row: int,
    shapes: TokenShapes,
    near: int,
    evidence: Evidence,
) -> int:
    """Collect the evidence at the node whose path of ``depth`` tokens comes after the text.
    ``first_row`` begins the list of the rows that spell the path; ``near``: how many nearby tokens
    may be candidates without a match (0: an occurrence must match two tokens). Returns the number
    of candidates; ``forget`` must follow before the next call."""
    evidence.totals[:] = 0
    count = _count_rows(rows, first_row, depth, evidence)
    count = _count_occurrences(text, text.stop + depth, count, 1 if near else 2, evidence)
    if near:
        count = _add_near(evidence, count, near)
        _match_shapes(text, depth, shapes, near, evidence)
    _accumulate(evidence, count)
    return count


# Compiled code counts a reference at every access to a field of a tuple: the loops below that run
# hundreds of times take the arrays out first.


@compiled(forceinline=True, borrows=True)
def _count_rows(rows: MatchRows, first_row: int, depth: int, evidence: Evidence) -> int:
    """Count what the rows of a list say at ``depth`` and hand them to their candidates."""
    tokens, lengths, row_counts, row_sources, next_row = rows
    slots, counts, totals = evidence.slots, evidence.counts, evidence.totals
    heads, best, sources = evidence.heads, evidence.best, evidence.sources
    reach = evidence.reach
    count = 0
    row = first_row if depth < tokens.shape[1] else -1
    while row >= 0:
        following = next_row[row]
        token = tokens[row, depth]
        if 0 <= token < len(slots):
            length = lengths[row] + depth
            group = COMMON if row_sources[row] == _COMMON_SOURCE else REPOSITORY
            level = _MATCH_LEVELS[min(length, 17)]
            totals[group, level] += row_counts[row]
            slot = slots[token]
            if slot < 0 and count < MAX_MATCHED:
                slot = count
                count += 1
                slots[token] = slot
                _begin_candidate(evidence, token, slot)
            if slot >= 0:
                counts[slot, group, level] += row_counts[row]
                reach[slot, group] = max(reach[slot, group], level + 1)
                next_row[row] = heads[slot]
                heads[slot] = row
                if length > best[slot]:
                    best[slot] = length
                    sources[slot] = row_sources[row]
        row = following
    return count


@compiled(forceinline=True, borrows=True)
def _count_occurrences(
    text: TextView, stop: int, count: int, least: int, evidence: Evidence
) -> int:
    """Count what followed earlier occurrences of the last token before ``stop``, newest first.
    Those that match ``least`` tokens add candidates. Returns the number of candidates."""
    tokens, previous, newest, start = text.tokens, text.previous, text.newest, text.start
    slots, counts, totals = evidence.slots, evidence.counts, evidence.totals
    best, sources, reach = evidence.best, evidence.sources, evidence.reach
    last = tokens[stop - 1]
    position = newest[last] if last < len(newest) else -1
    if position == stop - 1:
        position = previous[position]
    visited = 0
    while position >= 0 and visited < MAX_OCCURRENCES:
        visited += 1
        token = tokens[position + 1]
        if token >= 0:
            length = 1
            while (
                length < MAX_MATCH
                and position >= length
                and tokens[position - length] == tokens[stop - 1 - length]
                and tokens[position - length] >= 0
            ):
                length += 1
            level = _MATCH_LEVELS[min(length, 17)]
            in_prompt = position >= start
            group = PROMPT if in_prompt else SUFFIX
            totals[group, level] += 1
            slot = slots[token]
            if slot < 0 and count < MAX_MATCHED and length >= least:
                slot = count
                count += 1
                slots[token] = slot
                _begin_candidate(evidence, token, slot)
            if slot >= 0:
                counts[slot, group, level] += 1
                reach[slot, group] = max(reach[slot, group], level + 1)
                # The text at hand speaks before an index that knows a copy of it.
                if length >= best[slot]:
                    best[slot] = length
                    sources[slot] = _PROMPT_SOURCE if in_prompt else _SUFFIX_SOURCE
        position = previous[position]
    return count


@compiled(forceinline=True, borrows=True)
def _add_near(evidence: Evidence, count: int, near: int) -> int:
    """Let the first ``near`` tokens near the cursor be candidates; returns how many there are."""
    tokens, near_items, near_tokens = evidence.tokens, evidence.near_items, evidence.near
    items, item_slots = evidence.items, evidence.item_slots
    heads, best, sources = evidence.heads, evidence.best, evidence.sources
    for item in range(near):
        item_slots[item] = -1
    for slot in range(count):
        item = items[tokens[slot]]
        if 0 <= item < near:
            near_items[slot] = item
            item_slots[item] = slot
    for item in range(near):
        if item_slots[item] < 0:
            item_slots[item] = count
            tokens[count] = near_tokens[item]
            near_items[count] = item
            heads[count] = -1
            best[count] = 0
            sources[count] = _PROMPT_SOURCE
            count += 1
    return count


@compiled(forceinline=True, borrows=True, inner=True)
def _match_shapes(
    text: TextView, depth: int, shapes: TokenShapes, near: int, evidence: Evidence
) -> None:
    """Count occurrences near the cursor whose left context has the shapes of the node's."""
    tokens, start, spelt = text.tokens, text.start, text.spelt
    shape_of, slots, reach = shapes.shapes, evidence.slots, evidence.reach
    items, item_slots = evidence.items, evidence.item_slots
    counts, totals = evidence.counts, evidence.totals
    stop = text.stop + depth
    for position in range(text.stop, stop):
        token = tokens[position]
        spelt[position] = shape_of[token] if token < len(shape_of) else 0
    longest = min(MAX_SHAPE_MATCH, stop - start)
    last = spelt[stop - 1]
    for position in range(stop - 2, max(start, stop - SHAPE_WINDOW) - 1, -1):
        if spelt[position] != last:
            continue
        most = min(longest, position + 1 - start)
        length = 1
        while length < most and spelt[position - length] == spelt[stop - 1 - length]:
            length += 1
        level = _SHAPE_LEVELS[length]
        totals[SHAPE, level] += 1
        token = tokens[position + 1]
        slot = slots[token]
        if slot < 0:
            item = items[token]
            if item < 0 or item >= near:
                continue
            slot = item_slots[item]
        counts[slot, SHAPE, level] += 1
        reach[slot, SHAPE] = max(reach[slot, SHAPE], level + 1)


@compiled(forceinline=True, borrows=True)
def _accumulate(evidence: Evidence, count: int) -> None:
    """From occurrences of exactly a match length to those of at least it."""
    counts, totals, reach, best = evidence.counts, evidence.totals, evidence.reach, evidence.best
    for group in range(MATCHED_GROUPS):
        for level in range(LEVELS - 2, -1, -1):
            totals[group, level] += totals[group, level + 1]
    for slot in range(count):
        for group in range(0 if best[slot] > 0 else SHAPE, MATCHED_GROUPS):
            for level in range(reach[slot, group] - 2, -1, -1):
                counts[slot, group, level] += counts[slot, group, level + 1]


@compiled(forceinline=True, borrows=True)
def forget(evidence: Evidence, count: int) -> None:
    """Clear what ``count`` candidates wrote, for the next node."""
    slots, tokens, counts = evidence.slots, evidence.tokens, evidence.counts
    reach, best = evidence.reach, evidence.best
    for slot in range(count):
        if best[slot] > 0:
            slots[tokens[slot]] = -1
        for group in range(0 if best[slot] > 0 else SHAPE, MATCHED_GROUPS):
            for level in range(reach[slot, group]):
                counts[slot, group, level] = 0
            reach[slot, group] = 0
