"""Probabilities of the model's tokens: with drafts as without, and given typed bytes."""

from __future__ import annotations

import numpy as np
import pytest
from small_model import SMALL_MODEL

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import TokenArray
from accel.drafting.retrieval.drafter import RetrievalDrafter
from accel.execution.forwards import alone
from accel.models.batch import chain_batch
from accel.verification.confidence import IMPOSSIBLE, Confidence, log_total

CODE = "".join(
    f"def area_{n}(width, height):\n    area = width * height\n    return area + {n}\n\n\n"
    for n in range(6)
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.load(SMALL_MODEL, threads=1)


def written(
    engine: Engine, typed: str, drafts: bool, logprobs: int | None = None
) -> tuple[TokenArray, list[Confidence], list[float]]:
    prompt = engine.fim_prompt(CODE + typed, "\n\n\nprint(area_7(1, 2))\n")
    generation = engine.generate(
        GenerationRequest(
            prompt.tokens,
            max_tokens=24,
            drafter=RetrievalDrafter() if drafts else None,
            stop_tokens=prompt.stop_tokens,
            required_prefix=prompt.required_prefix,
            logprobs=logprobs,
            confidences=True,
            following="\n",
            # What is drafted must not follow from what forwards took.
            plan=False,
        )
    )
    chunks = list(generation)
    actual = [each for chunk in chunks for each in chunk.confidences]
    told = [each.logprob for chunk in chunks for each in chunk.logprobs]
    assert len(actual) == len(generation.tokens) + (generation.stopped_by == "end")
    if drafts:
        assert any(len(chunk.tokens) > 1 for chunk in chunks), "a draft was right"
    return generation.tokens, actual, told


@pytest.mark.parametrize("typed", ["", "def area_7(width, height):\n    ar", "def area_7(wid"])
def test_drafts_change_no_probability(engine: Engine, typed: str) -> None:
    tokens, plain, _ = written(engine, typed, drafts=False)
    same, drafted, _ = written(engine, typed, drafts=True)
    assert tokens.tolist() == same.tolist()
    # Its own forward computes the same numbers to the last bit, whatever is drafted.
    assert drafted == plain
    assert max(max(actual) for actual in plain) <= 0


def test_they_are_the_models_own_probabilities(engine: Engine) -> None:
    """As a slow softmax of a forward over the whole text gives them."""
    prompt = engine.fim_prompt(CODE, "\nprint(area_7(1, 2))\n")
    ends = sorted(engine.tokenizer.leading_to("\n"))
    request = GenerationRequest(prompt.tokens, max_tokens=12, confidences=True, following="\n")
    chunks = list(generation := engine.generate(request))
    text = np.concatenate([prompt.tokens, generation.tokens]).astype(np.int32)
    logits = alone(
        engine.forward_steps(
            chain_batch(text[:-1], len(prompt.tokens) - 1, wants_numbers=True), engine.session()
        )
    )
    actual = [each for chunk in chunks for each in chunk.confidences]
    for position, token in enumerate(generation.tokens.tolist()):
        row = np.exp(logits.row(position).astype(np.float64))
        assert actual[position].token == pytest.approx(np.log(row[token] / row.sum()), abs=1e-3)
        every = sorted({*ends, *engine.model.end_tokens})
        assert actual[position].end == pytest.approx(np.log(row[every].sum() / row.sum()), abs=1e-3)


def test_the_end_of_a_text_that_ends_by_itself_is_told(engine: Engine) -> None:
    prompt = engine.fim_prompt(CODE, "\nprint(area_7(1, 2))\n")
    first = engine.generate(GenerationRequest(prompt.tokens, max_tokens=6)).finish().tokens
    ended = GenerationRequest(
        prompt.tokens, max_tokens=6, confidences=True, stop_tokens=frozenset([int(first[-1])])
    )
    chunks = list(generation := engine.generate(ended))
    actual = [each for chunk in chunks for each in chunk.confidences]
    assert generation.stopped_by == "end"
    assert len(actual) == len(generation.tokens) + 1
    assert actual[-1].end >= actual[-1].token


def test_a_word_that_is_typed_in_part_does_not_end_there(engine: Engine) -> None:
    _, actual, _ = written(engine, "def area_7(width, height):\n    ar", drafts=False)
    assert actual[0].end == IMPOSSIBLE


@pytest.mark.parametrize("character", ["\n", ")", ",", "x"])
def test_tokens_that_lead_to_a_character(engine: Engine, character: str) -> None:
    tokenizer = engine.tokenizer
    for token, spelt in enumerate(tokenizer.byte_table):
        text = spelt.decode("utf-8", errors="replace").lstrip(" \t")
        leads = text[:1] in ("\r\n" if character == "\n" else character) and text != ""
        leads = leads and token not in tokenizer.special_tokens
        assert (token in tokenizer.leading_to(character)) == leads


def test_what_is_typed_makes_the_rest_of_its_word_likelier(engine: Engine) -> None:
    """The first token counts among those that begin as what is typed does."""
    _, given, alone = written(engine, "def area_7(width, height):\n    ar", True, logprobs=0)
    assert given[0].token >= alone[0]
    assert sum(each.token for each in given[: len(alone)]) > sum(alone)


def test_log_probabilities_are_the_softmax_among_what_is_allowed() -> None:
    rng = np.random.default_rng(seed := 5)
    logits = rng.normal(0, 4, 300).astype(np.float32)
    allowed = rng.choice(300, 40, replace=False)
    for among in (None, allowed):
        whole = np.arange(300) if among is None else among
        slow = np.exp(logits[whole].astype(np.float64))
        slow = dict(zip(whole.tolist(), (slow / slow.sum()).tolist(), strict=True))
        for token in whole[:10].tolist():
            actual = logits[token] - log_total(logits[whole])
            assert actual == pytest.approx(np.log(slow[token]), abs=1e-5), f"seed {seed}"
