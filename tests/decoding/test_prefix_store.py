"""Prefixes that no session holds: each stretch once, and what comes back is what was computed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from seeds import for_each_seed
from tiny_models import open_engine, random_prompt, run

from accel.decoding.engine import Engine
from accel.draft_tree import TokenArray
from accel.execution.forwards import alone
from accel.execution.prefix_store import STRETCH, PrefixStore


def stretches(prompts: list[TokenArray]) -> set[tuple[int, ...]]:
    """Every prefix of whole stretches."""
    return {
        tuple(prompt[:end].tolist())
        for prompt in prompts
        for end in range(STRETCH, len(prompt) + 1, STRETCH)
    }


def prompts_of(rng: random.Random, count: int) -> list[TokenArray]:
    """Prompts of which some begin alike."""
    shared = [random_prompt(rng.getrandbits(30), STRETCH * rng.randint(1, 3)) for _ in range(3)]
    return [
        np.concatenate([rng.choice(shared), random_prompt(rng.getrandbits(30), rng.randint(1, 90))])
        for _ in range(count)
    ]


@for_each_seed(range(3))
def test_every_stretch_is_held_once_and_comes_back(engine: Engine, seed: int) -> None:
    rng = random.Random(seed)
    prompts = prompts_of(rng, 8)
    engine.prefixes.forget()
    for prompt in prompts:
        session = engine.session()
        alone(engine.prefill_steps(prompt, session))
        engine.keep("a", session)
    known = stretches([prompt[:-1] for prompt in prompts])
    token_bytes = engine.session().cache.nbytes / engine.session().cache.capacity
    assert engine.prefixes.nbytes == pytest.approx(len(known) * STRETCH * token_bytes), seed
    for prompt in prompts:
        session = engine.session()
        engine.restore("b", prompt, session)
        assert session.length == 0, seed
        engine.restore("a", prompt, session)
        assert session.length == (len(prompt) - 1) // STRETCH * STRETCH, seed
        answer = run(engine, prompt, session=session)
        assert answer.statistics.prompt_tokens_reused == session_prefix(prompt), seed
        assert answer.tokens.tolist() == run(engine, prompt).tokens.tolist(), seed
    engine.prefixes.forget(lambda root: root == "a")
    assert engine.prefixes.nbytes == 0


def session_prefix(prompt: TokenArray) -> int:
    return (len(prompt) - 1) // STRETCH * STRETCH


def test_a_session_that_holds_more_is_left_as_it_is(engine: Engine) -> None:
    prompt = random_prompt(3, 2 * STRETCH + 20)
    session = engine.session()
    alone(engine.prefill_steps(prompt, session))
    engine.keep("a", session)
    held = session.length
    engine.restore("a", prompt, session)
    assert session.length == held


def test_prefixes_used_longest_ago_go_first_from_their_ends(engine: Engine) -> None:
    store = PrefixStore()
    old, new = random_prompt(4, 3 * STRETCH + 1), random_prompt(5, 3 * STRETCH + 1)
    for prompt in (old, new):
        session = engine.session()
        alone(engine.prefill_steps(prompt, session))
        store.keep("a", session)
    each = store.nbytes // 6
    store.shrink(4 * each)
    lengths = []
    for prompt in (old, new):
        session = engine.session()
        store.restore("a", prompt, session)
        lengths.append(session.length // STRETCH)
    assert (store.nbytes, lengths) == (4 * each, [1, 3])
    store.shrink(0)
    assert store.nbytes == 0


def test_prefixes_go_before_sessions_that_can_be_used(folder: Path) -> None:
    engine = open_engine(folder, kv_budget=1)
    engine.kv_budget = engine.session().cache.nbytes * 2
    first = engine.session()
    run(engine, random_prompt(6, 3 * STRETCH), session=first)
    engine.keep("a", first)
    assert engine.prefixes.nbytes > 0
    others = [engine.session(), engine.session()]
    for session in others:
        run(engine, random_prompt(7, STRETCH), session=session)
    assert (engine.prefixes.nbytes, first.nbytes > 0) == (0, True)
