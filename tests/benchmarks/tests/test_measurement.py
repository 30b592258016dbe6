"""Figures of the benches against examples worked out by hand."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from seeds import for_each_seed

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest
from accel.execution.statistics import Statistics
from accel.models.costs.forward_costs import ForwardCosts
from accel.planning.cost_table import CostTable
from accel.planning.planner import DraftPlan
from tests.benchmarks import report
from tests.benchmarks.completion.replay import PlainDrafter, Planned, Recorder, project
from tests.benchmarks.measurement import Measurement, repeated_share, similarity, summarise
from tests.benchmarks.replay import replay
from tests.draft_trees import merged


def array(*tokens: int) -> TokenArray:
    return np.array(tokens, np.int32)


class Script:
    """Drafts given trees one after another and notes what it is told."""

    name = "script"

    def __init__(self, trees: list[DraftTree]) -> None:
        self.trees = list(trees)
        self.told: list[tuple[list[int], list[int]]] = []

    def begin(self, request: DraftRequest) -> None:
        self.told = []

    def draft(self, max_nodes: int) -> DraftTree:
        return self.trees.pop(0).prefix(max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        self.told.append((path, tokens.tolist()))


def test_replay_counts_forwards_and_tokens() -> None:
    script = Script(
        [
            merged([array(1, 2, 9), array(1, 3)], Source.REPOSITORY),
            DraftTree.empty(),
            merged([array(6, 7, 8)], Source.PROMPT),
        ]
    )
    # 1 2 accepted and 4 the model's own; then 5 alone; then 6 7 accepted, where the text ends.
    statistics = replay(script, DraftRequest(array(0)), array(1, 2, 4, 5, 6, 7), 64)
    assert script.told == [([0, 1], [1, 2, 4]), ([], [5]), ([0, 1], [6, 7])]
    assert (statistics.tokens, statistics.forwards, statistics.nodes) == (6, 3, 7)
    assert statistics.accepted == [2, 0, 2]
    assert statistics.sources == {"repository": 2, "prompt": 2, "model": 2}
    assert statistics.tokens_per_forward == 2.0


def test_replay_without_drafts_takes_a_forward_for_each_token() -> None:
    statistics = replay(PlainDrafter(), DraftRequest(array(0)), array(*range(17)), 64)
    assert (statistics.tokens, statistics.forwards, statistics.nodes) == (17, 17, 0)


def test_replay_gives_no_more_nodes_than_asked() -> None:
    recorder = Recorder(Script([merged([array(1, 2, 3, 4)], Source.COMMON)] * 2))
    statistics = replay(recorder, DraftRequest(array(0)), array(1, 2, 3, 4), 2)
    assert recorder.sizes == [2, 2]
    assert statistics.accepted == [2, 0]


def measured(accepted: list[int], *, decode_s: float = 1.0, group: str = "a") -> Measurement:
    statistics = Statistics(
        tokens=sum(accepted) + len(accepted),
        forwards=len(accepted),
        nodes=10 * len(accepted),
        prefill_s=0.5,
        decode_s=decode_s,
        draft_s=[1e-4] * len(accepted),
        learn_s=0.3,
        verify_s=[2e-3] * len(accepted),
        accepted=accepted,
    )
    return Measurement(
        "m", group, "case", statistics, list(range(statistics.tokens)), 40, wall_s=2.0
    )


def test_summary_of_two_cases() -> None:
    one, two = measured([3, 1]), measured([0], decode_s=0.5)
    two.identical, two.exact, two.identical_hf, two.similarity = False, False, False, 0.5
    one.identical_hf = True
    summary = summarise([one, two])
    assert summary["cases"] == 2
    assert (summary["tokens"], summary["forwards"]) == (7, 3)
    assert summary["tokens_per_forward"] == pytest.approx(7 / 3)
    assert summary["tokens_per_forward_mean"] == pytest.approx((6 / 2 + 1) / 2)
    assert summary["bytes_per_forward"] == pytest.approx(80 / 3)
    assert summary["nodes_per_forward"] == 10
    assert summary["draft_us_p50"] == pytest.approx(100)
    assert summary["verify_ms_p50"] == pytest.approx(2)
    assert summary["drafting_share"] == pytest.approx((3e-4 + 0.6) / 1.5)
    assert summary["wall_s"] == 4
    assert summary["prefill_s"] == 1
    assert summary["tokens_per_s"] == pytest.approx(7 / 1.5)
    assert (summary["identical"], summary["identical_hf"], summary["exact"]) == (1, 1, 1)
    assert summary["edit_similarity"] == 0.75


def test_repeated_16grams() -> None:
    assert repeated_share([[1, 2, 3]]) == 0
    assert repeated_share([list(range(40))]) == 0
    # 32 tokens hold 17 16-grams; of a constant text all but the first occurred before.
    assert repeated_share([[7] * 32]) == pytest.approx(16 / 17)
    assert repeated_share([[7] * 32], 8) == pytest.approx(24 / 25)
    # What another text said is no repetition.
    assert repeated_share([list(range(16)), list(range(16))]) == 0


def decoded(method: str, case: str, tokens: list[int], decode_s: float) -> Measurement:
    statistics = Statistics(tokens=len(tokens), forwards=len(tokens), decode_s=decode_s)
    return Measurement(method, "a", case, statistics, tokens, 1, wall_s=decode_s)


def test_cases_whose_text_loops_are_told_apart() -> None:
    fresh, loop = list(range(40)), [7] * 40
    plain = [decoded("plain", "one", fresh, 4.0), decoded("plain", "two", loop, 4.0)]
    peer = [decoded("fastcoder", "one", fresh, 4.0), decoded("fastcoder", "two", loop, 0.1)]
    # What a method makes of a case does not choose the cases; plain decoding's text does.
    ours = [decoded("redraft", "one", loop, 2.0), decoded("redraft", "two", fresh, 0.1)]
    compared = [*plain, *peer, *ours]
    document: dict[str, Any] = {"methods": {}, "groups": {}}
    report.add_hardly_repeated(document, compared, plain)
    part = document["hardly_repeated"]
    assert (part["cases"], part["of_cases"], part["fastest_plain"]) == (1, 2, "plain")
    assert (
        part["methods"]["redraft"]["speedup"] == part["methods"]["redraft"]["over_best_peer"] == 2
    )
    assert part["methods"]["redraft"]["pair_ratio"] == 0.5
    none: dict[str, Any] = {}
    report.add_hardly_repeated(none, compared[1::2], plain[1:])
    assert none == {}


def test_ours_against_the_fastest_of_the_others() -> None:
    speeds = {"plain": 9.0, "hf-generate": 9.0, "rest": 2.0, "fastcoder": 3.0, "redraft": 6.0}
    methods: dict[str, Any] = {name: {"tokens_per_s": speed} for name, speed in speeds.items()}
    methods["sdsat"] = {"unavailable": "no such tokens"}
    document: dict[str, Any] = {
        "methods": methods,
        "groups": {"a": {"redraft": dict(methods["redraft"])}},
    }
    report.add_best_peer(document)
    assert document["best_peer"] == "fastcoder"
    assert [name for name, each in methods.items() if "over_best_peer" in each] == ["redraft"]
    assert methods["redraft"]["over_best_peer"] == 2
    assert "over_best_peer" not in document["groups"]["a"]["redraft"]


def slow_distance(one: str, two: str) -> int:
    if not one or not two:
        return len(one) + len(two)
    table = [[0] * (len(two) + 1) for _ in range(len(one) + 1)]
    for i in range(len(one) + 1):
        for j in range(len(two) + 1):
            if not i or not j:
                table[i][j] = i + j
            else:
                changed = table[i - 1][j - 1] + (one[i - 1] != two[j - 1])
                table[i][j] = min(table[i - 1][j] + 1, table[i][j - 1] + 1, changed)
    return table[-1][-1]


@for_each_seed(range(50))
def test_similarity_is_levenshteins(seed: int) -> None:
    chance = random.Random(seed)
    one, two = (
        "".join(chance.choice("abcé") for _ in range(chance.randint(0, 25))) for _ in range(2)
    )
    longer = max(len(one), len(two))
    expected = 1 - slow_distance(one, two) / longer if longer else 1.0
    if longer and not (one and two):
        expected = 0.0
    assert math.isclose(similarity(one, two), expected, abs_tol=1e-12), f"seed {seed}"


def test_projection_by_hand() -> None:
    # A forward of one row takes 10 ms, of five 12 ms, of nine 14 ms: plain decoding of the four
    # tokens 40 ms, the two forwards 12 + 14 ms and their drafts 1 ms each.
    costs = CostTable(ForwardCosts([256], [1, 9], np.array([[0.010, 0.014]])))
    statistics = Statistics(tokens=4, forwards=2, accepted=[2, 0], draft_s=[0.001, 0.001])
    projection = project(statistics, [4, 8], cast("Any", SimpleNamespace(costs=costs)))
    assert projection.plain_s == pytest.approx(0.040)
    assert projection.drafted_s == pytest.approx(0.012 + 0.014 + 0.002)


NO_TOKENIZER: Any = None
"""In a replay nothing is typed that a text has to go on with."""


def test_planned_replay_cuts_what_does_not_pay() -> None:
    # The second row costs as much as the first: a node must be accepted more often than not.
    planner = CostTable(ForwardCosts([256], [1, 65], np.array([[0.01, 0.65]])))
    tree = merged([array(1, 2, 3), array(5)], Source.REPOSITORY)
    tree.probabilities = np.array([1.0, 0.9, 0.05, 0.0], np.float32)
    recorder = Recorder(Planned(Script([tree]), DraftPlan(planner), NO_TOKENIZER))
    replay(recorder, DraftRequest(array(0)), array(1), 64)
    assert recorder.sizes[0] < 3
    flat = CostTable(ForwardCosts([256], [1, 65], np.array([[0.01, 0.0101]])))
    recorder = Recorder(Planned(Script([tree]), DraftPlan(flat), NO_TOKENIZER))
    replay(recorder, DraftRequest(array(0)), array(1), 64)
    assert recorder.sizes[0] >= 3
