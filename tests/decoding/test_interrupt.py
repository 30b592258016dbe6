"""A forward that is interrupted ends after a step, and leaves nothing behind."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from small_model import SMALL_MODEL
from tiny_models import compiled

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.errors import Interrupted
from accel.models.batch import chain_batch
from accel.models.cpu.llama import CompiledLlama

TEXT = np.random.default_rng(0).integers(20, 8000, 3000).astype(np.int32)
TRIES = 50
WAIT_S = 60.0


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.load(SMALL_MODEL, device="cpu")


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def model(request: pytest.FixtureRequest) -> CompiledLlama:
    made = compiled(SMALL_MODEL, "int8")
    made.threads = request.param
    return made


def test_the_cache_holds_what_it_held(model: CompiledLlama) -> None:
    first, second = chain_batch(TEXT[:40], 40), chain_batch(TEXT[40:50], 0, wants_numbers=True)
    expected, cache = model.new_cache(64), model.new_cache(64)
    for each in (expected, cache):
        model.forward(first, [each])
        each.commit(list(range(40)))
    model.interrupt()
    with pytest.raises(Interrupted):
        model.forward(chain_batch(TEXT[90:100], 0), [cache])
    assert cache.length == 40
    logits = [np.array(model.forward(second, [each]).row(9)) for each in (expected, cache)]
    assert np.array_equal(*logits)


def test_it_ends_while_it_is_computed(model: CompiledLlama) -> None:
    """Another thread asks for that in the middle of a long forward; one that was over before is
    begun again."""
    barrier = model._pool.barrier
    long = chain_batch(TEXT, len(TEXT))
    for _ in range(TRIES):
        cache, before = model.new_cache(len(TEXT)), barrier[0]
        thread = threading.Thread(target=_interrupt_after, args=(model, before))
        thread.start()
        try:
            model.forward(long, [cache])
        except Interrupted:
            thread.join()
            return
        thread.join()
        with pytest.raises(Interrupted):
            model.forward(chain_batch(TEXT[:1], 0), [model.new_cache(32)])
    pytest.fail("no forward was interrupted")


def _interrupt_after(model: CompiledLlama, before: int) -> None:
    """Interrupt a forward when its steps have begun."""
    ends = time.monotonic() + WAIT_S
    while model._pool.barrier[0] == before and time.monotonic() < ends:
        time.sleep(0)
    model.interrupt()


def test_a_text_is_the_same_however_often_its_forwards_are_interrupted(engine: Engine) -> None:
    prompt = TEXT[:700]
    expected = engine.generate(GenerationRequest(prompt, max_tokens=24)).finish()
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        # Every forward but those that begin again.
        if asked % 2:
            engine.interrupt()
        return False

    request = GenerationRequest(prompt, max_tokens=24, cancelled=cancelled)
    actual = engine.generate(request).finish()
    assert actual.tokens.tolist() == expected.tokens.tolist()
    assert actual.stopped_by == expected.stopped_by
    assert asked > 4


def test_a_cancelled_generation_ends_within_its_forward(engine: Engine) -> None:
    is_cancelled = False
    questions: list[bool] = []

    def cancelled() -> bool:
        nonlocal is_cancelled
        questions.append(is_cancelled)
        if len(questions) == 6:
            # As another thread would while the forward runs.
            engine.interrupt()
            is_cancelled = True
            return False
        return is_cancelled

    request = GenerationRequest(TEXT[:200], max_tokens=64, cancelled=cancelled)
    actual = engine.generate(request).finish()
    assert actual.stopped_by == "cancelled"
    assert questions[6:] == [True]
