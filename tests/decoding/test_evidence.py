"""Evidence for next tokens, compiled, against the same counts made with dictionaries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from seeds import for_each_seed

from accel.draft_tree import Source
from accel.drafting.retrieval import candidate_features as kinds
from accel.drafting.retrieval.candidate_features import LEVELS, Evidence, MatchRows, forget, gather
from accel.drafting.retrieval.nearby_tokens import note_surroundings
from accel.drafting.retrieval.prompt_index import PromptIndex
from accel.drafting.retrieval.token_classes import TokenShapes, shape_of

MATCH_LIMITS = [1, 2, 3, 4, 6, 8, 12, 16]
SHAPE_LIMITS = [1, 2, 3, 4, 5, 7, 11, 15]


def level_of(length, limits):
    return sum(length > limit for limit in limits)


def distance_level(distance):
    return next(level for level in range(9) if distance <= 4 << level or level == 8)


def common_end(first, second, limit):
    length = 0
    while (
        length < min(len(first), len(second), limit) and first[-1 - length] == second[-1 - length]
    ):
        length += 1
    return length


def slow_gather(suffix, context, path, rows, shapes, wide):
    """Counts by (group, token) and totals by group, lists of ``LEVELS`` numbers."""
    counts = defaultdict(lambda: np.zeros(LEVELS))
    totals = defaultdict(lambda: np.zeros(LEVELS))
    candidates = set()
    text = context + path
    for tokens, length, count, source in rows:
        if tokens[: len(path)] == path and len(tokens) > len(path) and tokens[len(path)] >= 0:
            group = kinds.COMMON if source == Source.COMMON else kinds.REPOSITORY
            level = level_of(length + len(path), MATCH_LIMITS)
            counts[group, tokens[len(path)]][level] += count
            totals[group][level] += count
            candidates.add(tokens[len(path)])
    seen = [(kinds.PROMPT, context, text), (kinds.SUFFIX, suffix, suffix)]
    for group, starts, whole in seen:
        for position in range(len(starts)):
            following = whole[position + 1] if position + 1 < len(whole) else None
            length = common_end(whole[: position + 1], text, kinds.MAX_MATCH)
            if position == len(text) - 1 and group == kinds.PROMPT:
                continue
            if length and following is not None:
                level = level_of(length, MATCH_LIMITS)
                totals[group][level] += 1
                counts[group, following][level] += 1
                if wide or length > 1:
                    candidates.add(following)
    if wide:
        for position in range(len(context)):
            distance = len(context) - position
            counts[kinds.BEFORE, context[position]][distance_level(distance)] += 1
        for position, token in enumerate(suffix):
            counts[kinds.AFTER, token][distance_level(position + 1)] += 1
        near = set(context) | set(suffix)
        for token in near:
            for variant in np.flatnonzero(shapes.words == shapes.words[token]).tolist():
                if shapes.words[token] >= 0 and variant != token:
                    near = near | {variant}
                    levels = np.flatnonzero(counts[kinds.BEFORE, token])
                    if len(levels):
                        counts[kinds.VARIANT, variant][levels[0]] += 1
        candidates |= near
        spelt = shapes.shapes.tolist()
        for position in range(len(text) - 1):
            length = common_end(
                [spelt[token] for token in text[: position + 1]],
                [spelt[token] for token in text],
                kinds.MAX_SHAPE_MATCH,
            )
            if length:
                level = level_of(length, SHAPE_LIMITS)
                totals[kinds.SHAPE][level] += 1
                counts[kinds.SHAPE, text[position + 1]][level] += 1
    for each in (counts, totals):
        for key, levels in each.items():
            group = key[0] if isinstance(key, tuple) else key
            if group < kinds.MATCHED_GROUPS:
                each[key] = np.cumsum(levels[::-1])[::-1]
    return candidates, counts, totals


SPELLING = [b"", b" x", b"x", b"(", b")", b" mask", b"mask", b"(mask", b"\n", b"if", b" =", b"1"]


@for_each_seed(range(15))
def test_equals_the_slow_form(seed):
    random = np.random.default_rng(seed)
    vocabulary = len(SPELLING)
    shapes = TokenShapes.of(SPELLING)
    suffix = random.integers(0, vocabulary, random.integers(1, 30)).tolist()
    context = random.integers(0, vocabulary, random.integers(2, 80)).tolist()
    path = random.integers(0, vocabulary, random.integers(0, 4)).tolist()
    index = PromptIndex(shapes.shapes)
    index.begin(np.array(context, np.int32), np.array(suffix, np.int32))
    text = index.text(spare=8)
    text.tokens[text.stop : text.stop + len(path)] = path

    tokens = random.integers(0, vocabulary, (20, 6)).astype(np.int32)
    tokens[::2, : len(path)] = path
    tokens[random.random(20) < 0.2, 4:] = -1
    lengths = random.integers(1, 20, 20).astype(np.int32)
    counts = random.integers(1, 5, 20).astype(np.float32)
    sources = random.choice([Source.BUFFER, Source.REPOSITORY, Source.COMMON], 20).astype(np.int8)
    spelling_path = np.flatnonzero((tokens[:, : len(path)] == path).all(axis=1))
    following = np.full(20, -1, np.int32)
    following[spelling_path[:-1]] = spelling_path[1:]
    rows = MatchRows(tokens, lengths, counts, sources, following)
    first = int(spelling_path[0]) if len(spelling_path) else -1

    evidence = Evidence.allocate(len(text.newest))
    wide = bool(random.random() < 0.5)
    near = note_surroundings(text, shapes, evidence) if wide else 0
    count = gather(text, len(path), rows, first, shapes, near, evidence)
    slow_rows = list(
        zip(tokens.tolist(), lengths.tolist(), counts.tolist(), sources.tolist(), strict=True)
    )
    candidates, slow_counts, slow_totals = slow_gather(
        suffix, context, path, slow_rows, shapes, wide
    )
    assert sorted(evidence.tokens[:count].tolist()) == sorted(candidates)
    for group in range(kinds.MATCHED_GROUPS):
        assert np.allclose(evidence.totals[group], slow_totals[group]), group
    for slot in range(count):
        for group in range(kinds.GROUPS):
            token, item = int(evidence.tokens[slot]), int(evidence.near_items[slot])
            if group < kinds.MATCHED_GROUPS:
                counted = evidence.counts[slot, group]
            else:
                counted = evidence.near_counts[item, group - kinds.BEFORE] if item >= 0 else 0
            assert np.allclose(counted, slow_counts[group, token]), (group, token)
    forget(evidence, count)
    assert (evidence.slots == -1).all()


def test_shapes_of_tokens():
    assert shape_of(" mask") == shape_of(" x") != shape_of("mask")
    assert shape_of("if") == shape_of(" return") != shape_of("iffy")
    assert shape_of("\n    ") != shape_of("    ")
    assert shape_of(").") == shape_of("]:")
    assert shape_of("") == 0


def test_spellings_of_one_word_are_variants():
    shapes = TokenShapes.of([b" mask", b"(mask", b"mask", b"task", b"x", b" x"])
    word = shapes.words[0]
    assert word >= 0
    first, last = shapes.variant_starts[word], shapes.variant_starts[word + 1]
    assert sorted(shapes.variants[first:last].tolist()) == [0, 1, 2]
    assert shapes.words[3] == -1  # no other spelling
    assert shapes.words[4] == -1  # one letter is no word
