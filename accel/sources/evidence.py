"""What speaks for each possible next token of one context, counted by kind and strength.

Evidence for a token comes in groups. Four groups count occurrences that match the end of the
context exactly, by match length: in the prompt and output, in the text after the cursor, in the
repository, in common code. One counts occurrences that match only in shape (``token_shapes``).
Three count where the token, or another spelling of its word, stands near: before the cursor and
after it, by distance. ``acceptance`` turns the counts into probabilities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.draft_tree import Source, TokenArray
from accel.sources.token_shapes import TokenShapes

PROMPT, SUFFIX, REPOSITORY, COMMON, SHAPE, BEFORE, AFTER, VARIANT = range(8)
GROUPS = 8
MATCHED_GROUPS = 5
"""Groups whose level is a match length; those of the others is a distance."""
LEVELS = 9

MAX_MATCH = 24
MAX_SHAPE_MATCH = 16
MAX_MATCHED = 96
"""Candidates that occurrences may bring."""
MAX_NEAR = 128
"""Candidates that stand near."""
MAX_CANDIDATES = MAX_MATCHED + MAX_NEAR
MAX_OCCURRENCES = 400
NEAR = 1024
SHAPE_WINDOW = 384
NEAR_TOKENS = 80
NEAR_WORDS = 32
AFTER_TOKENS = 24

_MATCH_LEVELS = np.array([0, 0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8], np.int8)
_SHAPE_LEVELS = np.array([0, 0, 1, 2, 3, 4, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8], np.int8)
_PROMPT_SOURCE, _SUFFIX_SOURCE = np.int8(Source.PROMPT), np.int8(Source.SUFFIX)
_COMMON_SOURCE = np.int8(Source.COMMON)


class Text(NamedTuple):
    """The dynamic index: text after the cursor, a separator, prompt and output (``prompt``).

    tokens: int32, with room behind the end for a path of the tree; previous: int32, the position
    before of the same token; newest: int32 [vocabulary], the last position of a token;
    start: where the prompt begins; stop: where the output ends.
    """

    tokens: TokenArray
    previous: TokenArray
    newest: TokenArray
    start: int
    stop: int


class Rows(NamedTuple):
    """Continuations that an index gave for the context, as in ``protocol.Continuations``.

    following: int32 [n], for linked lists of rows, -1 ends one.
    """

    tokens: TokenArray
    lengths: TokenArray
    counts: NDArray[np.float32]
    sources: NDArray[np.int8]
    following: TokenArray


class Evidence(NamedTuple):
    """Room for the evidence at one node, used again for the next.

    slots: int32 [vocabulary], candidate of a token or -1; tokens: int32 [candidates];
    counts: float32 [candidates, MATCHED_GROUPS, levels]; totals: float32 [MATCHED_GROUPS, levels];
    heads: int32 [candidates], first row of each; best: int32 [candidates], longest match;
    sources: int8 [candidates]; near_items: int32 [candidates], place in ``near`` or -1.
    near: int32 [tokens], what stands near the cursor, and near_counts: float32 [tokens, 3, levels],
    how often and where: the same for all nodes of a tree.
    """

    slots: TokenArray
    tokens: TokenArray
    counts: NDArray[np.float32]
    totals: NDArray[np.float32]
    heads: TokenArray
    best: TokenArray
    sources: NDArray[np.int8]
    near_items: TokenArray
    near: TokenArray
    near_counts: NDArray[np.float32]

    @classmethod
    def room(cls, vocabulary: int) -> Evidence:
        """Room for token ids below ``vocabulary``."""
        return cls(
            np.full(vocabulary, -1, np.int32),
            np.empty(MAX_CANDIDATES, np.int32),
            np.zeros((MAX_CANDIDATES, MATCHED_GROUPS, LEVELS), np.float32),
            np.zeros((MATCHED_GROUPS, LEVELS), np.float32),
            np.empty(MAX_CANDIDATES, np.int32),
            np.empty(MAX_CANDIDATES, np.int32),
            np.empty(MAX_CANDIDATES, np.int8),
            np.empty(MAX_CANDIDATES, np.int32),
            np.empty(MAX_NEAR, np.int32),
            np.zeros((MAX_NEAR, GROUPS - MATCHED_GROUPS, LEVELS), np.float32),
        )


@njit(nogil=True, cache=True, inline="always")
def _distance_level(distance: int) -> int:
    """0 up to 4 tokens away, one more for each doubling, 8 at most."""
    level = 0
    reach = 4
    while distance > reach and level < LEVELS - 1:
        reach *= 2
        level += 1
    return level


@njit(nogil=True, cache=True)
def _begin_candidate(evidence: Evidence, token: int, slot: int) -> None:
    """Let ``slot`` be the candidate of ``token``, without evidence."""
    evidence.slots[token] = slot
    evidence.tokens[slot] = token
    evidence.counts[slot] = 0
    evidence.heads[slot] = -1
    evidence.best[slot] = 0
    evidence.sources[slot] = _PROMPT_SOURCE
    evidence.near_items[slot] = -1


@njit(nogil=True, cache=True)
def _note_near(
    evidence: Evidence, count: int, limit: int, token: int, kind: int, level: int
) -> int:
    """Count ``token`` among what stands near; returns how many different tokens do."""
    slot = evidence.slots[token]
    if slot < 0:
        if count >= limit:
            return count
        slot = count
        count += 1
        evidence.slots[token] = slot
        evidence.near[slot] = token
        evidence.near_counts[slot] = 0
    evidence.near_counts[slot, kind, level] += 1
    return count


@njit(nogil=True, cache=True)
def note_surroundings(text: Text, shapes: TokenShapes, evidence: Evidence) -> int:
    """Fill ``evidence.near`` for the cursor; returns how many different tokens stand near."""
    count = 0
    room = len(evidence.near)
    first = max(text.start, text.stop - NEAR)
    for position in range(text.stop - 1, first - 1, -1):
        level = _distance_level(text.stop - position)
        count = _note_near(
            evidence, count, NEAR_TOKENS, text.tokens[position], BEFORE - BEFORE, level
        )
    limit = min(room, count + AFTER_TOKENS)
    for position in range(min(NEAR, text.start - 1)):
        level = _distance_level(position + 1)
        count = _note_near(evidence, count, limit, text.tokens[position], AFTER - BEFORE, level)
    words = 0
    before_variants = count
    for slot in range(before_variants):
        token = evidence.near[slot]
        word = shapes.words[token] if token < len(shapes.words) else -1
        if word < 0:
            continue
        words += 1
        if words > NEAR_WORDS:
            break
        for v in range(shapes.variant_starts[word], shapes.variant_starts[word + 1]):
            variant = shapes.variants[v]
            if variant != token and variant < len(evidence.slots):
                for level in range(LEVELS):
                    if evidence.near_counts[slot, 0, level] > 0:
                        count = _note_near(evidence, count, room, variant, VARIANT - BEFORE, level)
                        break
    for slot in range(count):
        evidence.slots[evidence.near[slot]] = -1
    return count


@njit(nogil=True, cache=True)
def gather(
    text: Text,
    depth: int,
    rows: Rows,
    first_row: int,
    shapes: TokenShapes,
    near: int,
    evidence: Evidence,
) -> int:
    """Collect the evidence at the node whose path of ``depth`` tokens stands behind the text.

    ``first_row`` begins the list of the rows that spell the path; they are handed on to the
    candidates. ``near``: how many of the tokens that stand near may be candidates without any
    match. With 0 the node is narrow: an occurrence must match two tokens to bring a candidate.
    Returns the number of candidates; ``forget`` must follow before the next call.
    """
    evidence.totals[:] = 0
    count = _count_rows(rows, first_row, depth, evidence)
    count = _count_occurrences(text, text.stop + depth, count, 1 if near else 2, evidence)
    if near:
        for item in range(near):
            token = evidence.near[item]
            if evidence.slots[token] < 0:
                _begin_candidate(evidence, token, count)
                count += 1
            evidence.near_items[evidence.slots[token]] = item
        _match_shapes(text, text.stop + depth, shapes, evidence)
    _accumulate(evidence, count)
    return count


# Compiled code counts a reference at every access to a field of a tuple: the loops below that run
# hundreds of times take the arrays out first.


@njit(nogil=True, cache=True)
def _count_rows(rows: Rows, first_row: int, depth: int, evidence: Evidence) -> int:
    """Count what the rows of a list say at ``depth`` and hand them to their candidates."""
    tokens, lengths, row_counts, row_sources, next_row = rows
    slots, counts, totals = evidence.slots, evidence.counts, evidence.totals
    heads, best, sources = evidence.heads, evidence.best, evidence.sources
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
                _begin_candidate(evidence, token, slot)
            if slot >= 0:
                counts[slot, group, level] += row_counts[row]
                next_row[row] = heads[slot]
                heads[slot] = row
                if length > best[slot]:
                    best[slot] = length
                    sources[slot] = row_sources[row]
        row = following
    return count


@njit(nogil=True, cache=True)
def _count_occurrences(text: Text, stop: int, count: int, least: int, evidence: Evidence) -> int:
    """Count what followed earlier occurrences of the last token before ``stop``, newest first.

    Those that match ``least`` tokens bring candidates. Returns the number of candidates.
    """
    tokens, previous, newest, start, _ = text
    slots, counts, totals = evidence.slots, evidence.counts, evidence.totals
    best, sources = evidence.best, evidence.sources
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
                _begin_candidate(evidence, token, slot)
            if slot >= 0:
                counts[slot, group, level] += 1
                # The text at hand speaks before an index that knows a copy of it.
                if length >= best[slot]:
                    best[slot] = length
                    sources[slot] = _PROMPT_SOURCE if in_prompt else _SUFFIX_SOURCE
        position = previous[position]
    return count


@njit(nogil=True, cache=True)
def _match_shapes(text: Text, stop: int, shapes: TokenShapes, evidence: Evidence) -> None:
    """Count occurrences near the cursor whose left context has the shapes of the node's."""
    tokens, start = text.tokens, text.start
    spelt, slots = shapes.shapes, evidence.slots
    counts, totals = evidence.counts, evidence.totals
    known = len(spelt)
    depth = min(MAX_SHAPE_MATCH, stop - start)
    first = max(start, stop - SHAPE_WINDOW)
    # Shapes of the window and of what stands before it, newest first.
    spelling = np.empty(SHAPE_WINDOW + MAX_SHAPE_MATCH, np.int8)
    written = min(stop - start, SHAPE_WINDOW + MAX_SHAPE_MATCH)
    for back in range(written):
        token = tokens[stop - 1 - back]
        spelling[back] = spelt[token] if token < known else 0
    last = spelling[0]
    for back in range(1, stop - first):
        if spelling[back] != last:
            continue
        length = 1
        while length < depth and back + length < written:
            if spelling[back + length] != spelling[length]:
                break
            length += 1
        level = _SHAPE_LEVELS[length]
        totals[SHAPE, level] += 1
        slot = slots[tokens[stop - back]]
        if slot >= 0:
            counts[slot, SHAPE, level] += 1


@njit(nogil=True, cache=True)
def _accumulate(evidence: Evidence, count: int) -> None:
    """From occurrences of exactly a match length to those of at least it."""
    counts, totals = evidence.counts, evidence.totals
    for group in range(MATCHED_GROUPS):
        for level in range(LEVELS - 2, -1, -1):
            if totals[group, level + 1] > 0:
                totals[group, level] += totals[group, level + 1]
                for slot in range(count):
                    counts[slot, group, level] += counts[slot, group, level + 1]


@njit(nogil=True, cache=True)
def forget(evidence: Evidence, count: int) -> None:
    """Make room for the next node after ``count`` candidates."""
    slots, tokens = evidence.slots, evidence.tokens
    for slot in range(count):
        slots[tokens[slot]] = -1
