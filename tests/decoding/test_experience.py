"""The profile of forwards is corrected while it is used, against machines whose costs are known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_models import open_engine, save

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.experience import BATCH, SAVED, Experience
from accel.planner import NODE_S, Planner
from accel.profile import Costs
from accel.request import GenerationRequest
from accel.sampling import Sampling
from accel.sources.protocol import DraftRequest

ROWS = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128]
ALONE = [326, 330, 339, 351, 420, 500, 690, 850, 1150, 1450, 2050, 2650, 3900, 5200]
BOTH = [np.inf] * 3 + [300, 306, 320, 452, 506, 670, 802, 1140, 1434, 2117, 2870]
OVERHEAD_S = 1e-4


def costs(wide: float = 1.0, both: float | None = None) -> Costs:
    """Of one thread with forwards of 8 rows and more ``wide`` times as slow as ours, or of two
    threads ``both`` times as slow."""
    factors = np.where(np.array(ROWS) < 8, 1.0, wide)
    alone = np.array([ALONE, ALONE]) * 1e-6 * factors
    alone[1] *= 1.5
    one = Costs([256, 2048], ROWS, alone)
    if both is None:
        return one
    pair = np.array([BOTH, BOTH]) * 1e-6 * both
    pair[1] *= 1.5
    one.by_threads = np.stack([alone, pair])
    return one.corrected(np.ones((2, len(ROWS))))


def draft(random: np.random.Generator) -> DraftTree:
    """A chain, three branches, or nothing, as sure as drafts are."""
    if random.random() < 0.25:
        return DraftTree.empty()
    chances = np.cumprod(np.full(int(random.choice([8, 64, 128])), random.uniform(0.3, 0.98)))
    if random.random() < 0.4:
        chances = np.sort(np.concatenate([chances, 0.4 * chances, 0.15 * chances]))[::-1]
    tree = DraftTree.chain(np.arange(min(len(chances), 128), dtype=np.int32), Source.PROMPT)
    tree.probabilities = chances[: len(tree)].astype(np.float32)
    return tree


class Machine:
    """Plans with a profile on a machine that has other costs, and a pace that changes by up to
    three times every 300 forwards; one forward in 20 is interrupted and takes ten times as long."""

    def __init__(self, profile: Costs, true: Costs, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.experience = Experience(profile)
        self.planner = Planner(profile, can_pad=False, experience=self.experience)
        self.unaware = Planner(profile, can_pad=False)
        self.knowing = Planner(true, can_pad=False)
        self.true, self.pace, self.count = true, 1.0, 0

    def seconds(self, rows: int, shared: bool) -> float:
        """The truth, at a pace of 1."""
        curves = self.true.seconds[None] if self.true.by_threads is None else self.true.by_threads
        return float(np.interp(rows, ROWS, curves[int(shared)][0]))

    def step(self, planner: Planner, tree: DraftTree) -> tuple[int, bool, NDArray[np.float64]]:
        """Rows and threads that a planner takes; expected tokens and seconds."""
        tree = planner.fit(tree, 1, 100, 1.0, OVERHEAD_S)
        rows = 1 + len(tree)
        shared = 1 < planner.shared_from <= rows
        seconds = self.seconds(rows, shared) + OVERHEAD_S
        return rows, shared, np.array([1 + float(tree.probabilities.sum()), seconds])

    def run(self, forwards: int) -> tuple[float, float]:
        """Tokens per second with experience, and by the profile alone, for those of a planner that
        knows the truth."""
        sums = np.zeros((3, 2))
        for _ in range(forwards):
            if self.count % 300 == 0:
                self.pace = float(self.random.choice([0.7, 1.0, 1.4, 2.0]))
            self.count += 1
            tree = draft(self.random)
            rows, shared, outcome = self.step(self.planner, tree)
            taken = self.seconds(rows, shared) * self.pace * self.random.lognormal(0, 0.1)
            taken *= 10 if self.random.random() < 0.05 else 1
            self.planner.took(rows, 100, taken, shared)
            sums[0] += outcome
            sums[1] += self.step(self.unaware, tree)[2]
            sums[2] += self.step(self.knowing, tree)[2]
        rates = sums[:, 0] / sums[:, 1]
        return float(rates[0] / rates[2]), float(rates[1] / rates[2])


SEEDS = (1, 2)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("profile", [costs(), costs(both=1.0)], ids=["one", "two"])
def test_nothing_is_lost_where_the_profile_is_right(profile: Costs, seed: int) -> None:
    experienced, unaware = Machine(profile, profile, seed).run(3000)
    assert unaware == pytest.approx(1.0)
    assert experienced > 0.99, f"seed {seed}"


@pytest.mark.parametrize(
    ("profile", "true", "lost"),
    [
        (costs(), costs(wide=2.0), 0.05),
        (costs(wide=2.0), costs(), 0.05),
        (costs(both=1.0), costs(both=1.6), 0.03),
        (costs(both=1.6), costs(both=1.0), 0.15),
        (costs(both=2.5), costs(both=1.0), 0.15),
    ],
    ids=["wide dearer", "wide cheaper", "two slower", "two faster", "two never, by the profile"],
)
def test_wrong_profiles_are_found_out(profile: Costs, true: Costs, lost: float) -> None:
    """At first the share ``lost`` of the tokens per second is lost and more; in the end 3 % are,
    although forwards that look too dear are never chosen for what the profile says of them."""
    for seed in SEEDS:
        machine = Machine(profile, true, seed)
        machine.run(2500)
        experienced, unaware = machine.run(1500)
        assert unaware < 1 - lost, f"seed {seed}"
        assert experienced > 0.97, f"seed {seed}"
        assert (machine.planner.shared_from > 0) == (true.shared_from > 0), f"seed {seed}"


def test_a_pace_that_all_forwards_share_changes_nothing() -> None:
    profile = costs()
    experience, random = Experience(profile), np.random.default_rng(3)
    planner = Planner(profile, can_pad=False, experience=experience)
    for step in range(20 * 64):
        rows, context = int(random.integers(1, 129)), int(random.integers(0, 3000))
        pace = 0.5 if step // (5 * 64) % 2 else 4.0
        planner.took(rows, context, pace * float(profile.by_rows(context, rows)[rows]), False)
    assert experience.costs is profile or np.allclose(experience.costs.seconds, profile.seconds)
    assert np.abs(experience.shape).max() < 0.02


def test_estimates_that_are_young_change_nothing() -> None:
    experience = Experience(costs())
    for _ in range(BATCH - 1):
        experience.took(32, 100, 1.0, False)
    assert np.array_equal(experience.costs.seconds, costs().seconds)
    experience.took(32, 100, 1.0, False)
    assert np.array_equal(experience.costs.seconds, costs().seconds), "one size tells no shape"
    assert not experience.shape.any()


def test_the_filter_equals_a_regression_over_all_it_saw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is forgotten: the mean of the Gaussian process given all observations."""
    monkeypatch.setattr("accel.experience._KEPT", 1.0)
    seed = 11
    random = np.random.default_rng(seed)
    experience = Experience(costs(both=1.0))
    prior = experience._prior
    places, values, noises, blocks = [], [], [], []
    for batch in range(5):
        surprises, weights = np.zeros((2, 4, len(prior)))
        for block in range(4):
            for place in random.choice(len(prior), 5, replace=False):
                value, noise = random.normal(0, 0.5), random.uniform(0.01, 0.1)
                surprises[block, place] = value - experience.shape[place]
                weights[block, place] = 1 / noise
                places.append(place)
                values.append(value)
                noises.append(noise)
                blocks.append(4 * batch + block)
        experience._filter(surprises, weights)
    observed = prior[np.ix_(places, places)] + np.diag(noises)
    for first, block in enumerate(blocks):
        for second, other in enumerate(blocks):
            observed[first, second] += block == other
    gains = prior[:, places] @ np.linalg.inv(observed)
    assert np.allclose(experience.shape, gains @ np.array(values)), f"seed {seed}"
    assert np.allclose(experience._covariance, prior - gains @ prior[places]), f"seed {seed}"


def test_rows_not_seen_lean_to_their_neighbours_and_come_back() -> None:
    """24 rows were slow in one bad spell; 16 and 32 rows stay as the profile says."""
    experience = Experience(costs())
    profile = costs().by_rows(256, 128)
    for step in range(40 * 64):
        rows = (1, 16, 24, 32)[step % 4]
        slow = 3.0 if rows == 24 else 1.0
        experience.took(rows, 256, slow * float(profile[rows]), False)
    bent = experience.shape[ROWS.index(24)]
    assert bent > 0.8
    assert experience.shape[ROWS.index(48)] < 0.4 * bent
    for step in range(64_000):
        rows = (1, 16, 32)[step % 3]
        experience.took(rows, 256, float(profile[rows]), False)
    assert experience.shape[ROWS.index(24)] < 0.2 * bent


def test_forwards_that_two_threads_hardly_share_are_priced_as_one_computes_them() -> None:
    profile = costs(both=1.0)
    assert profile.shared_from == 4
    assert profile.by_threads is not None
    experience, random = Experience(profile), np.random.default_rng(5)
    for _ in range(40 * 64):
        rows = int(random.choice(ROWS))
        experience.took(rows, 256, float(profile.by_threads[0][0][ROWS.index(rows)]), False)
    assert np.allclose(experience.costs.seconds, profile.by_threads[0], rtol=0.1)


def test_experience_is_kept_for_its_profile_alone() -> None:
    saved: list[Any] = []
    profile, random = costs(), np.random.default_rng(6)
    experience = Experience(profile, None, saved.append)
    true = costs(wide=2.0)
    for _ in range(SAVED):
        rows = int(random.choice(ROWS))
        experience.took(rows, 256, float(true.seconds[0][ROWS.index(rows)]), False)
    assert len(saved) == 1
    kept = json.loads(json.dumps(saved[0]))
    again = Experience(Costs.from_json(json.loads(json.dumps(profile.to_json()))), kept)
    assert np.array_equal(again.shape, experience.shape)
    assert again.costs.seconds[0][-1] > 1.3 * profile.seconds[0][-1]
    for other in (
        None,
        [],
        {"shape": kept["shape"]},
        {**kept, "shape": [1.0]},
        {**kept, "shape": "x"},
    ):
        assert not Experience(profile, other).shape.any()
    assert not Experience(costs(wide=1.1), kept).shape.any()


def test_costs_of_two_threads_survive_the_store() -> None:
    profile = costs(both=1.0)
    again = Costs.from_json(json.loads(json.dumps(profile.to_json())))
    assert again.by_threads is not None
    assert np.array_equal(again.by_threads, profile.by_threads)
    assert again.shared_from == profile.shared_from == 4


def test_slopes_equal_a_search_over_all_larger_counts() -> None:
    seed = 4
    random = np.random.default_rng(seed)
    for can_pad in (False, True) * 10:
        seconds = np.cumsum(random.uniform(-0.2, 1, (1, len(ROWS))), 1) + 3
        planner = Planner(Costs([256], ROWS, seconds), 200, can_pad=can_pad)
        pending = int(random.integers(1, 40))
        prices = planner.prices(pending, 100, 1.0, 0.1)
        for count, slope in enumerate(prices.slopes[:-1]):
            later = prices.seconds[count + 1 :] - prices.seconds[count]
            least = (later / np.arange(1, len(later) + 1)).min()
            assert slope == pytest.approx(max(least, 0) + NODE_S), f"seed {seed}"


class Twice:
    """Drafts the last token once more."""

    name = "twice"

    def begin(self, request: DraftRequest) -> None:
        self.last = request.prompt[-1:]

    def draft(self, max_nodes: int) -> DraftTree:
        return DraftTree.chain(self.last[:max_nodes], Source.PROMPT, 0.9)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        self.last = tokens[-1:]


def test_an_engine_tells_what_forwards_of_drafts_take(tmp_path: Path) -> None:
    """The text stays, and the model is told where two threads begin to pay."""
    engine = open_engine(save(tmp_path, "llama"))
    plain = GenerationRequest(np.arange(5, dtype=np.int32), 100, ignore_end=True)
    request = replace(plain, drafter=Twice(), plan=False)
    drawn = replace(request, sampling=Sampling(temperature=1.0), max_tokens=20)
    text = engine.generate(plain).finish().tokens.tolist()
    profile = costs(both=2.5)
    engine.planner = Planner(profile, can_pad=False, experience=(told := Experience(profile)))
    forwards = 0
    for one, is_told in ((plain, False), (request, True), (drawn, False)):
        before = len(told._taken)
        generation = engine.generate(one).finish()
        assert one is drawn or generation.tokens.tolist() == text
        forwards += generation.statistics.forwards
        assert told._count == forwards
        noted = generation.statistics.forwards if is_told else 0
        assert (len(told._taken) - before) % BATCH == noted % BATCH
    while not engine.planner.shared_from:
        assert engine.model.shared_from == 0
        assert engine.took(1, 100, 1.0) == engine.planner._costs(False).by_rows(128, 1)[1]
    assert engine.model.shared_from == engine.planner.shared_from > 0
    assert engine.took(1, 100, 7.0, told=False) == 7.0
