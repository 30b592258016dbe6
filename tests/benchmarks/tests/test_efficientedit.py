"""The published rules for edits against their plainest form."""

from __future__ import annotations

import random

import numpy as np
import pytest
from edit_words import END, WordCodec, edit_request, replay_edit
from seeds import for_each_seed

from accel.draft_tree import DraftTree, Source
from tests.benchmarks.published.efficientedit import EfficientEditDrafter
from tests.benchmarks.replay import replay


def published_forwards(original: list[int], reference: list[int], gamma: int) -> int:
    """Forwards of reuse and generate without a draft model, from the paper's section III."""
    remaining, done, count, reuse = list(original), 0, 0, True
    while done < len(reference):
        count += 1
        accepted = 0
        if reuse:
            for mine, theirs in zip(remaining, reference[done:], strict=False):
                if mine != theirs:
                    break
                accepted += 1
            remaining = remaining[accepted:]
        done = min(done + accepted + 1, len(reference))
        reuse = False
        tail = reference[max(done - gamma, 0) : done]
        for start in range(len(remaining) - gamma + 1):
            if len(tail) == gamma and remaining[start : start + gamma] == tail:
                remaining, reuse = remaining[start + gamma :], True
                reuse = bool(remaining)
                break
    return count


@for_each_seed(range(60))
def test_efficientedit_takes_the_published_number_of_forwards(seed):
    rng = random.Random(seed)
    words = [f" w{number}" for number in range(12)]
    before = [rng.choice(words) for _ in range(80)]
    after = list(before)
    for _ in range(3):
        start = rng.randrange(0, 80)
        after[start : start + rng.randrange(0, 4)] = [rng.choice(words) for _ in range(2)]
    codec = WordCodec("".join(words), "@x")
    statistics = replay_edit(
        EfficientEditDrafter(), codec, "x", "".join(before), "".join(after), nodes=1000
    )
    original = codec.encode("".join(before)).tolist()
    reference = [*codec.encode("".join(after)).tolist(), END]
    assert statistics.forwards == published_forwards(original, reference, 7), f"seed {seed}"


def test_a_draft_cut_at_the_limit_goes_on():
    codec = WordCodec("@x")
    text = "".join(f" w{number}" for number in range(40))
    statistics = replay_edit(EfficientEditDrafter(), codec, "x", text, text, nodes=9)
    assert statistics.forwards == 5


def test_dropping_the_bonus_costs_forwards():
    codec = WordCodec("@x")
    before = "".join(f" w{number}" for number in range(60))
    after = before.replace(" w30", " other")
    kept = replay_edit(EfficientEditDrafter(), codec, "x", before, after)
    dropped = replay_edit(EfficientEditDrafter(drop_bonus=True), codec, "x", before, after)
    assert dropped.forwards > kept.forwards
    assert dropped.tokens == kept.tokens


class KnowsAll:
    """A draft model that is always right."""

    name = "oracle"

    def __init__(self, reference: np.ndarray) -> None:
        self.reference = reference

    def begin(self, request) -> None:
        self.done = 0

    def draft(self, max_nodes: int) -> DraftTree:
        return DraftTree.chain(
            self.reference[self.done : self.done + max_nodes], Source.DRAFT_MODEL
        )

    def commit(self, tree, path, tokens) -> None:
        self.done += len(tokens)


@pytest.mark.parametrize(("reuse", "expected"), [(True, 4), (False, 8)])
def test_generate_takes_seven_tokens_of_the_draft_model(reuse, expected):
    codec = WordCodec("@x")
    before = "".join(f" w{number}" for number in range(60))
    after = before.replace(" w30", " n0 n1 n2")
    reference = np.append(codec.encode(after), np.int32(END))
    drafter = EfficientEditDrafter(KnowsAll(reference), reuse=reuse)
    statistics = replay(drafter, edit_request(codec, "x", before), reference, 128)
    assert statistics.forwards == expected
    assert statistics.sources["draft_model"] > 0
