"""The engine gives the model's own text with any drafts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from small_model import SMALL_MODEL
from tiny_models import (
    VOCABULARY,
    Oracle,
    open_engine,
    random_prompt,
    reference_batch,
    reference_module,
    reference_tokens,
    run,
    until_end,
)

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.errors import InvalidRequest
from accel.execution.forwards import alone
from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.planner import AdaptivePlanner
from accel.verification.choosing import entropy_tokens
from accel.verification.sampling import Sampling

END = 299


def test_greedy_equals_transformers_with_and_without_drafts(engine: Engine, reference: Any) -> None:
    """55 prompts; the drafts hold the answer, parts of it, mistakes and noise."""
    accepted = trees = 0
    for seed in range(5):
        prompts = np.stack([random_prompt(100 * seed + row, 1 + 3 * seed) for row in range(11)])
        for row, answer in enumerate(reference_batch(reference, prompts, 24)):
            expected = until_end(answer)
            plain = run(engine, prompts[row], max_tokens=24)
            assert plain.tokens.tolist() == expected, f"seed {seed}, row {row}"
            oracle = Oracle(np.array(answer, np.int32), 11 * seed + row)
            drafted = run(engine, prompts[row], max_tokens=24, drafter=oracle)
            assert drafted.tokens.tolist() == expected, f"seed {seed}, row {row}"
            accepted += sum(drafted.statistics.accepted)
            trees += drafted.statistics.forwards
    assert trees > 150
    assert accepted > 375


@pytest.mark.parametrize("seeds", [range(4), pytest.param(range(20), marks=pytest.mark.long)])
def test_greedy_is_the_same_on_random_trees(engine: Engine, seeds: range) -> None:
    """Trees of random shape and order; each is checked by what plain decoding says next."""
    trees = accepted = 0
    for seed in seeds:
        prompt = random_prompt(1000 + seed, 24)
        plain = run(engine, prompt, max_tokens=160, ignore_end=True)
        for variant in range(3):
            oracle = Oracle(plain.tokens, 7 * seed + variant, depth=4)
            drafted = run(engine, prompt, max_tokens=160, drafter=oracle, ignore_end=True)
            assert drafted.tokens.tolist() == plain.tokens.tolist(), f"seed {seed} {variant}"
            trees += drafted.statistics.forwards
            accepted += sum(drafted.statistics.accepted)
    assert trees > 100 * len(seeds)
    assert accepted > 125 * len(seeds)


def test_cancel_stops_prefill_between_chunks(engine: Engine) -> None:
    session = engine.session()
    calls = iter([False, True])
    assert not alone(engine.prefill_steps(random_prompt(9, 400), session, lambda: next(calls)))
    assert session.length == engine.prefill_rows


@pytest.mark.parametrize(("row_s", "rows"), [(1e-5, 256), (5e-4, 128), (1e-3, 64), (0.1, 64)])
def test_a_slow_models_prompt_is_computed_in_short_steps(
    engine: Engine, row_s: float, rows: int
) -> None:
    costs = ForwardCosts([256], [1, 128], np.array([[row_s, 128 * row_s]]))
    slow = Engine(engine.model, engine.tokenizer, AdaptivePlanner(costs), name="slow", threads=1)
    assert slow.prefill_rows == rows


def test_cancel_stops_before_the_next_forward(engine: Engine) -> None:
    stop = [False]
    request = GenerationRequest(random_prompt(10, 20), ignore_end=True, cancelled=lambda: stop[0])
    generation = engine.generate(request)
    actual = []
    for chunk in generation:
        actual.extend(chunk.tokens.tolist())
        stop[0] = len(actual) >= 3
    assert len(actual) == 3
    assert generation.stopped_by == "cancelled"
    assert generation.statistics.forwards == 3


def test_end_token_inside_an_accepted_run(engine: Engine) -> None:
    """The text ends before it, and what was accepted behind it counts for nothing."""
    prompt = random_prompt(11, 20)
    plain = run(engine, prompt, max_tokens=20, ignore_end=True).tokens
    end = int(plain[7])
    first = plain.tolist().index(end)
    oracle = Oracle(plain, 1, depth=20)
    stopped = run(engine, prompt, max_tokens=20, drafter=oracle, stop_tokens=frozenset({end}))
    assert stopped.tokens.tolist() == plain[:first].tolist()
    assert stopped.stopped_by == "end"
    assert oracle.committed == stopped.tokens.tolist()


def test_max_tokens_inside_an_accepted_run(engine: Engine) -> None:
    prompt = random_prompt(12, 20)
    plain = run(engine, prompt, max_tokens=30, ignore_end=True).tokens
    for limit in range(1, 12):
        oracle = Oracle(plain, limit, depth=30)
        stopped = run(engine, prompt, max_tokens=limit, drafter=oracle, ignore_end=True)
        assert stopped.tokens.tolist() == plain[:limit].tolist()
        assert stopped.stopped_by == "length"


def test_tokens_taken_at_once_are_those_taken_one_by_one(engine: Engine) -> None:
    """A rule that never cuts has every token looked at: the same text and end in every case."""
    prompt = random_prompt(14, 20)
    plain = run(engine, prompt, max_tokens=30, ignore_end=True).tokens
    for limit in (1, 6, 7, 8, 30):
        for end in (None, int(plain[0]), int(plain[6])):
            options: dict[str, Any] = {"max_tokens": limit}
            options |= {"ignore_end": True} if end is None else {"stop_tokens": frozenset({end})}
            one_by_one, at_once = (
                run(
                    engine, prompt, drafter=Oracle(plain, limit, depth=9), stop_rule=rule, **options
                )
                for rule in (lambda _text: None, None)
            )
            assert at_once.tokens.tolist() == one_by_one.tokens.tolist()
            assert at_once.text == one_by_one.text
            assert at_once.stopped_by == one_by_one.stopped_by


def test_stop_rule_cuts_inside_an_accepted_run(engine: Engine) -> None:
    prompt = random_prompt(13, 20)
    plain = run(engine, prompt, max_tokens=40, ignore_end=True)

    def rule(text: str) -> int | None:
        return 9 if len(text) >= 12 else None

    for seed in range(4):
        oracle = Oracle(plain.tokens, seed, depth=30)
        stopped = run(engine, prompt, drafter=oracle, stop_rule=rule, ignore_end=True)
        alone = run(engine, prompt, stop_rule=rule, ignore_end=True)
        assert stopped.stopped_by == alone.stopped_by == "stop"
        assert stopped.text == alone.text == plain.text[:9]
        assert stopped.tokens.tolist() == alone.tokens.tolist()


def test_repetition_penalty_counts_each_nodes_own_history(engine: Engine, reference: Any) -> None:
    sampling = Sampling(repetition_penalty=1.7)
    for seed in range(5):
        prompt = random_prompt(3000 + seed, 12)
        expected = reference_tokens(reference, prompt, 24, repetition_penalty=1.7)
        for drafter in (None, Oracle(np.array(expected, np.int32), seed)):
            actual = run(engine, prompt, max_tokens=24, sampling=sampling, drafter=drafter)
            assert actual.tokens.tolist() == until_end(expected), f"seed {seed}"


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(temperature=1.0, seed=3),
        Sampling(temperature=0.7, top_p=0.9, seed=4),
        Sampling(temperature=1.3, top_k=20, repetition_penalty=1.2, seed=5),
    ],
)
def test_a_seed_gives_the_same_text_with_and_without_drafts(
    engine: Engine, sampling: Sampling
) -> None:
    accepted = 0
    for seed in range(6):
        prompt = random_prompt(4000 + seed, 15)
        plain = run(engine, prompt, sampling=sampling, ignore_end=True)
        oracle = Oracle(plain.tokens, seed)
        drafted = run(engine, prompt, sampling=sampling, drafter=oracle, ignore_end=True)
        assert drafted.tokens.tolist() == plain.tokens.tolist(), f"seed {seed}"
        accepted += sum(drafted.statistics.accepted)
    assert accepted > 60


def test_another_seed_gives_another_text(engine: Engine) -> None:
    prompt = random_prompt(14, 15)
    texts = {
        tuple(run(engine, prompt, sampling=Sampling(temperature=1.0, seed=seed)).tokens.tolist())
        for seed in range(9)
    }
    # Some may end at once.
    assert len(texts) > 5


def test_required_prefix_holds_the_first_bytes(engine: Engine) -> None:
    """The constraint is the same with drafts, and the text comes without the required bytes."""
    prompt = random_prompt(15, 20)
    for required in (b"ab", b"\n    x", "é".encode()):
        plain = run(engine, prompt, required_prefix=required, ignore_end=True)
        assert engine.tokenizer.decode_bytes(plain.tokens).startswith(required)
        rest = engine.tokenizer.decode_bytes(plain.tokens)[len(required) :]
        assert rest.decode("utf-8", errors="replace").startswith(plain.text)
        for seed in range(4):
            oracle = Oracle(plain.tokens, seed)
            oracle.commit = lambda tree, path, tokens, o=oracle: o.committed.extend(tokens.tolist())
            drafted = run(engine, prompt, required_prefix=required, drafter=oracle, ignore_end=True)
            assert drafted.tokens.tolist() == plain.tokens.tolist()


def test_text_is_whole_characters(engine: Engine) -> None:
    """Tokens are bytes here, so most characters come in pieces."""
    prompt = random_prompt(16, 20)
    generation = run(engine, prompt, max_tokens=64, ignore_end=True)
    whole = engine.tokenizer.decode(generation.tokens)
    assert whole.startswith(generation.text)
    assert len(whole) - len(generation.text) <= 1


def test_chunks_say_where_tokens_came_from(engine: Engine) -> None:
    prompt = random_prompt(17, 20)
    plain = run(engine, prompt, ignore_end=True).tokens
    request = GenerationRequest(prompt, max_tokens=32, drafter=Oracle(plain, 2), ignore_end=True)
    generation = engine.generate(request)
    chunks = list(generation)
    sources = [source for chunk in chunks for source in chunk.sources]
    assert np.concatenate([chunk.tokens for chunk in chunks]).tolist() == plain.tolist()
    assert len(sources) == len(plain)
    counted = generation.statistics.sources
    assert sources.count("prompt") == counted["prompt"] == sum(generation.statistics.accepted)
    assert sources.count("model") == counted["model"]


def test_generation_ends_where_the_context_ends(engine: Engine) -> None:
    prompt = random_prompt(23, 500)
    plain = run(engine, prompt, max_tokens=100, ignore_end=True)
    assert plain.stopped_by == "length"
    # The last token needs no row of its own.
    assert len(prompt) + len(plain.tokens) == 512 + 1
    oracle = Oracle(plain.tokens, 3)
    drafted = run(engine, prompt, max_tokens=100, drafter=oracle, ignore_end=True)
    assert drafted.tokens.tolist() == plain.tokens.tolist()


@pytest.mark.parametrize(
    "options", [{"prompt": np.empty(0, np.int32)}, {"max_tokens": 0}, {"relaxed": list}]
)
def test_bad_requests_are_refused(engine: Engine, options: dict[str, Any]) -> None:
    sampling = Sampling(temperature=1.0) if "relaxed" in options else Sampling()
    request = GenerationRequest(**({"prompt": random_prompt(1), "sampling": sampling} | options))
    with pytest.raises(InvalidRequest):
        engine.generate(request)


def test_a_prompt_beyond_the_context_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidRequest, match="shorten"):
        run(engine, random_prompt(1, 512))


def test_relaxed_acceptance_is_for_draft_models_alone(engine: Engine) -> None:
    """A second-best token passes from a draft model where the model is unsure, else never."""
    prompt = random_prompt(24, 20)
    plain = run(engine, prompt, max_tokens=4, ignore_end=True).tokens

    class Wrong:
        name = "wrong"

        def __init__(self, source: Source) -> None:
            self.source = source

        def begin(self, request: Any) -> None: ...

        def draft(self, max_nodes: int) -> DraftTree:
            tokens = np.arange(VOCABULARY - 1, dtype=np.int32)[:max_nodes]
            tree = DraftTree.chain(tokens, self.source)
            tree.parents = np.full(len(tokens), -1, np.int32)
            return tree

        def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None: ...

    def text(source: Source, top_k: int) -> list[int]:
        drafter: Any = Wrong(source)
        options = {"max_tokens": 4, "max_nodes": 298, "ignore_end": True, "plan": False}
        if top_k:
            options["relaxed"] = partial(entropy_tokens, top_k=top_k)
        return run(engine, prompt, drafter=drafter, **options).tokens.tolist()

    assert text(Source.DRAFT_MODEL, 0) == plain.tolist()
    assert text(Source.REPOSITORY, 200) == plain.tolist()
    assert text(Source.DRAFT_MODEL, 200) == plain.tolist(), "the likeliest child comes first"


def test_the_small_model_gives_transformers_text() -> None:
    """The real weights, with drafts accepted, in fp32."""
    engine = open_engine(SMALL_MODEL)
    module = reference_module(SMALL_MODEL)
    assert engine.execution_path == "compiled"
    for seed, text in enumerate(
        ["def add(a, b):\n", "import os\nimport", "class Stack:\n    def "]
    ):
        prompt = engine.tokenizer.encode(text)
        expected = reference_tokens(module, prompt, 48)
        ends = [position for position, token in enumerate(expected) if token in engine.end_tokens]
        expected = expected[: ends[0]] if ends else expected
        oracle = Oracle(np.array(expected, np.int32), seed, engine.tokenizer.vocabulary_size)
        actual = run(engine, prompt, max_tokens=48, drafter=oracle)
        assert actual.tokens.tolist() == expected
        assert actual.statistics.tokens_per_forward > 2
