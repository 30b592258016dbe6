"""Other systems as peers: the same text as ours, and the drafts that their own code makes."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from brute_index import BruteIndex
from seeds import for_each_seed
from text_cases import data_beside
from transformers.generation.candidate_generator import PromptLookupCandidateGenerator

from accel.decoding.engine import Engine
from accel.decoding.request import GenerationRequest
from accel.draft_tree import DraftTree, TokenArray
from accel.drafting.base import DraftRequest
from accel.errors import InvalidRequest
from tests.benchmarks.peers import hf_generate
from tests.benchmarks.peers.errors import PeerUnavailable
from tests.benchmarks.peers.hf_generate import HfGenerate, Mode
from tests.benchmarks.peers.prompt_lookup import prompt_lookup_drafter
from tests.benchmarks.peers.rest import INTERPRETER, RestDrafter, RestStore
from tests.benchmarks.peers.rest_rule import RestRuleDrafter
from tests.benchmarks.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore
from tests.benchmarks.replay import replay

DATA = data_beside(__file__)


def array(*tokens: int) -> TokenArray:
    return np.array(tokens, np.int32)


@pytest.fixture(scope="module")
def peer(folder: Path) -> HfGenerate:
    return HfGenerate(folder, dtype="fp32", draft_folder=folder)


@for_each_seed(range(100))
def test_prompt_lookup_drafts_as_transformers_does(seed: int) -> None:
    chance = random.Random(seed)
    context = [chance.randrange(5) for _ in range(chance.randint(1, 40))]
    drafter = prompt_lookup_drafter()
    drafter.begin(DraftRequest(array(*context[:-1])))
    drafter.commit(DraftTree.empty(), [], array(context[-1]))
    generator = PromptLookupCandidateGenerator(
        num_output_tokens=10, max_matching_ngram_size=2, max_length=1000
    )
    candidates, _ = generator.get_candidates(torch.tensor([context]))
    expected = candidates[0, len(context) :].tolist()
    assert drafter.draft(64).tokens.tolist() == expected, f"seed {seed}"


@pytest.mark.parametrize("mode", ["plain", "prompt-lookup", "assisted"])
@for_each_seed(range(1, 5))
def test_generate_gives_the_text_of_our_engine(
    engine: Engine, peer: HfGenerate, mode: Mode, seed: int
) -> None:
    prompt = np.random.default_rng(seed).integers(0, 256, 40).astype(np.int32)
    ours = engine.generate(GenerationRequest(prompt, 24, ignore_end=True)).finish()
    theirs = peer.generate(prompt, mode=mode, max_tokens=24)
    assert theirs.tokens.tolist() == ours.tokens.tolist()
    statistics = theirs.statistics
    assert statistics.tokens == 24
    assert statistics.decode_s > 0
    if mode == "plain":
        assert (statistics.forwards, statistics.nodes) == (24, 0)
    if mode == "assisted":
        # The draft model is the target itself: its drafts are accepted. It drafts hardly more than
        # one token at a time, being a random model and never sure. (After prompt 0 two tokens are
        # as likely but for rounding, and rows computed together choose the other one.)
        assert statistics.forwards <= 12


class RowSeconds(torch.nn.Module):
    """A forward of as many seconds as it has rows, by a clock of its own."""

    now_s = 0.0

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        self.now_s += input_ids.shape[1]
        return input_ids

    def perf_counter(self) -> float:
        return self.now_s


@pytest.mark.parametrize(("rows", "prefill_s"), [([], 0), ([7], 7), ([40, 3, 2, 5], 37), ([1], 1)])
def test_prefill_is_the_first_forward_beyond_a_usual_one(
    rows: list[int], prefill_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = RowSeconds()
    monkeypatch.setattr(hf_generate, "time", module)
    forwards = hf_generate._Forwards(module, torch.device("cpu"))
    for count in rows:
        module(torch.zeros(1, count, dtype=torch.int64))
    assert forwards.seconds() == rows
    assert forwards.rows == rows
    assert forwards.prefill_s() == prefill_s


def test_a_first_forward_faster_than_usual_is_no_prefill(monkeypatch: pytest.MonkeyPatch) -> None:
    module = RowSeconds()
    monkeypatch.setattr(hf_generate, "time", module)
    forwards = hf_generate._Forwards(module, torch.device("cpu"))
    for count in (1, 2, 2):
        module(input_ids=torch.zeros(1, count, dtype=torch.int64))
    assert forwards.prefill_s() == 0


def test_generate_ends_at_stop_tokens(engine: Engine, peer: HfGenerate) -> None:
    prompt = np.random.default_rng(1).integers(0, 256, 40).astype(np.int32)
    text = peer.generate(prompt, mode="plain", max_tokens=24).tokens
    stop = int(text[10])
    first = text.tolist().index(stop)
    ended = peer.generate(prompt, mode="plain", max_tokens=24, stop_tokens=frozenset([stop]))
    assert ended.tokens.tolist() == text[:first].tolist()


def test_the_fastest_number_of_threads_is_found_by_timing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lonely = HfGenerate(folder, dtype="fp32")
    asked: list[int] = []
    monkeypatch.setattr(hf_generate, "set_threads", asked.append)
    monkeypatch.setattr(hf_generate, "thread_counts", lambda device: [1, 2])
    lonely.settle(None)
    assert asked == [1, 2]
    assert lonely.threads in (1, 2)
    assert lonely.step_s > 0
    lonely.settle(3)
    lonely.generate(array(1, 2, 3), mode="plain", max_tokens=2)
    assert asked == [1, 2, 3, 3]
    assert hf_generate.thread_counts(torch.device("cpu"))[0] == 1


def test_assisted_needs_a_draft_model(folder: Path) -> None:
    lonely = HfGenerate(folder, dtype="fp32")
    with pytest.raises(InvalidRequest, match="draft model"):
        lonely.generate(array(1, 2, 3), mode="assisted", max_tokens=4)


def test_suffix_decoding_knows_the_repository_of_the_moment() -> None:
    if importlib.util.find_spec("arctic_inference") is None:
        with pytest.raises(PeerUnavailable, match="arctic-inference"):
            SuffixDecodingStore({})
        return
    common = {"common.py": array(*range(50, 80))}
    drafter = SuffixDecodingDrafter(SuffixDecodingStore(common))
    drafter.know({"a.py": array(1, 2, 3, 4, 5, 6), "b.py": array(9, 9)})
    drafter.begin(DraftRequest(array(7, 1, 2)))
    assert drafter.draft(8).tokens.tolist() == [3, 4]
    drafter.commit(DraftTree.empty(), [], array(60, 61, 62))
    assert drafter.draft(8).tokens.tolist() == [63, 64, 65]
    # Another case: one file changed, and the text generated above is forgotten.
    drafter.know({"a.py": array(1, 2, 8, 8), "b.py": array(9, 9)})
    drafter.begin(DraftRequest(array(7, 1, 2)))
    assert drafter.draft(8).tokens.tolist() == [8, 8]
    drafter.begin(DraftRequest(array(2, 60)))
    assert drafter.draft(8).tokens.tolist() == [61]


FAKE_REST = DATA["FAKE_REST"]
"""REST's package as far as it is called: every occurrence is a path, chunks are searched in one."""


@pytest.fixture
def rest_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python in which ``draftretriever`` is the fake above; not this one."""
    package = tmp_path / "packages" / "draftretriever"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(FAKE_REST)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={package.parent} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv(INTERPRETER, str(python))
    return package / "__init__.py"


def test_rest_drafts_from_its_own_retriever(rest_interpreter: Path) -> None:
    store = RestStore({"c.py": array(1, 2, 3, 4)}, vocabulary=100)
    drafter = RestDrafter(store)
    drafter.know({"r.py": array(2, 3, 5, 9, 9, 9, 8)})
    drafter.begin(DraftRequest(array(0, 2, 3)))
    tree = drafter.draft(64)
    assert tree.tokens.tolist() == [4, 5, 9, 9, 9, 8]
    assert tree.parents.tolist() == [-1, -1, 1, 2, 3, 4]
    drafter.commit(tree, [1], array(5, 9))
    assert drafter.draft(64).tokens.tolist() == [9, 9, 8]
    assert len(drafter.draft(2)) == 2
    drafter.know({"r.py": array(2, 3, 7)})
    drafter.begin(DraftRequest(array(0, 2, 3)))
    assert not len(drafter.draft(64)), "the package refused its own tree"
    drafter.begin(DraftRequest(array(0, 77)))
    assert not len(drafter.draft(64))
    store.close()


def test_rest_is_unavailable_without_its_package(
    rest_interpreter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest_interpreter.write_text(
        "class Writer:\n    def __init__(self, file_path, vocab_size=None): ...\n"
    )
    with pytest.raises(PeerUnavailable, match="ADED"):
        RestStore({}, vocabulary=100)
    with pytest.raises(PeerUnavailable, match="16 bits"):
        RestStore({}, vocabulary=70_000)
    monkeypatch.setenv(INTERPRETER, "/nowhere/python")
    with pytest.raises(PeerUnavailable, match="does not start"):
        RestStore({}, vocabulary=100)


def test_rest_rule_pools_its_stores() -> None:
    chance = random.Random(5)
    phrases = [[chance.randrange(9) for _ in range(7)] for _ in range(5)]
    text = [token for _ in range(60) for token in chance.choice(phrases)]
    index = BruteIndex([text[:100]], [text[100:200]])
    statistics = replay(
        RestRuleDrafter(), DraftRequest(array(*text[200:220]), index=index), array(*text[220:]), 64
    )
    assert statistics.tokens_per_forward > 2
    assert max(statistics.accepted) <= 10
