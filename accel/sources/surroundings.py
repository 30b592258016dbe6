"""What stands near the cursor: the same for all nodes of a tree.

Code that no index knows repeats names that stood a few lines above or stand below, perhaps with
another mark before them. Each such token is counted by how far away it stands.
"""

from __future__ import annotations

from numba import njit

from accel.sources import evidence as evidence_of
from accel.sources.compiled import compiled_with
from accel.sources.evidence import AFTER, BEFORE, LEVELS, VARIANT, Evidence, Text
from accel.sources.token_shapes import TokenShapes

NEAR = 1024
NEAR_TOKENS = 80
NEAR_WORDS = 32
AFTER_TOKENS = 24


@njit(nogil=True, cache=True, inline="always")
def _distance_level(distance: int) -> int:
    """0 up to 4 tokens away, one more for each doubling, 8 at most."""
    level = 0
    reach = 4
    while distance > reach and level < LEVELS - 1:
        reach *= 2
        level += 1
    return level


@compiled_with(evidence_of)
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


@compiled_with(evidence_of)
def note_surroundings(text: Text, shapes: TokenShapes, evidence: Evidence) -> int:
    """Fill ``evidence.near`` for the cursor; returns how many different tokens stand near."""
    count = 0
    last = evidence.last
    room = len(evidence.near)
    first = max(text.start, text.stop - NEAR)
    # A call for each token would count references to all arrays: ten times as long.
    tokens, slots, near = text.tokens, evidence.slots, evidence.near
    near_counts = evidence.near_counts
    for position in range(text.stop - 1, first - 1, -1):
        token = tokens[position]
        slot = slots[token]
        if slot < 0:
            if count >= NEAR_TOKENS:
                continue
            slot = count
            count += 1
            slots[token] = slot
            near[slot] = token
            for kind in range(near_counts.shape[1]):
                for level in range(LEVELS):
                    near_counts[slot, kind, level] = 0
        near_counts[slot, BEFORE - BEFORE, _distance_level(text.stop - position)] += 1
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
    for item in range(evidence.noted[0]):  # of the last tree
        evidence.items[last[item]] = -1
    for item in range(count):
        token = evidence.near[item]
        evidence.slots[token] = -1
        evidence.items[token] = item
        last[item] = token
    evidence.noted[0] = count
    return count
