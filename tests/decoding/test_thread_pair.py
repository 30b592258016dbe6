"""Halves of a forward on two threads: the same numbers, and what happens when one is late."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_models import numbers, save

from accel.batch import ForwardBatch, chain_batch, tree_batch
from accel.draft_tree import DraftTree, Source
from accel.models.cpu.barrier import meet, new_meeting
from accel.models.cpu.cache import CompiledCache
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.thread_pair import ThreadPair, _Mailbox
from accel.models.hf_loading import load_module
from accel.planning.cost_model import ForwardCosts
from accel.planning.measuring import share
from accel.verification.verifier import walk

CPU = torch.device("cpu")
WIDE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("wide"), "llama", **WIDE)


def computed(
    model: CompiledLlama, text: ForwardBatch, rows: ForwardBatch
) -> tuple[NDArray[np.float32], CompiledCache]:
    cache = model.new_cache(128)
    assert isinstance(cache, CompiledCache)
    model.forward(text, [cache])
    cache.commit(list(range(len(text))))
    return numbers(model, rows, cache), cache


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_two_threads_compute_what_one_does(folder: Path, dtype: torch.dtype) -> None:
    """To the bit, at every number of rows: logits, keys and values."""
    model = CompiledLlama.from_module(load_module(folder, dtype, CPU, "eager"))
    assert model is not None
    model.shares_patiently(True)
    random = np.random.default_rng(5)
    text = chain_batch(random.integers(0, 256, 21).astype(np.int32), 21)
    for count in range(1, 66):
        tokens = random.integers(0, 256, count).astype(np.int32)
        rows = chain_batch(tokens, int(random.integers(0, count)))
        model.shared_from = 0
        alone, expected = computed(model, text, rows)
        model.shared_from = 1
        shared, cache = computed(model, text, rows)
        assert np.array_equal(alone, shared), count
        for part, wanted in zip(cache.kept, expected.kept, strict=True):
            assert (part == wanted).all(), count


def test_whoever_stands_by_computes_what_it_is_told(folder: Path) -> None:
    """Two caches by turns, one row and many, walks and logits, right after one another and after
    the second thread fell asleep."""
    seed = int(np.random.default_rng().integers(2**31))
    random = np.random.default_rng(seed)
    model = CompiledLlama.from_module(load_module(folder, torch.bfloat16, CPU, "eager"))
    assert model is not None
    model.shares_patiently(True)
    caches = [model.new_cache(64), model.new_cache(64)]
    for number in range(200):
        cache = caches[int(random.random() < 0.2)]
        if cache.length > 80:
            cache.trim(3)
        count = int(random.integers(0, 40) if random.random() < 0.3 else random.integers(0, 3))
        tree = DraftTree.chain(random.integers(0, 256, count).astype(np.int32), Source.PROMPT)
        rows = tree_batch(random.integers(0, 256, 1).astype(np.int32), tree)
        model.shared_from = 0
        logits = numbers(model, rows, cache)
        tokens = logits.argmax(-1).tolist()
        path, _ = walk(tree, lambda node, _above, tokens=tokens: tokens[node + 1])
        model.shared_from = 1
        time.sleep(float(random.choice([0, 0, 0, 1e-4, 2e-3, 4e-3])))
        told = f"seed {seed}, forward {number} of {count + 1} rows"
        if random.random() < 0.3:
            assert np.array_equal(numbers(model, rows, cache), logits), told
        found = model.forward(rows, [cache]).argmax()
        assert [found[node + 1] for node in (-1, *path)] == [
            tokens[node + 1] for node in (-1, *path)
        ], told
        cache.commit([0, *(node + 1 for node in path)])


def test_a_late_partner_is_left_alone_for_longer_each_time() -> None:
    pair = ThreadPair()
    is_late = True
    there = threading.Barrier(2, timeout=100)

    def halves(first: int, last: int, _own: None, meeting: Any, side: int, _number: int) -> None:
        assert (first, last) == ((0, 4) if side == 0 else (4, 9))
        if is_late and side == 0:
            meeting[32] += 1
        there.wait()

    for waits in (2, 4, 8):
        assert pair.is_free()
        pair.run(halves, (), 4, 9, (None, None), 1)
        assert [pair.is_free() for _ in range(waits)] == [False] * waits
    is_late = False
    assert pair.is_free()
    pair.run(halves, (), 4, 9, (None, None), 1)
    assert pair.is_free()


def test_a_call_that_nobody_began_with_is_replaced() -> None:
    """Steps that are over before the second thread woke leave it a call."""
    mailbox, called = _Mailbox(new_meeting()), []
    for calls in ("a", "bcd", "e"):
        for name in calls:
            mailbox.put(partial(called.append, name))
        call = mailbox.take()
        assert call is not None
        call()
    mailbox.put(partial(called.append, "f"))
    mailbox.put(None)
    assert mailbox.take() is None
    assert called == ["a", "d", "e"]


def test_of_a_long_call_nobody_says_that_the_other_was_late() -> None:
    """Some 300 us of waiting are nothing in a prefill, and after it short calls are shared."""
    pair, there = ThreadPair(), threading.Barrier(2, timeout=100)

    def halves(_first: int, _last: int, _own: None, meeting: Any, side: int, _number: int) -> None:
        if side == 0:
            meeting[32] += 1
        there.wait()

    for is_long in (True, True, False, True):
        assert pair.is_free(is_long=is_long)
        pair.run(halves, (), 4, 9, (None, None), 1, is_long=is_long)
    assert [pair.is_free(is_long=True), pair.is_free()] == [True, False]


def test_a_failing_partner_does_not_keep_the_other_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _arguments: None)

    def halves(_first: int, _last: int, _own: None, meeting: Any, side: int, number: int) -> None:
        if side == 1:
            raise MemoryError
        meet(meeting, side, number + 1)

    pair = ThreadPair()
    with pytest.raises(RuntimeError, match="second thread"):
        pair.run(halves, (), 4, 9, (None, None), 1)
    assert not pair.is_free()


def test_the_partner_ends_with_its_owner() -> None:
    def halves(_first: int, _last: int, _own: None, meeting: Any, side: int, number: int) -> None:
        partners.append(threading.current_thread())
        meet(meeting, side, number + 1)

    partners: list[threading.Thread] = []
    pair = ThreadPair()
    pair.run(halves, (), 1, 2, (None, None), 1)
    del pair
    others = [thread for thread in partners if thread is not threading.current_thread()]
    assert len(others) == 1
    others[0].join(20)
    assert not others[0].is_alive()


def two_threaded() -> Any:
    made: Any = type("Two", (), {"can_share": True, "shared_from": 0, "shares_patiently": print})()
    return made


def test_two_threads_are_taken_from_where_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is, from the least number of rows on above which all are faster, by all contexts."""
    costs = ForwardCosts(
        [64, 256], [1, 8, 16, 32], np.array([[1, 2, 4, 8], [1, 3, 5, 9]], np.float64)
    )
    both = np.array([[0.5, 1.0, 3.9, 4.1], [0.9, 1.0, 4.9, 5.0]])
    monkeypatch.setattr("accel.planning.measuring.shared_seconds", lambda *_: both)
    model: Any = two_threaded()
    found = share(model, costs, 0.1)
    assert found.shared_from == 32
    assert found.seconds.tolist() == [[1, 2, 4, 4.1], [1, 3, 5, 5]]
    assert ForwardCosts.from_json(found.to_json()).shared_from == 32
    both[:, 3] = 9
    assert share(model, costs, 0.1).shared_from == 0
    both[:] = 0.3
    assert share(model, costs, 0.1).shared_from == 1
    model.can_share = False
    assert share(model, costs, 0.1) is costs
