"""A forward on several threads: the same numbers, and what happens when one is late."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bit_by_bit import computed
from numba import njit
from tiny_models import compiled, numbers, save

from accel.draft_tree import DraftTree, Source
from accel.models.batch import chain_batch, tree_batch
from accel.models.cpu.barrier import (
    _ASLEEP,
    _FUTEX,
    await_after,
    begin,
    is_last_to_arrive,
    join,
    new_barrier,
    open_step,
    take,
)
from accel.models.cpu.thread_pool import ThreadPool
from accel.verification.verify_tree import verify_tree

WIDE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("wide"), "llama", **WIDE)


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
@pytest.mark.parametrize(
    "counts", [(1, 2, 7, 16, 33, 65), pytest.param(range(1, 66), marks=pytest.mark.long)]
)
def test_threads_compute_what_one_does(folder: Path, dtype: str, counts: Sequence[int]) -> None:
    """To the bit, at every number of rows and of threads: logits, keys and values."""
    model = compiled(folder, dtype)
    random = np.random.default_rng(5)
    text = chain_batch(random.integers(0, 256, 21).astype(np.int32), 21)
    for count in counts:
        tokens = random.integers(0, 256, count).astype(np.int32)
        rows = chain_batch(tokens, int(random.integers(0, count)))
        model.threads = 1
        alone, expected = computed(model, text, rows)
        for model.threads in (2, 3, 4):
            shared, cache = computed(model, text, rows)
            assert np.array_equal(alone, shared), (count, model.threads)
            for part, wanted in zip(cache.kv, expected.kv, strict=True):
                assert (part == wanted).all(), (count, model.threads)


def test_a_forward_is_that_of_its_own_cache_and_rows(folder: Path) -> None:
    """Two caches by turns, one row and many, walks and logits, right after one another, when other
    threads have fallen asleep, and when they come late."""
    seed = int(np.random.default_rng().integers(2**31))
    random = np.random.default_rng(seed)
    model = compiled(folder, "int8")
    caches = [model.new_cache(64), model.new_cache(64)]
    for number in range(200):
        cache = caches[int(random.random() < 0.2)]
        if cache.length > 80:
            cache.trim(3)
        count = int(random.integers(0, 40) if random.random() < 0.3 else random.integers(0, 3))
        tree = DraftTree.chain(random.integers(0, 256, count).astype(np.int32), Source.PROMPT)
        rows = tree_batch(random.integers(0, 256, 1).astype(np.int32), tree)
        model.threads = 1
        logits = numbers(model, rows, cache)
        tokens = logits.argmax(-1).tolist()
        path, _ = verify_tree(tree, lambda node, _above, tokens=tokens: tokens[node + 1])
        model.threads = int(random.integers(2, 5))
        time.sleep(float(random.choice([0, 0, 0, 1e-4, 2e-3, 4e-3])))
        told = f"seed {seed}, forward {number} of {count + 1} rows"
        if random.random() < 0.3:
            assert np.array_equal(numbers(model, rows, cache), logits), told
        found = model.forward(rows, [cache]).argmax()
        assert [found[node + 1] for node in (-1, *path)] == [
            tokens[node + 1] for node in (-1, *path)
        ], told
        cache.commit([0, *(node + 1 for node in path)])


@njit(nogil=True)
def count_items(counts: Any, items: int, steps: int, barrier: Any, thread: int, first: int) -> int:
    """Count for each step and item how often it is taken; returns how many this thread took."""
    taken, number = 0, first if thread == 0 else join(barrier, first + steps)
    while number < first + steps:
        item = take(barrier, thread, items)
        while item < items:
            counts[number - first, item] += 1
            taken += 1
            item = take(barrier, thread, items)
        if is_last_to_arrive(barrier):
            open_step(barrier, number + 1)
        number = await_after(barrier, number)
    return taken


@njit(nogil=True)
def waits_for_step(barrier: Any) -> int:
    """Wait for the second step."""
    return await_after(barrier, 0)


@njit(nogil=True)
def opens_step(barrier: Any) -> None:
    """Open the second step."""
    open_step(barrier, 1)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_every_item_is_taken_once_whoever_comes(threads: int) -> None:
    """Also where threads come to a call when it, or some after it, are over."""
    pool = ThreadPool()
    counts = [np.zeros((40, 7), np.int64) for _ in range(150)]

    def call(number: int, _own: None, barrier: Any, thread: int, first: int) -> int:
        return int(count_items(counts[number], 7, 40, barrier, thread, first))

    for number in range(len(counts)):
        pool.run(call, (number,), [None] * threads, 40)
    assert all((each == 1).all() for each in counts)


@pytest.mark.skipif(not _FUTEX, reason="threads of this system give their cores away instead")
def test_who_waits_for_another_sleeps_and_is_woken() -> None:
    barrier = new_barrier()
    begin(barrier, 1, 2)
    assert waits_for_step(barrier) == 1, "which compiles it"
    begin(barrier, 0, 2)
    used = []

    def wait() -> None:
        before = time.thread_time()
        waits_for_step(barrier)
        used.append(time.thread_time() - before)

    thread = threading.Thread(target=wait)
    thread.start()
    asleep_until = time.monotonic() + 0.2
    while time.monotonic() < asleep_until or not barrier[_ASLEEP]:
        time.sleep(0.001)
    opens_step(barrier)
    thread.join(60)
    assert used[0] < 0.15


def test_a_failing_thread_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda _arguments: ended.set())
    counts = np.zeros((2, 3), np.int64)

    def call(_own: None, barrier: Any, thread: int, first: int) -> int:
        if thread == 1:
            raise MemoryError
        return int(count_items(counts, 3, 2, barrier, thread, first))

    pool = ThreadPool()
    for _ in range(3):
        pool.run(call, (), (None, None), 2)
    assert (counts == 3).all()
    assert ended.wait(100)


def test_the_threads_end_with_their_owner() -> None:
    there = threading.Barrier(3, timeout=100)
    others: list[threading.Thread] = []

    def call(_own: None, _barrier: Any, thread: int, _first: int) -> None:
        if thread > 0:
            others.append(threading.current_thread())
        there.wait()

    pool = ThreadPool()
    pool.run(call, (), [None] * 3, 1)
    del pool
    assert len(others) == 2
    for thread in others:
        thread.join(60)
        assert not thread.is_alive()
