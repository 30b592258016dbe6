"""A speculator's trees against the network that is trained, and where they stand in the loop."""

from __future__ import annotations

from dataclasses import replace

import frozen_corpus
import numpy as np
import pytest
import torch
from as_stored import AsStored
from small_mixture import WEIGHTS
from small_networks import (
    FREQUENT,
    HIDDEN,
    MODEL,
    STATE,
    VOCABULARY,
    WIDTH,
    network_of,
    speculator_of,
)

from accel.choice import (
    CHANCES,
    LEAST_CHANCE,
    MOST_NODES,
    NODE_S,
    Chains,
    Choice,
    Draft,
    Odds,
    worth_of,
)
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.engine import Engine
from accel.generation import GenerationRequest
from accel.planner import Planner
from accel.profile import Costs
from accel.rows import tree_rows
from accel.sampling import Sampling
from accel.sources import mixture_drafter
from accel.sources.prompt import PromptIndex
from accel.sources.protocol import DraftRequest
from accel.sources.speculated_head import MOST_COLUMNS
from accel.sources.speculated_step import CHILDREN, MOST_SEEN
from accel.sources.speculating_mixture import SpeculatingMixture
from accel.sources.speculation import LEAST_SEEN, ONWARD
from accel.speculator import LENGTHS
from accel.training.speculator import Network
from accel.training.speculator_texts import Batch
from accel.trust import Trust


def text_of(random: np.random.Generator, size: int = 90) -> TokenArray:
    """A text that repeats itself here and there."""
    text = random.integers(1, VOCABULARY, size).astype(np.int32)
    start = int(random.integers(0, size // 2))
    text[-6:] = text[start : start + 6]
    return text


def drafter_at(network: Network, text: TokenArray, state: torch.Tensor) -> SpeculatingMixture:
    drafter = SpeculatingMixture(speculator_of(network), weights=WEIGHTS)
    drafter.begin(DraftRequest(text))
    drafter.note_state(*state.float().numpy().reshape(2, -1))
    drafter.match()
    return drafter


def odds_of(least: float, run: int = 0) -> Odds:
    """What makes nodes from a chance of ``least`` on worth their time."""
    ones, free = np.ones(len(CHANCES)), np.zeros(65)
    chains = Chains(ones.astype(np.int64), ones, ones, 1.0, least, free, free)
    choice = Choice(Trust())
    if run:
        choice.learn(run, run)
    node_s = least * worth_of(choice.odds(chains).numbers, chains)
    return choice.odds(chains._replace(seconds=np.arange(65) * node_s, slopes=np.full(65, node_s)))


def match_of(written: list[int], known: int) -> tuple[int, int]:
    """What followed the longest run that ends as ``written`` does, the newest of such that ends
    among the first ``known`` tokens, and how long it is."""
    found = 0, 0
    for end in range(min(known, len(written) - 1), 0, -1):
        length = 0
        while length < min(end, 16) and written[end - 1 - length] == written[-1 - length]:
            length += 1
        if length > found[1]:
            found = written[end], length
    return found[0], min(found[1], LENGTHS - 1)


def chances_behind(
    network: Network, text: TokenArray, state: torch.Tensor, path: list[int]
) -> dict[int, float]:
    """Chances of what follows a path, by the network in training, among the tokens of the text and
    the frequent ones."""
    written, matches = text.tolist(), []
    for token in [None, *path]:
        written += [] if token is None else [token]
        matches.append(match_of(written, len(text)))
    covered = torch.tensor(sorted({*text.tolist(), *FREQUENT.tolist()}))
    rows = torch.tensor([[text[-1], *path]])
    candidates, lengths = torch.tensor([list(zip(*matches, strict=True))]).unbind(1)
    everything = torch.arange(VOCABULARY)
    with torch.no_grad(), AsStored(network):
        batch = Batch(state[None], rows, candidates, lengths, rows)
        logits = network(batch, everything)[0][-1][0, covered]
        copy, network.copy.weight.data = network.copy.weight.data, torch.zeros(1, WIDTH)
        copy_bias, network.copy_bias.data = network.copy_bias.data, torch.zeros(LENGTHS)
        before = network(batch, everything)[0][-1][0, covered]
        network.copy.weight.data, network.copy_bias.data = copy, copy_bias
    # What the tokens that are covered lack of 1, before the candidate has more, is the others'.
    others = max(1 - float(before.exp().sum()), 0.0)
    chances = logits.exp() / (logits.exp().sum() + others)
    return dict(zip(covered.tolist(), chances.tolist(), strict=True))


# Of seed 4 one number of the state lies between two of int8, within what fp32 can tell apart.
@pytest.mark.parametrize("seed", [*range(4), *range(5, 13)])
def test_nodes_have_the_chances_of_the_network_that_was_trained(seed: int) -> None:
    random = np.random.default_rng(seed)
    network, text = network_of(seed), text_of(random)
    state = torch.from_numpy(random.normal(size=STATE).astype(np.float32)).bfloat16().float()
    tree = drafter_at(network, text, state).speculate(odds_of(0.01), 8)
    assert len(tree) > 1
    paths: list[list[int]] = []
    for token, parent in zip(tree.tokens.tolist(), tree.parents.tolist(), strict=True):
        paths.append([*(paths[parent] if parent >= 0 else []), token])
    for node, path in enumerate(paths):
        parent = tree.parents[node]
        above = tree.probabilities[parent] if parent >= 0 else 1.0
        if tree.sources[node] != Source.SPECULATED:
            candidate, length = match_of([*text.tolist(), *path[:-1]], len(text))
            assert path[-1] == candidate, "it was copied"
            assert tree.probabilities[node] == pytest.approx(above * ONWARD[length])
            continue
        expected = above * chances_behind(network, text, state, path[:-1])[path[-1]]
        assert tree.probabilities[node] == pytest.approx(expected, rel=1e-3)
    best = chances_behind(network, text, state, [])
    assert best[int(tree.tokens[0])] >= max(best.values()) - 1e-4
    assert tree.sources[0] == Source.SPECULATED


def test_a_node_is_worth_what_it_takes_beside_its_row() -> None:
    """Where rows cost nothing, and a plain step hardly more than a node's looks."""
    random, free = np.random.default_rng(0), np.zeros(65)
    network, text = network_of(0), text_of(random)
    ones = np.ones(len(CHANCES))
    drafter = drafter_at(network, text, torch.from_numpy(random.normal(size=STATE)).float())
    sizes = []
    for plain_s in (1e-5, 1.0):
        chains = Chains(ones.astype(np.int64), ones, ones, plain_s, 0.0, free, free)
        odds = Choice(Trust()).odds(chains)
        tree = drafter.speculate(odds, 64)
        worth_s = worth_of(odds.numbers, chains)
        assert (tree.probabilities * worth_s > NODE_S).all()
        sizes.append(len(tree))
    assert sizes[0] < sizes[1]


@pytest.mark.parametrize("seed", range(6))
def test_a_run_that_is_believed_is_copied_to_the_end_and_over_again(seed: int) -> None:
    """Of a text that repeats a unit, with a network that takes what followed for sure."""
    random = np.random.default_rng(seed)
    network = network_of(seed)
    network.copy_bias.data[:] = 50.0
    unit = random.permutation(np.arange(8, 40)).astype(np.int32)[:9]
    text = np.concatenate([unit, unit, unit[: int(random.integers(7, 9))]])
    for suffix in (text[:0], np.array([50, 51], np.int32)):
        drafter = SpeculatingMixture(speculator_of(network), weights=WEIGHTS)
        drafter.begin(DraftRequest(text, suffix))
        drafter.note_state(*random.normal(size=(2, MODEL)).astype(np.float32))
        drafter.match()
        tree = drafter.speculate(odds_of(0.1, run=200), 40)
        expected = np.resize(np.roll(unit, -(len(text) % 9)), 40)
        assert tree.tokens.tolist() == expected.tolist(), f"seed {seed}"
        assert tree.parents.tolist() == list(range(-1, 39))
        assert tree.sources[0] == Source.SPECULATED
        assert set(tree.sources[1:].tolist()) == {Source.PROMPT}
        further = np.arange(200, 239)
        chances = np.concatenate([[1.0], np.cumprod((further + 1) / (further + 2))])
        assert tree.probabilities == pytest.approx(chances, rel=1e-3)
        short = drafter.speculate(odds_of(0.5), 40)
        assert 0 < len(short) < 40, "without a run that came true less is believed"


def test_what_stands_behind_the_cursor_is_copied_up_to_its_end() -> None:
    network = network_of(0)
    network.copy_bias.data[:] = 50.0
    suffix = np.arange(10, 30, dtype=np.int32)
    drafter = SpeculatingMixture(speculator_of(network), weights=WEIGHTS)
    drafter.begin(DraftRequest(np.concatenate([[5, 6, 7], suffix[4:13]]).astype(np.int32), suffix))
    drafter.note_state(*np.ones((2, MODEL), np.float32))
    assert drafter.match() == 9
    tree = drafter.speculate(odds_of(0.05), 64)
    deepest = int(np.argmax(tree.depths()))
    path = [deepest]
    while tree.parents[path[0]] >= 0:
        path.insert(0, int(tree.parents[path[0]]))
    assert tree.tokens[path].tolist() == suffix[13:].tolist()
    assert set(tree.sources[path[1:]].tolist()) == {Source.SUFFIX}


@pytest.mark.parametrize(("nodes", "least"), [(1, 0.01), (3, 0.01), (8, 0.01), (8, 0.2), (40, 0.0)])
def test_trees_keep_to_what_is_asked(nodes: int, least: float) -> None:
    random = np.random.default_rng(nodes)
    network, text = network_of(3), text_of(random)
    tree = drafter_at(network, text, torch.randn(STATE)).speculate(odds_of(least), nodes)
    assert 0 < len(tree) <= min(nodes, MOST_NODES)
    assert (tree.probabilities >= max(least, LEAST_CHANCE)).all()
    assert (tree.parents < np.arange(len(tree))).all()
    assert (np.diff(tree.probabilities) <= 0).all(), "best first"
    inner = sorted({int(parent) for parent in tree.parents} - {-1})
    assert len(inner) < MOST_SEEN
    assert all(tree.probabilities[node] >= LEAST_SEEN for node in inner)
    for parent in (-1, *inner):
        children = tree.tokens[tree.parents == parent]
        assert len(children) == len(set(children.tolist())) <= CHILDREN


def test_nothing_is_speculated_without_a_state_of_the_last_step() -> None:
    random = np.random.default_rng(0)
    network, text = network_of(0), text_of(random)
    drafter = drafter_at(network, text, torch.randn(STATE))
    tree = drafter.speculate(odds_of(0.01), 4)
    assert len(tree)
    drafter.commit(tree, [0], tree.tokens[:1].copy())
    drafter.match()
    assert not len(drafter.speculate(odds_of(0.01), 4)), "that state is of the step before"
    drafter.note_state(*np.zeros((2, MODEL), np.float32))
    assert len(drafter.speculate(odds_of(0.0), 4))
    drafter.begin(DraftRequest(text))
    assert not len(drafter.speculate(odds_of(0.0), 4))


@pytest.mark.parametrize("seed", range(4))
def test_a_long_line_of_requests_draws_on_the_text_as_it_is(seed: int) -> None:
    """The text grows past its room, the head past its columns, and requests follow each other: the
    same tree as a new drafter makes."""
    random = np.random.default_rng(seed)
    network = network_of(seed)
    drafter = SpeculatingMixture(speculator_of(network), weights=WEIGHTS)
    for _ in range(3):
        text = text_of(random, int(random.integers(20, 60)))
        drafter.begin(DraftRequest(text, suffix=text_of(random, 30)))
        drafter.begin(DraftRequest(text))
        for _ in range(60):
            state = torch.randn(STATE).bfloat16().float()
            drafter.note_state(*state.numpy().reshape(2, -1))
            drafter.match()
            tree = drafter.speculate(odds_of(0.02), 6)
            new = drafter_at(network, text, state).speculate(odds_of(0.02), 6)
            assert tree.tokens.tolist() == new.tokens.tolist()
            assert tree.parents.tolist() == new.parents.tolist()
            added = random.integers(1, VOCABULARY, random.integers(1, 40)).astype(np.int32)
            drafter.commit(tree, [], added)
            text = np.concatenate([text, added])


@pytest.mark.parametrize("seed", range(4))
def test_one_question_is_answered_as_one_after_another(seed: int) -> None:
    """What is chosen and guessed, how rows are laid out, and what was learnt on the way."""
    random = np.random.default_rng(seed)
    network, text = network_of(seed), text_of(random)
    at_once, in_turn = (SpeculatingMixture(speculator_of(network), weights=WEIGHTS) for _ in "ab")
    chosen = set()
    choices = Choice(Trust()), Choice(Trust())
    seconds = np.array([[0.17, 0.2, 0.26, 0.46, 1.4]]) * 1e-3
    planner = Planner(Costs([256], [1, 4, 8, 16, 64], seconds))
    suffix = text_of(random, 30)
    for drafter in (at_once, in_turn):
        drafter.begin(DraftRequest(text, suffix))
    last = int(text[-1])
    for step in range(120):
        states = random.normal(size=(2, MODEL)).astype(np.float32)
        answers, most = [], int(random.integers(2, 6))
        for drafter, choice in zip((at_once, in_turn), choices, strict=True):
            if step % 7:
                drafter.note_state(*states)
            asked = drafter.ask if drafter is at_once else drafter._ask_in_turn
            answers.append(asked(choice.odds(planner.chains(1, 300)), most))
        (kind, nodes, tree), (other_kind, other_nodes, other) = answers
        chosen.add(kind)
        assert (kind, nodes) == (other_kind, other_nodes), f"seed {seed}, step {step}"
        assert tree.tokens.tolist() == other.tokens.tolist()
        assert tree.parents.tolist() == other.parents.tolist()
        pending = np.array([last], np.int32)
        laid, expected = tree_rows(pending, tree), tree_rows(pending, replace(tree, rows=None))
        assert len(tree) == 0 or laid is tree.rows
        assert laid.tokens.tolist() == expected.tokens.tolist()
        assert laid.offsets.tolist() == expected.offsets.tolist()
        assert (laid.mask == expected.mask).all()
        assert laid.logits_from == expected.logits_from
        added = random.integers(1, VOCABULARY, random.integers(1, 4)).astype(np.int32)
        if random.random() < 0.3:
            place = int(random.integers(0, len(text) - 5))
            added = text[place : place + 4].copy()
        for drafter, choice, made in zip((at_once, in_turn), choices, (tree, other), strict=True):
            drafted = drafter.draft(8) if kind == Draft.TREE else made
            choice.kind = Draft(kind)
            choice.learn(4, step % 3)
            drafter.commit(drafted if step % 5 else DraftTree.empty(), [], added)
        last = int(added[-1])
    assert chosen >= {Draft.CHAIN, Draft.SPECULATION}


def test_retrieval_learns_nothing_from_what_was_speculated() -> None:
    random = np.random.default_rng(1)
    network, text = network_of(1), text_of(random)
    drafter = drafter_at(network, text, torch.randn(STATE))
    before = drafter.calibration.corrections.copy()
    tree = drafter.speculate(odds_of(0.0), 4)
    drafter.commit(tree, [0], np.array([tree.tokens[0], 5], np.int32))
    assert drafter.match() >= 0
    assert (drafter.calibration.corrections == before).all()
    index = PromptIndex()
    index.begin(np.concatenate([text, tree.tokens[:1], [5]]).astype(np.int32), text[:0])
    assert drafter._prompt.context.tolist() == index.context.tolist()


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_embedded_model_speculates_and_writes_the_same(dtype: str, temperature: float) -> None:
    engine = Engine.load(dtype=dtype)  # type: ignore[arg-type]
    assert engine.model.speculator is not None
    speculated = forwards = tokens = 0
    for source in frozen_corpus.texts("harbour")[:4]:
        prompt = engine.tokenizer.encode(source[: len(source) // 3])
        sampling = Sampling(temperature=temperature, seed=4)
        plain = engine.generate(GenerationRequest(prompt, 60, sampling=sampling)).finish()
        drafter = mixture_drafter(
            engine.tokenizer, engine.model.speculator, learnt=None, history=None
        )
        request = GenerationRequest(prompt, 60, sampling=sampling, drafter=drafter)
        drafted = engine.generate(request).finish()
        assert drafted.tokens.tolist() == plain.tokens.tolist()
        speculated += drafted.statistics.sources["speculated"]
        forwards += drafted.statistics.forwards
        tokens += len(drafted.tokens)
    assert forwards < tokens
    if not temperature:
        assert speculated > 0


def test_a_vocabulary_larger_than_the_head_is_covered_in_part() -> None:
    torch.manual_seed(0)
    network = Network(WIDTH, HIDDEN, torch.randn(MOST_COLUMNS + 500, MODEL))
    text = np.arange(1, MOST_COLUMNS + 400, dtype=np.int32)
    drafter = SpeculatingMixture(speculator_of(network), weights=WEIGHTS)
    drafter.begin(DraftRequest(text))
    drafter.note_state(*np.ones((2, MODEL), np.float32))
    drafter.match()
    tree = drafter.speculate(odds_of(0.0), 8)
    assert len(tree)
    assert isinstance(tree, DraftTree)
    assert tree.tokens.max() < MOST_COLUMNS
