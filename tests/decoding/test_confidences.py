"""How sure the model is of its tokens: with drafts as without, and given what is typed."""

from __future__ import annotations

import numpy as np
import pytest
from small_model import SMALL_MODEL

from accel.batch import chain_batch
from accel.draft_tree import TokenArray
from accel.drafting.retrieval.drafter import RetrievalDrafter
from accel.engine import Engine
from accel.request import GenerationRequest

CODE = "".join(
    f"def area_{n}(width, height):\n    area = width * height\n    return area + {n}\n\n\n"
    for n in range(6)
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.load(SMALL_MODEL, threads=1)


def written(
    engine: Engine, typed: str, drafts: bool, logprobs: int | None = None
) -> tuple[TokenArray, list[float], list[float]]:
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
        )
    )
    chunks = list(generation)
    found = [one for chunk in chunks for one in chunk.confidences]
    told = [one.logprob for chunk in chunks for one in chunk.logprobs]
    if drafts:
        assert any(len(chunk.tokens) > 1 for chunk in chunks), "a draft was right"
    return generation.tokens, found, told


@pytest.mark.parametrize("typed", ["", "def area_7(width, height):\n    ar", "def area_7(wid"])
def test_drafts_change_no_probability(engine: Engine, typed: str) -> None:
    tokens, plain, _ = written(engine, typed, drafts=False)
    same, drafted, _ = written(engine, typed, drafts=True)
    assert tokens.tolist() == same.tolist()
    assert len(plain) == len(tokens)
    # Its own forward computes the same numbers to the last bit, whatever is drafted.
    assert drafted == plain
    assert max(plain) <= 0


def test_they_are_the_models_own_probabilities(engine: Engine) -> None:
    """As a slow softmax of a forward over the whole text gives them."""
    prompt = engine.fim_prompt(CODE, "\nprint(area_7(1, 2))\n")
    request = GenerationRequest(prompt.tokens, max_tokens=12, confidences=True)
    chunks = list(generation := engine.generate(request))
    text = np.concatenate([prompt.tokens, generation.tokens]).astype(np.int32)
    logits = engine.forward(
        chain_batch(text[:-1], len(prompt.tokens) - 1, wants_numbers=True), engine.session()
    )
    found = [one for chunk in chunks for one in chunk.confidences]
    for place, token in enumerate(generation.tokens.tolist()):
        row = np.exp(logits.row(place).astype(np.float64))
        assert found[place] == pytest.approx(np.log(row[token] / row.sum()), abs=1e-3)


def test_what_is_typed_makes_the_rest_of_its_word_likelier(engine: Engine) -> None:
    """The first token counts among those that begin as what is typed does."""
    _, given, alone = written(engine, "def area_7(width, height):\n    ar", True, logprobs=0)
    assert given[0] >= alone[0]
    assert sum(given) > sum(alone)
