"""What stands near the cursor: the same for all nodes of a tree.

Code that no index knows repeats names that stood a few lines above or stand below, perhaps with
another mark before them. Each such token is counted by how far away it stands.
"""

from __future__ import annotations

from accel import lanes
from accel.lanes import fetch_all
from accel.sources import evidence as evidence_of
from accel.sources.compiled import compiled_with
from accel.sources.evidence import AFTER, BEFORE, LEVELS, VARIANT, Evidence, Text
from accel.sources.token_shapes import TokenShapes

NEAR = 1024
NEAR_TOKENS = 80
NEAR_WORDS = 32
AFTER_TOKENS = 24
MOST_FETCHED = 8192
"""Of tables of the vocabulary, as many items are asked for at once; more would drive out others."""


FIRST_REACH = 4
"""Tokens up to so far away are on level 0; each level reaches twice as far as the one before."""


# A call for each token would count references to all arrays, ten times as long as the work itself.


@compiled_with(evidence_of, lanes, forceinline=True, borrows=True)
def fetch_surroundings(text: Text, evidence: Evidence) -> None:
    """Have what ``note_surroundings`` reads and writes come from memory."""
    first = max(text.start, text.stop - NEAR)
    fetch_all(text.tokens[first : text.stop], NEAR)
    fetch_all(evidence.near_counts, evidence.near_counts.size)
    fetch_all(evidence.slots, min(len(evidence.slots), MOST_FETCHED))
    fetch_all(evidence.items, min(len(evidence.items), MOST_FETCHED))


@compiled_with(evidence_of, borrows=True)
def note_surroundings(text: Text, shapes: TokenShapes, evidence: Evidence) -> int:  # noqa: PLR0915
    """Fill ``evidence.near`` for the cursor; returns how many different tokens stand near."""
    tokens, slots, near = text.tokens, evidence.slots, evidence.near
    near_counts, items, last = evidence.near_counts, evidence.items, evidence.last
    kinds, room = near_counts.shape[1], len(near)
    count = level = 0
    reach = FIRST_REACH
    for position in range(text.stop - 1, max(text.start, text.stop - NEAR) - 1, -1):
        if text.stop - position > reach and level < LEVELS - 1:
            reach, level = 2 * reach, level + 1
        token = tokens[position]
        slot = slots[token]
        if slot < 0:
            if count >= NEAR_TOKENS:
                continue
            slot = count
            count += 1
            slots[token], near[slot] = slot, token
            for kind in range(kinds):
                for each in range(LEVELS):
                    near_counts[slot, kind, each] = 0
        near_counts[slot, BEFORE - BEFORE, level] += 1
    limit, level, reach = min(room, count + AFTER_TOKENS), 0, FIRST_REACH
    for position in range(min(NEAR, text.start - 1)):
        if position + 1 > reach and level < LEVELS - 1:
            reach, level = 2 * reach, level + 1
        token = tokens[position]
        slot = slots[token]
        if slot < 0:
            if count >= limit:
                continue
            slot = count
            count += 1
            slots[token], near[slot] = slot, token
            for kind in range(kinds):
                for each in range(LEVELS):
                    near_counts[slot, kind, each] = 0
        near_counts[slot, AFTER - BEFORE, level] += 1
    words, variant_starts, variants = shapes.words, shapes.variant_starts, shapes.variants
    seen_words = 0
    for near_slot in range(count):
        token = near[near_slot]
        word = words[token] if token < len(words) else -1
        if word < 0:
            continue
        seen_words += 1
        if seen_words > NEAR_WORDS:
            break
        level = 0
        while level < LEVELS and near_counts[near_slot, 0, level] == 0:
            level += 1
        if level == LEVELS:
            continue
        for v in range(variant_starts[word], variant_starts[word + 1]):
            variant = variants[v]
            if variant == token or variant >= len(slots):
                continue
            slot = slots[variant]
            if slot < 0:
                if count >= room:
                    continue
                slot = count
                count += 1
                slots[variant], near[slot] = slot, variant
                for kind in range(kinds):
                    for each in range(LEVELS):
                        near_counts[slot, kind, each] = 0
            near_counts[slot, VARIANT - BEFORE, level] += 1
    for item in range(evidence.noted[0]):  # of the last tree
        items[last[item]] = -1
    for item in range(count):
        token = near[item]
        slots[token], items[token], last[item] = -1, item, token
    evidence.noted[0] = count
    return count
