"""The cache keeps the rows it is told to keep, however it grows and is trimmed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from accel.execution.session import Session
from accel.models.transformers_model import TransformersCache


def filled(capacity: int) -> TransformersCache:
    cache = TransformersCache(1, capacity)
    cache.buffers = [torch.zeros(2, 3, capacity, 4), torch.zeros(1, capacity, 2)]
    return cache


@torch.inference_mode()
def write(cache: TransformersCache, labels: list[int]) -> None:
    cache.reserve(len(labels))
    rows = torch.tensor(labels, dtype=torch.float32)[:, None]
    for buffer in cache.buffers:
        buffer.narrow(-2, cache.length, len(labels)).copy_(rows.expand(-1, buffer.shape[-1]))


def held(cache: TransformersCache) -> list[list[float]]:
    if not cache.length:
        return [[], []]
    rows = [buffer.narrow(-2, 0, cache.length) for buffer in cache.buffers]
    flat = [buffer.reshape(-1, cache.length, buffer.shape[-1]) for buffer in rows]
    for buffer in flat:
        assert bool((buffer == buffer[:1, :, :1]).all()), "all heads and depths move together"
    return [buffer[0, :, 0].tolist() for buffer in flat]


def test_random_commits_equal_a_list() -> None:
    """500 forwards of random rows, of which random ascending ones are kept; trims in between."""
    random = np.random.default_rng(4)
    cache, expected, label = filled(5), list[float](), 0
    for _ in range(500):
        count = int(random.integers(1, 12))
        labels = list(range(label, label + count))
        label += count
        write(cache, labels)
        kept = sorted(random.choice(count, random.integers(0, count + 1), replace=False).tolist())
        cache.commit(kept)
        expected += [float(labels[row]) for row in kept]
        if random.random() < 0.2:
            length = int(random.integers(0, len(expected) + 1))
            cache.trim(length)
            expected = expected[:length]
        assert held(cache) == [expected, expected]
        assert cache.capacity >= cache.length


def test_rows_in_place_are_not_moved() -> None:
    cache = filled(8)
    write(cache, [1, 2, 3])
    cache._move = None  # type: ignore[method-assign, assignment]
    cache.commit([0, 1])
    assert held(cache) == [[1.0, 2.0], [1.0, 2.0]]


def test_growth_keeps_what_is_committed_and_adds_half() -> None:
    cache = filled(10)
    write(cache, list(range(9)))
    cache.commit(list(range(9)))
    cache.reserve(2)
    assert cache.capacity == 15
    assert held(cache)[0] == [float(row) for row in range(9)]
    assert cache.nbytes == sum(4 * buffer.numel() for buffer in cache.buffers)


def test_a_cache_cannot_be_trimmed_to_more_than_it_holds() -> None:
    with pytest.raises(AssertionError):
        filled(4).trim(1)


def test_a_session_keeps_the_nodes_of_a_path() -> None:
    """As ``keep`` by all rows: along the first nodes, which stay where they are, and elsewhere."""
    random = np.random.default_rng(3)
    by_rows, by_path = Session(lambda: filled(4)), Session(lambda: filled(4))
    for _ in range(30):
        pending = random.integers(0, 100, random.integers(1, 4)).astype(np.int32)
        nodes = random.integers(0, 100, random.integers(0, 8)).astype(np.int32)
        size = int(random.integers(0, len(nodes) + 1))
        is_chain = random.integers(2) == 0
        path = sorted(random.permutation(len(nodes))[:size].tolist())
        path = list(range(size)) if is_chain else path
        rows = [*range(len(pending)), *(len(pending) + node for node in path)]
        kept = np.concatenate([pending, nodes])[rows]
        for session in (by_rows, by_path):
            session.cache.reserve(len(pending) + len(nodes))
            write(session.cache, [*pending.tolist(), *nodes.tolist()])
        by_rows.commit(kept, rows)
        by_path.commit_path(pending, path, np.append(nodes[path], np.int32(7)))
        assert by_path.tokens.tolist() == by_rows.tokens.tolist()
        assert held(by_path.cache) == held(by_rows.cache)
    assert len(by_path.tokens) > 60


def test_a_session_reuses_the_common_prefix() -> None:
    session = Session(lambda: filled(4))
    first = np.array([5, 6, 7, 8], np.int32)
    assert session.reuse(first) == 0
    write(session.cache, first.tolist())
    session.commit(first, [0, 1, 2, 3])
    assert session.reuse(first) == 3, "the last token is computed again for its logits"
    write(session.cache, [8])
    session.commit(np.array([8], np.int32), [0])
    assert session.reuse(np.array([5, 6, 9, 9, 9], np.int32)) == 2
    assert session.tokens.tolist() == [5, 6]
    session.drop()
    assert session.length == 0
    assert session.reuse(first) == 0
