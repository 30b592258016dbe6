"""The tokens near the cursor, by distance: the same for all nodes of a tree."""

from __future__ import annotations

from accel.draft_tree import TokenArray
from accel.drafting.retrieval.candidate_features import (
    AFTER,
    BEFORE,
    LEVELS,
    VARIANT,
    Evidence,
    TextView,
)
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.native.numba_cache import compiled
from accel.native.simd import prefetch_all

# Measure with `python -m tests.benchmarks completion --cases CASES/completion_repoeval.jsonl`.
NEAR = 1024
NEAR_TOKENS = 80
NEAR_WORDS = 32
AFTER_TOKENS = 24
MOST_FETCHED = 8192
"""Items of a table that are prefetched at most; more would drive out others."""

FIRST_REACH = 4
"""Tokens up to so far away are on level 0; each level reaches twice as far as the one before."""


@compiled(forceinline=True, borrows=True)
def fetch_surroundings(text: TextView, evidence: Evidence) -> None:
    """Have what ``note_surroundings`` reads and writes come from memory."""
    first = max(text.start, text.stop - NEAR)
    prefetch_all(text.tokens[first : text.stop], NEAR)
    prefetch_all(evidence.near_counts, evidence.near_counts.size)
    prefetch_all(evidence.slots, min(len(evidence.slots), MOST_FETCHED))
    prefetch_all(evidence.items, min(len(evidence.items), MOST_FETCHED))


@compiled(borrows=True)
def note_surroundings(text: TextView, shapes: TokenShapes, evidence: Evidence) -> int:
    """Fill ``evidence.near`` for the cursor; returns how many different tokens are near."""
    tokens, stop = text.tokens, text.stop
    before, after = min(NEAR, stop - text.start), min(NEAR, text.start - 1)
    count: int = _note_run(BEFORE, tokens, stop - 1, -1, before, evidence, 0, NEAR_TOKENS)
    limit = min(len(evidence.near), count + AFTER_TOKENS)
    count = _note_run(AFTER, tokens, 0, 1, after, evidence, count, limit)
    count = _note_variants(shapes, evidence, count)
    _leave_items(evidence, count)
    return count


@compiled(forceinline=True, borrows=True)
def _slot_of(token: int, evidence: Evidence, count: int, limit: int) -> int:
    """Return the slot of a token: that after the first ``count`` where it has none yet, -1 where
    these are ``limit``."""
    slot = evidence.slots[token]
    if slot >= 0 or count >= limit:
        return slot
    evidence.slots[token], evidence.near[count] = count, token
    for kind in range(evidence.near_counts.shape[1]):
        for level in range(LEVELS):
            evidence.near_counts[count, kind, level] = 0
    return count


@compiled(forceinline=True, borrows=True)
def _note_run(
    kind: int,
    tokens: TokenArray,
    first: int,
    step: int,
    length: int,
    evidence: Evidence,
    count: int,
    limit: int,
) -> int:
    """Count ``length`` tokens by how far they are from the cursor, from the nearest, at ``first``,
    on; returns how many different ones there are with the first ``count``, at most ``limit``."""
    level, reach = 0, FIRST_REACH
    for away in range(length):
        if away + 1 > reach and level < LEVELS - 1:
            reach, level = 2 * reach, level + 1
        slot = _slot_of(tokens[first + step * away], evidence, count, limit)
        if slot >= 0:
            evidence.near_counts[slot, kind - BEFORE, level] += 1
            count = max(count, slot + 1)
    return count


@compiled(forceinline=True, borrows=True)
def _note_variants(shapes: TokenShapes, evidence: Evidence, count: int) -> int:
    """Count what is the same word as a token that is before the cursor, of the first words
    among these; returns how many tokens there are then."""
    seen_words, noted = 0, count
    for near_slot in range(noted):
        token = evidence.near[near_slot]
        word = shapes.words[token] if token < len(shapes.words) else -1
        if word < 0:
            continue
        seen_words += 1
        if seen_words > NEAR_WORDS:
            break
        level = 0
        while level < LEVELS and evidence.near_counts[near_slot, 0, level] == 0:
            level += 1
        if level == LEVELS:
            continue
        for index in range(shapes.variant_starts[word], shapes.variant_starts[word + 1]):
            variant = shapes.variants[index]
            if variant == token or variant >= len(evidence.slots):
                continue
            slot = _slot_of(variant, evidence, count, len(evidence.near))
            if slot >= 0:
                evidence.near_counts[slot, VARIANT - BEFORE, level] += 1
                count = max(count, slot + 1)
    return count


@compiled(forceinline=True, borrows=True)
def _leave_items(evidence: Evidence, count: int) -> None:
    for item in range(evidence.noted[0]):
        evidence.items[evidence.last[item]] = -1
    for item in range(count):
        token = evidence.near[item]
        evidence.slots[token], evidence.items[token], evidence.last[item] = -1, item, token
    evidence.noted[0] = count
