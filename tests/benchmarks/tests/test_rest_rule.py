"""REST's rule on our index, beside FastCoder's."""

from __future__ import annotations

import random

from brute_index import BruteIndex

from accel.drafting.base import DraftRequest
from tests.benchmarks.peers.rest_rule import RestRuleDrafter
from tests.benchmarks.published.fastcoder import REST, FastCoderDrafter
from tests.benchmarks.replay import replay
from tests.benchmarks.tests.test_fastcoder import array, paths, repetitive_text


def test_rest_asks_the_store_of_the_longest_match() -> None:
    index = BruteIndex(repository=[[7, 1, 2, 3]], common=[[1, 2, 4], [9, 2, 5]])
    rest = RestRuleDrafter()
    rest.begin(DraftRequest(array(7, 1, 2), index=index))
    assert set(paths(rest.draft(64))) == {(3,)}


def test_rest_is_fastcoder_without_its_components() -> None:
    chance = random.Random(3)
    text = repetitive_text(chance, 300)
    index = BruteIndex([], [text[:200]])
    request = DraftRequest(array(*text[200:210]), index=index)
    reference = array(*text[210:])
    ours = replay(FastCoderDrafter(REST), request, reference, 64)
    theirs = replay(RestRuleDrafter(), request, reference, 64)
    assert ours.accepted == theirs.accepted
    assert ours.nodes == theirs.nodes
    assert ours.tokens_per_forward > 1.2
