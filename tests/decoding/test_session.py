"""Sessions: what is kept from one request to the next, and who may use it."""

from __future__ import annotations

import contextlib
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_models import (
    Oracle,
    open_engine,
    random_prompt,
    reference_tokens,
    run,
    until_end,
)

from accel.decoding.engine import Engine
from accel.decoding.loop import MERGED_ROWS
from accel.decoding.request import GenerationRequest
from accel.errors import SessionBusy
from accel.execution.forwards import Forward, alone, compute_all

END = 299


def test_session_keeps_what_the_next_prompt_has_in_common(engine: Engine, reference: Any) -> None:
    """A user types, deletes and jumps; every answer equals one from an empty session."""
    random = np.random.default_rng(5)
    session = engine.session()
    text = random_prompt(5, 80)
    for step in range(40):
        kind = random.integers(0, 3)
        if kind == 0:
            text = np.concatenate([text, random_prompt(step, 5)])
        elif kind == 1 and len(text) > 30:
            text = text[: -random.integers(1, 20)]
        else:
            text = text.copy()
            text[random.integers(0, len(text)) :] = random.integers(0, 256)
        expected = until_end(reference_tokens(reference, text, 12))
        oracle = Oracle(np.array(expected, np.int32), step)
        actual = run(engine, text, max_tokens=12, session=session, drafter=oracle)
        assert actual.tokens.tolist() == expected, f"step {step}"
        assert session.tokens.tolist() == [*text, *actual.tokens][: session.length]
    again = run(engine, text, max_tokens=4, session=session)
    assert again.statistics.prompt_tokens_reused == len(text) - 1


def test_appended_text_is_not_computed_twice(engine: Engine) -> None:
    session = engine.session()
    prompt = random_prompt(6, 100)
    run(engine, prompt, max_tokens=2, session=session)
    longer = np.concatenate([prompt, random_prompt(7, 6)])
    answer = run(engine, longer, max_tokens=8, session=session)
    assert answer.statistics.prompt_tokens_reused == 100
    assert answer.tokens.tolist() == run(engine, longer, max_tokens=8).tokens.tolist()


@pytest.mark.parametrize(
    ("behind", "last"), [(20, 20), (MERGED_ROWS, MERGED_ROWS), (33, 1), (0, 1)]
)
def test_few_rows_behind_whole_forwards_of_a_prompt_go_with_the_first_draft(
    engine: Engine, behind: int, last: int
) -> None:
    session = engine.session()
    prompt = random_prompt(6, 100)
    assert alone(engine.prefill_steps(np.append(prompt, 1).astype(np.int32), session))
    longer = np.concatenate([prompt, random_prompt(7, engine.prefill_rows + behind)])
    generation = engine.generate(GenerationRequest(longer, max_tokens=1), session)
    steps, rows = generation.steps(), []
    step: Any = next(steps)
    with contextlib.suppress(StopIteration):
        while True:
            actual = None
            if isinstance(step, Forward):
                rows.append(step.rows)
                ((_, actual),) = compute_all([step])
            step = steps.send(actual)
    assert generation.statistics.prompt_tokens_reused == 100
    assert rows[0] == engine.prefill_rows - (not behind)
    assert rows[-1] == last
    assert sum(rows) == engine.prefill_rows + behind
    assert generation.tokens.tolist() == run(engine, longer, max_tokens=1).tokens.tolist()


def test_prefill_ahead_of_a_request(engine: Engine) -> None:
    session = engine.session()
    prompt = random_prompt(8, 300)
    assert alone(engine.prefill_steps(prompt, session))
    answer = run(engine, prompt, session=session)
    assert answer.statistics.prompt_tokens_reused == 299
    assert answer.tokens.tolist() == run(engine, prompt).tokens.tolist()


def test_a_newer_request_takes_the_session_over(engine: Engine) -> None:
    session = engine.session()
    request = GenerationRequest(random_prompt(18, 20), ignore_end=True)
    old = iter(engine.generate(request, session))
    next(old)
    next(iter(engine.generate(request, session)))
    with pytest.raises(SessionBusy):
        next(old)


def test_a_generation_whose_steps_are_run_goes_with_its_last_reader(engine: Engine) -> None:
    """Its resources, an index's files among them, wait for no collection of garbage."""
    generation = engine.generate(GenerationRequest(random_prompt(21, 20), max_tokens=4))
    alone(generation.steps())
    assert len(generation.tokens) == 4
    is_there = weakref.ref(generation)
    gc.disable()
    try:
        del generation
        assert is_there() is None
    finally:
        gc.enable()


def test_generations_on_two_sessions_may_take_turns(engine: Engine) -> None:
    prompts = [random_prompt(19, 20), random_prompt(20, 30)]
    expected = [run(engine, prompt, ignore_end=True).tokens.tolist() for prompt in prompts]
    requests = [GenerationRequest(p, max_tokens=32, ignore_end=True) for p in prompts]
    running: list[Iterator[Any]] = [iter(engine.generate(request)) for request in requests]
    actual: list[list[int]] = [[], []]
    for chunks in zip(*running, strict=True):
        for tokens, chunk in zip(actual, chunks, strict=True):
            tokens.extend(chunk.tokens.tolist())
    assert actual == expected


def test_sessions_used_longest_ago_lose_their_cache_first(folder: Path) -> None:
    engine = open_engine(folder, kv_budget=1)
    first, second = engine.session(), engine.session()
    run(engine, random_prompt(21, 20), session=first)
    assert first.nbytes > 0
    run(engine, random_prompt(22, 20), session=second)
    assert (first.nbytes, second.nbytes > 0) == (0, True)
    answer = run(engine, random_prompt(21, 20), session=first)
    assert answer.statistics.prompt_tokens_reused == 0
    assert answer.tokens.tolist() == run(engine, random_prompt(21, 20)).tokens.tolist()
