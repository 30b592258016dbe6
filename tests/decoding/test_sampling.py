"""Sampling: the processors of transformers, exact distributions, noise by seed and place."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from accel.draft_tree import DraftTree, Source
from accel.drafting.sdsat import nucleus
from accel.errors import InvalidRequest
from accel.verification.choosing import choose, likely_enough
from accel.verification.logits_processor import LogitsProcessor
from accel.verification.sampling import Sampling
from accel.verification.verify_tree import verify_tree
from tests.draft_trees import accepted_path, merged

_MASK = (1 << 64) - 1


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 1.0), (5, 1.0), (0, 0.8), (8, 0.7), (1, 1.0)])
@pytest.mark.parametrize("penalty", [1.0, 1.4])
def test_candidates_equal_those_of_transformers(
    temperature: float, top_k: int, top_p: float, penalty: float
) -> None:
    random = np.random.default_rng(0)
    for _ in range(20):
        logits = random.normal(0, 3, 40).astype(np.float32)
        seen = np.unique(random.integers(0, 40, 6)).astype(np.int32)
        sampling = Sampling(temperature, top_k, top_p, penalty)
        scores = LogitsProcessor(sampling, seen).scores(logits, [], [])
        ours = nucleus(scores, sampling)
        theirs = LogitsProcessorList(
            [RepetitionPenaltyLogitsProcessor(penalty), TemperatureLogitsWarper(temperature)]
        )
        if top_k:
            theirs.append(TopKLogitsWarper(top_k))
        if top_p < 1:
            theirs.append(TopPLogitsWarper(top_p))
        processed = theirs(
            torch.from_numpy(seen.astype(np.int64))[None], torch.tensor(logits)[None]
        )
        expected = np.flatnonzero(torch.isfinite(processed[0]).numpy())
        assert sorted(ours.tolist()) == expected.tolist()
        np.testing.assert_allclose(
            scores[np.sort(ours)] / temperature, processed[0, expected].numpy(), rtol=1e-5
        )


@pytest.mark.parametrize("temperature", [0.3, 1.0, 1.7])
@pytest.mark.parametrize("min_p", [0.0, 0.01, 0.3, 1.0])
def test_min_p_excludes_what_it_does_in_transformers(temperature: float, min_p: float) -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        scores = random.normal(0, 3, 40).astype(np.float32)
        ours = likely_enough(scores, Sampling(temperature, min_p=min_p))
        theirs = LogitsProcessorList(
            [TemperatureLogitsWarper(temperature), MinPLogitsWarper(min_p)]
        )(torch.zeros((1, 1), dtype=torch.long), torch.tensor(scores)[None])
        assert (ours > -np.inf).tolist() == torch.isfinite(theirs[0]).tolist()
        likely = set(np.flatnonzero(ours > -np.inf).tolist())
        drawn = {choose(scores, Sampling(temperature, min_p=min_p), at) for at in range(30)}
        assert drawn <= likely


def test_noise_depends_on_seed_place_and_token_alone() -> None:
    tokens = np.arange(1000)
    noise = gumbel(1, 2, tokens)
    assert np.array_equal(noise, gumbel(1, 2, tokens))
    assert np.array_equal(noise[500:510], gumbel(1, 2, np.arange(500, 510)))
    for other in (gumbel(1, 3, tokens), gumbel(2, 2, tokens), gumbel(-1, 2, tokens)):
        assert abs(np.corrcoef(noise, other)[0, 1]) < 0.1
    many = gumbel(7, 7, np.arange(200_000))
    assert many.mean() == pytest.approx(np.euler_gamma, abs=0.02)
    assert many.var() == pytest.approx(np.pi**2 / 6, abs=0.03)


def test_noise_of_neighbouring_places_is_independent() -> None:
    noise = np.stack([gumbel(3, position, np.arange(50)) for position in range(4000)])
    off_diagonal = np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]
    assert abs(off_diagonal) < 0.01


def gumbel(seed: int, place: int, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Standard Gumbel noise, a pure function of seed, place and token: plainly what ``draw`` adds.
    float64 [n]."""
    key = _mix(_mix(np.uint64(seed & _MASK)) ^ np.uint64(place & _MASK))
    bits = _mix(_mix(tokens.astype(np.uint64) ^ key) + key)
    uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    noise: NDArray[np.float64] = -np.log(-np.log(uniform))
    return noise


def _mix(value: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """The SplitMix64 finaliser (Steele et al. 2014) of value plus its increment."""
    with np.errstate(over="ignore"):
        mixed = np.asarray(value, np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def slow_draw(scores: np.ndarray, sampling: Sampling, place: int) -> int:
    candidates = nucleus(scores, sampling)
    noise = gumbel(sampling.seed, place, candidates)
    return int(candidates[(scores[candidates] / sampling.temperature + noise).argmax()])


def test_compiled_draws_equal_those_that_sort_all_tokens() -> None:
    seed = int(np.random.SeedSequence().generate_state(1)[0])
    print(f"seed {seed}")
    random = np.random.default_rng(seed)
    for _ in range(1500):
        size = int(random.choice([1, 3, 17, 300, 8192], p=[0.1, 0.2, 0.3, 0.35, 0.05]))
        scores = random.normal(0, random.choice([0.1, 1, 3, 10]), size).astype(np.float32)
        if random.random() < 0.3:  # excluded tokens
            scores[1:][random.random(size - 1) < 0.5] = -np.inf
        if random.random() < 0.3:  # ties
            scores = np.round(scores)
        sampling = Sampling(
            float(random.choice([0.05, 0.2, 1, 1.7, 5])),
            int(random.choice([0, 1, 5, 50])),
            float(random.choice([1, 0.999, 0.95, 0.5, 1e-6])),
            seed=int(random.integers(-5, 1 << 40)),
        )
        position = int(random.integers(0, 10_000))
        expected = slow_draw(scores, sampling, position)
        assert choose(scores, sampling, position) == expected, (size, sampling, position)


def test_next_to_no_temperature_takes_the_likeliest() -> None:
    for temperature in (1e-12, 1e-40, 1e-300):
        for scores in ([1.0, 3.0, 2.0], [-3.0, -1.0, -2.0]):
            sampling = Sampling(temperature, top_p=0.9)
            assert choose(np.array(scores, np.float32), sampling, 4) == np.argmax(scores)
            assert choose(np.array(scores, np.float32), Sampling(temperature), 4) == 1


@pytest.mark.parametrize("nothing", [-np.inf, np.nan])
@pytest.mark.parametrize("size", [3, 40])
def test_where_nothing_can_be_drawn_some_token_is(nothing: float, size: int) -> None:
    """Not even where a nucleus is looked for, which no token is in."""
    scores = np.full(size, nothing, np.float32)
    for sampling in (Sampling(1.0), Sampling(1.0, top_p=0.9), Sampling(1.0, top_k=2, top_p=0.9)):
        assert 0 <= choose(scores, sampling, 4) < size


def chi_square(counts: np.ndarray, expected: np.ndarray) -> float:
    return float(((counts - expected) ** 2 / expected).sum())


def test_draws_follow_the_distribution() -> None:
    """20,000 draws from 6 tokens; the bound is passed by chance once in 100,000 runs."""
    logits = np.log(np.array([0.4, 0.25, 0.15, 0.1, 0.07, 0.03], np.float32))
    draws = [choose(logits, Sampling(1.0, seed=11), position) for position in range(20_000)]
    counts = np.bincount(draws, minlength=6)
    assert chi_square(counts, np.exp(logits) * 20_000) < 30.9


def test_drafts_do_not_bend_the_distribution() -> None:
    """Two steps of a known process, with trees that hold some of the continuations: the pairs
    come as often as without drafts. REST's rule fails here."""
    first = np.array([0.5, 0.3, 0.2])
    second = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    trees = [
        merged([np.array([2, 1]), np.array([0])], Source.PROMPT),
        merged([np.array([0, 2]), np.array([0, 0])], Source.PROMPT),
        DraftTree.empty(),
    ]
    counts = np.zeros((3, 3))
    for seed in range(18_000):
        sampling = Sampling(1.0, seed=seed)
        tree = trees[seed % 3]

        def token(node: int, above: list[int], tree=tree, sampling=sampling) -> int:  # type: ignore[no-untyped-def]
            chances = first if not above else second[above[0]]
            return choose(np.log(chances).astype(np.float32), sampling, len(above))

        path, tokens = verify_tree(tree, token)
        assert path == accepted_path(tree, np.array(tokens, np.int32))
        while len(tokens) < 2:
            tokens.append(token(-1, tokens))
        counts[tokens[0], tokens[1]] += 1
    expected = first[:, None] * second * 18_000
    assert chi_square(counts, expected) < 35.0


def test_top_k_one_is_greedy() -> None:
    logits = np.random.default_rng(1).normal(size=50).astype(np.float32)
    for position in range(20):
        assert choose(logits, Sampling(2.0, top_k=1), position) == int(logits.argmax())


def test_excluded_tokens_are_never_drawn() -> None:
    logits = np.full(10, -np.inf, np.float32)
    logits[3] = -5.0
    assert {choose(logits, Sampling(1.0, top_p=0.5), position) for position in range(50)} == {3}


@pytest.mark.parametrize(
    "values",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"repetition_penalty": 0.0},
        {"min_p": -0.1},
        {"min_p": 1.1},
        {"presence_penalty": float("nan")},
        {"frequency_penalty": float("inf")},
        {"last_tokens": -1},
        {"logit_bias": ((3, float("inf")),)},
        {"logit_bias": ((3, float("nan")),)},
    ],
)
def test_impossible_values_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(InvalidRequest):
        Sampling(**values)  # type: ignore[arg-type]
