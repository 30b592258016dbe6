"""Several steps in one call: the same text as one after another, and everything left in order."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import frozen_corpus
import numpy as np
import pytest

from accel.compiled_stage import MOST_STEPS, Limits, Made, Steps
from accel.compiled_steps import IS_POSSIBLE
from accel.draft_tree import TokenArray
from accel.drawing import Draws
from accel.engine import Engine
from accel.generation import GenerationRequest
from accel.kv_cache import KVCache
from accel.meeting import LATE, is_called_for
from accel.sampling import Sampling
from accel.sources import mixture_drafter
from accel.sources.speculating_mixture import SpeculatingMixture
from accel.statistics import Statistics
from accel.stepping import LONG_STEP_S
from accel.thread_pair import ThreadPair

pytestmark = pytest.mark.skipif(not IS_POSSIBLE, reason="compiled code cannot tell the time here")


@pytest.fixture(scope="module", params=["bf16", "fp32"])
def engine(request: pytest.FixtureRequest) -> Engine:
    engine = Engine.load(dtype=request.param)
    # Whoever tests this on a busy machine wants several steps all the same.
    engine.model.shares_patiently(True)
    return engine


def prompts_of(engine: Engine, count: int) -> list[TokenArray]:
    """The first parts of so many files."""
    found = []
    for text in frozen_corpus.texts()[:count]:
        found.append(engine.tokenizer.encode(text[: max(len(text) // 3, 400)]))
    return found


def drafter_of(engine: Engine) -> SpeculatingMixture:
    drafter = mixture_drafter(engine.tokenizer, engine.model.speculator, learnt=None, history=None)
    assert isinstance(drafter, SpeculatingMixture)
    return drafter


def run(engine: Engine, prompt: TokenArray, *, drafts: bool, ahead: bool, **options: Any) -> Any:
    """A finished generation, its chunks, and its session and drafter."""
    drafter = drafter_of(engine) if drafts else None
    session = engine.session()
    request = GenerationRequest(prompt, drafter=drafter, **options)
    engine.model.runs_steps = ahead
    try:
        generation = engine.generate(request, session)
    finally:
        engine.model.runs_steps = True
    chunks = list(generation)
    return generation, chunks, session, drafter


def first_line(text: str) -> int | None:
    return text.index("\n") + 1 if "\n" in text else None


def in_the_middle_of_a_line(text: str) -> int | None:
    """It stops where nothing says beforehand that it may."""
    return 19 if len(text) >= 20 else None


@pytest.mark.parametrize("drafts", [False, True])
@pytest.mark.parametrize(
    ("rule", "temperature"),
    [(None, 0.0), (first_line, 0.0), (in_the_middle_of_a_line, 0.0), (None, 0.2), (None, 1.0)],
)
def test_the_text_is_the_same_and_what_is_kept_belongs_to_it(
    engine: Engine,
    drafts: bool,
    rule: Callable[[str], int | None] | None,
    temperature: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On slow machines, too, several steps are made at a time.
    monkeypatch.setattr("accel.stepping.MOST_S", 0.2)
    monkeypatch.setattr("accel.stepping.LONG_STEP_S", 0.1)
    seed = int(np.random.default_rng().integers(2**31))
    random, several = np.random.default_rng(seed), 0
    for prompt in prompts_of(engine, 14):
        seeds = int(random.integers(-(2**62), 2**62)) * 4
        sampling = Sampling(temperature, top_p=float(random.choice([1.0, 0.9])), seed=seeds)
        options = {
            "max_tokens": int(random.integers(1, 90)),
            "stop_rule": rule,
            "sampling": sampling,
        }
        alone, _, _, _ = run(engine, prompt, drafts=drafts, ahead=False, **options)
        found, chunks, session, drafter = run(engine, prompt, drafts=drafts, ahead=True, **options)
        where = f"seed {seed}, {len(prompt)} tokens, {options}"
        assert found.tokens.tolist() == alone.tokens.tolist(), where
        assert (found.text, found.stopped_by) == (alone.text, alone.stopped_by), where
        statistics, written = found.statistics, found.tokens.tolist()
        assert statistics.tokens == len(written) == sum(len(chunk.tokens) for chunk in chunks)
        assert [token for chunk in chunks for token in chunk.tokens.tolist()] == written
        names = [source.name.lower() for chunk in chunks for source in chunk.sources]
        assert {name: names.count(name) for name in names} == dict(+statistics.sources), where
        assert len(statistics.verify_s) == statistics.forwards == len(statistics.accepted)
        text = [*prompt.tolist(), *written]
        assert session.tokens.tolist() == text[: len(session.tokens)], where
        assert len(session.tokens) >= len(text) - 1
        if drafter is not None:
            drafter._catch_up()
            assert drafter._prompt.context.tolist() == text, where
        several += any(len(chunk.tokens) > 4 for chunk in chunks)
        # What lies in the KV cache is what a fresh one would hold.
        longer = np.array([*text, *prompt[:5]], np.int32)
        again = engine.generate(GenerationRequest(longer, 12), session).finish()
        fresh = engine.generate(GenerationRequest(longer, 12)).finish()
        assert again.statistics.prompt_tokens_reused >= len(text) - 1
        assert again.tokens.tolist() == fresh.tokens.tolist(), where
    assert several >= 3


@pytest.mark.parametrize("drafts", [False, True])
def test_no_step_is_made_behind_a_token_that_ends_the_text(engine: Engine, drafts: bool) -> None:
    cuts = 0
    for prompt in prompts_of(engine, 10):
        whole, _, _, _ = run(engine, prompt, drafts=drafts, ahead=False, max_tokens=60)
        for place in range(5, len(whole.tokens), 13):
            ends = frozenset({int(whole.tokens[place])})
            expected = whole.tokens[: whole.tokens.tolist().index(next(iter(ends)))]
            options: dict[str, Any] = {"stop_tokens": ends, "max_tokens": 60}
            found, _, _, _ = run(engine, prompt, drafts=drafts, ahead=True, **options)
            assert found.tokens.tolist() == expected.tolist()
            assert found.stopped_by == "end"
            before_last = sum(accepted + 1 for accepted in found.statistics.accepted[:-1])
            assert before_last <= len(expected), "a forward behind the end was waited for"
            cuts += 1
    assert cuts > 10


@pytest.mark.parametrize("drafts", [False, True])
def test_the_last_position_is_the_last(engine: Engine, drafts: bool) -> None:
    prompt = prompts_of(engine, 1)[0]
    long = np.resize(prompt, engine.max_positions - 9)
    options: dict[str, Any] = {"max_tokens": 50, "ignore_end": True}
    alone, _, _, _ = run(engine, long, drafts=drafts, ahead=False, **options)
    found, _, session, _ = run(engine, long, drafts=drafts, ahead=True, **options)
    assert found.tokens.tolist() == alone.tokens.tolist()
    assert found.stopped_by == alone.stopped_by == "length"
    assert session.length <= engine.max_positions


@pytest.mark.parametrize("drafts", [False, True])
def test_a_long_text_outgrows_what_was_made_for_it(drafts: bool) -> None:
    """Cache, rotations and the drafter's text are made larger on the way, each in its own time."""
    engine = Engine.load(dtype="bf16")
    engine.model.shares_patiently(True)
    prompt = prompts_of(engine, 2)[1][:300]
    options: dict[str, Any] = {"max_tokens": 2500, "ignore_end": True}
    found, _, _, _ = run(engine, prompt, drafts=drafts, ahead=True, **options)
    alone, _, _, _ = run(engine, prompt, drafts=drafts, ahead=False, **options)
    assert found.tokens.tolist() == alone.tokens.tolist()


def test_a_cancel_is_seen_after_one_call(engine: Engine) -> None:
    taken: list[int] = []
    request = GenerationRequest(
        prompts_of(engine, 1)[0],
        400,
        ignore_end=True,
        cancelled=lambda: bool(taken),
    )
    generation = engine.generate(request)
    for chunk in generation:
        taken.append(len(chunk.tokens))
    assert generation.stopped_by == "cancelled"
    assert len(taken) == 1
    assert taken[0] <= MOST_STEPS


@pytest.mark.parametrize("drafts", [False, True])
def test_an_interruption_ends_a_call_after_one_forward(
    engine: Engine, drafts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that comes while nobody makes steps, and one that another thread makes meanwhile."""
    model: Any = engine.model
    monkeypatch.setattr("accel.stepping.MOST_S", 60.0)
    monkeypatch.setattr("accel.stepping.LONG_STEP_S", 0.1)
    # A second thread that is late on a busy machine would end calls, too.
    monkeypatch.setattr(model, "shared_from", 0)
    options: dict[str, Any] = {"max_tokens": 200, "ignore_end": True}
    prompt = prompts_of(engine, 1)[0]
    calls: list[int] = []

    def asked() -> bool:
        engine.interrupt()
        return False

    found, chunks, _, _ = run(engine, prompt, drafts=drafts, ahead=True, cancelled=asked, **options)
    assert found.statistics.forwards == len(chunks), "each of them ended a call"
    steps, is_over = model.run_steps, threading.Event()

    def noted(*given: Any) -> Any:
        made = steps(*given)
        calls.append(made[0].steps if made is not None else 0)
        return made

    monkeypatch.setattr(model, "run_steps", noted)
    run(engine, prompt, drafts=drafts, ahead=True, **options)
    undisturbed, calls[:] = max(calls), []

    def interrupt() -> None:
        while not is_over.is_set():
            engine.interrupt()

    other = threading.Thread(target=interrupt)
    other.start()
    try:
        again, _, _, _ = run(engine, prompt, drafts=drafts, ahead=True, **options)
    finally:
        is_over.set()
        other.join()
    assert undisturbed > 8
    assert max(calls) < undisturbed / 2
    assert again.tokens.tolist() == found.tokens.tolist()


def test_slow_forwards_are_made_one_at_a_time(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = prompts_of(engine, 1)[0]
    monkeypatch.setattr(engine.planner, "seconds", lambda _rows, _context: 1.1 * LONG_STEP_S)
    _, chunks, _, _ = run(engine, prompt, drafts=False, ahead=True, max_tokens=20)
    assert {len(chunk.tokens) for chunk in chunks} == {1}


def test_one_thread_makes_the_same_steps_as_two(engine: Engine) -> None:
    shared = engine.model.shared_from
    texts: list[list[list[int]]] = []
    for rows in (0, 1, 4):
        engine.model.shared_from = rows
        made = [
            run(engine, prompt, drafts=True, ahead=True, max_tokens=70)[0]
            for prompt in prompts_of(engine, 6)
        ]
        texts.append([each.tokens.tolist() for each in made])
    engine.model.shared_from = shared
    for one, other in pairwise(texts):
        assert one == other


def test_a_thread_that_is_held_may_sleep_when_it_is_let_go(engine: Engine) -> None:
    model: Any = engine.model
    engine.model.shared_from, shared = 1, engine.model.shared_from
    run(engine, prompts_of(engine, 1)[0], drafts=False, ahead=True, max_tokens=60)
    engine.model.shared_from = shared
    assert not is_called_for(model._pair.meeting)


@pytest.mark.parametrize("drafts", [False, True])
def test_warming_up_calls_it_also_where_the_second_thread_was_late(
    engine: Engine, drafts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked first would wait seconds for it to be compiled."""
    model: Any = engine.model
    called: list[bool] = []
    steps = model.run_steps

    def noted(last: int, drafting: object, cache: KVCache, limits: Limits, draws: Draws) -> Any:
        found = steps(last, drafting, cache, limits, draws)
        called.append(found is not None and (drafting is not None) == drafts)
        return found

    monkeypatch.setattr(model, "run_steps", noted)
    monkeypatch.setattr(model, "shared_from", 1)
    monkeypatch.setattr(model._pair, "_alone", 50)
    engine.warm_up(drafter_of(engine) if drafts else None)
    assert any(called)
    assert not model._pair.is_patient
    model._pair._alone = 0
    model.shares_patiently(True)


@pytest.mark.skipif(os.cpu_count() == 1, reason="somebody has to be late meanwhile")
@pytest.mark.parametrize("drafts", [False, True])
def test_a_call_ends_where_the_second_thread_was_late(
    engine: Engine, drafts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be late in every step of it, where it has no core of its own."""
    model: Any = engine.model
    monkeypatch.setattr(model, "shared_from", 0)
    meeting, is_over = model._pair.meeting, threading.Event()

    def be_late() -> None:
        while not is_over.is_set():
            meeting[LATE] += 1

    other = threading.Thread(target=be_late)
    other.start()
    try:
        options: dict[str, Any] = {"max_tokens": 200, "ignore_end": True}
        found, chunks, _, _ = run(
            engine, prompts_of(engine, 1)[0], drafts=drafts, ahead=True, **options
        )
    finally:
        is_over.set()
        other.join()
    assert len(found.tokens) == 200
    steps_a_call = found.statistics.forwards / len(chunks)
    assert steps_a_call < MOST_STEPS / 4


def test_nobody_is_held_who_is_not_there_or_was_late() -> None:
    pair, own = ThreadPair(), object()
    assert pair.hold(own, 10) is None, "no thread has begun"
    pair._alone = 3
    assert pair.hold(own, 10) is None
    assert pair._alone == 3, "nobody was asked to share"


@pytest.mark.parametrize("drafts", [False, True])
@pytest.mark.parametrize("is_late", [False, True])
def test_no_step_is_made_by_itself_behind_a_thread_that_sleeps_or_was_late(
    engine: Engine, drafts: bool, is_late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is woken for all steps of a call, or they are made without it."""
    model, prompt = engine.model, prompts_of(engine, 1)[0]
    pair: Any = model._pair  # type: ignore[attr-defined]
    monkeypatch.setattr("accel.stepping.LONG_STEP_S", 0.1)
    monkeypatch.setattr(model, "shared_from", 1)
    options: dict[str, Any] = {"max_tokens": 40, "ignore_end": True}
    expected = run(engine, prompt, drafts=drafts, ahead=True, **options)[0].tokens.tolist()
    deadline = time.monotonic() + 30
    while pair._mailbox._own is not None:
        assert time.monotonic() < deadline, "it never sleeps"
        time.sleep(0.001)
    places, verify = [], model.verify

    def noted(rows: Any, tree: Any, cache: KVCache, draws: Draws) -> Any:
        places.append(draws.place)
        return verify(rows, tree, cache, draws)

    monkeypatch.setattr(model, "verify", noted)
    if is_late:
        monkeypatch.setattr(pair, "is_patient", False)
        monkeypatch.setattr(pair, "_alone", 1000)
    found = run(engine, prompt, drafts=drafts, ahead=True, **options)[0]
    assert found.tokens.tolist() == expected
    assert 0 not in places, "the first step was made by itself"
    assert drafts or set(places) <= {39}, "the last token, behind which there is none"
    if is_late:
        assert pair._alone == 1000 - found.statistics.forwards


def test_steps_are_counted_up_to_where_the_text_ended() -> None:
    """Of forwards behind the end, which a stop rule may bring, no token counts."""
    left, statistics = Steps.room(), Statistics()
    left.accepted[:3] = 2, 3, 1
    left.drafted_s[:2], left.verified_s[:3] = 0.5, 2.0
    made = Made(3, 2, 11, 9, 0, 0, 0, 0, 0, 0.25, 6.0, 6.0)
    statistics.record_steps(made, left, np.zeros(4, np.int8))
    assert statistics.accepted == [2, 1, 0]
    assert (statistics.forwards, statistics.nodes, statistics.tokens) == (3, 11, 4)
    assert (statistics.draft_s, statistics.asked_s) == ([0.5, 0.5], 0.25)
    assert statistics.verify_s == [2.0] * 3
