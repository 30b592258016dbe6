"""What the second thread makes of the states that a forward ends with."""

from __future__ import annotations

from typing import Any

import frozen_corpus
import numpy as np
import pytest

from accel.choice import CHANCES, MOST_NODES, Chains, Choice
from accel.compiled_stage import Limits
from accel.compiled_steps import IS_POSSIBLE
from accel.draft_tree import DraftTree, Source
from accel.drawing import GREEDY, Draws
from accel.ending import Ending, end_with, note_states
from accel.engine import Engine
from accel.generation import GenerationRequest
from accel.int8 import Int8, multiply_int8
from accel.matmul import BLOCK
from accel.meeting import await_done
from accel.rows import chain_rows, tree_rows
from accel.sources import mixture_drafter
from accel.sources.speculating_mixture import SpeculatingMixture
from accel.trust import Trust

SOURCE = frozen_corpus.FOLDER / "harbour" / "log.py"


@pytest.fixture(scope="module", params=["bf16", "fp32"])
def engine(request: pytest.FixtureRequest) -> Engine:
    engine = Engine.load(dtype=request.param)
    engine.model.shared_from = 1
    # Whoever tests this on a busy machine wants two threads all the same.
    engine.model.shares_patiently(True)
    return engine


def product_of(engine: Engine, row: int) -> np.ndarray:
    """Of the states of a row of the last forward."""
    assert engine.model.speculator is not None
    matrix = engine.model.speculator.state
    states, codes = np.zeros(matrix.depth, np.float32), np.zeros(matrix.depth, np.int8)
    note_states(states, *engine.model.state_of(row))
    product = np.zeros(len(matrix.scales), np.float32)
    multiply_int8(states, codes, matrix, len(matrix.words), product)
    return product


def random_tree(random: np.random.Generator, nodes: int) -> DraftTree:
    parents = [int(random.integers(max(node - 3, -1), node)) for node in range(nodes)]
    chances = np.linspace(0.9, 0.1, nodes).astype(np.float32)
    tokens = random.integers(0, 200, nodes).astype(np.int32)
    sources = np.full(nodes, Source.MODEL, np.int8)
    return DraftTree(tokens, np.array(parents, np.int32), chances, sources)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_it_is_the_product_of_the_row_that_chose_the_last_token(
    engine: Engine, temperature: float
) -> None:
    """Where each thread computes half of the columns, and half of the rows."""
    seed = int(np.random.default_rng().integers(2**31))
    random, model = np.random.default_rng(seed), engine.model
    held: Any = model
    session, ends = engine.session(), set()
    prompt = engine.tokenizer.encode(SOURCE.read_text(encoding="utf-8")[:1500])
    engine.generate(GenerationRequest(prompt, 2), session).finish()
    for nodes in (0, 1, 3, 8, 30, MOST_NODES, 90):
        pending = random.integers(0, 200, int(random.integers(1, 4))).astype(np.int32)
        draws = Draws(temperature, 1.0, seed, nodes)
        tree = random_tree(random, nodes)
        for _ in range(5):
            path, tokens = model.verify(tree_rows(pending, tree), tree, session.cache, draws)
            await_done(held._pair.meeting)
            row = len(pending) + path[-1] if path else len(pending) - 1
            where = f"seed {seed}, {nodes} nodes, path {path}"
            assert (held._ending.product == product_of(engine, row)).all(), where
            ends.add(len(path))
            # The likeliest of these is a node's token from now on.
            better = tree.tokens.copy()
            below = [node for node in range(nodes) if tree.parents[node] == (path or [-1])[-1]]
            if below:
                better[below[-1]] = tokens[-1]
            tree = DraftTree(better, tree.parents, tree.probabilities, tree.sources)
    assert len(ends) > 2, f"seed {seed}"


@pytest.mark.skipif(not IS_POSSIBLE, reason="compiled code cannot tell the time here")
def test_trees_are_guessed_from_it_as_from_the_states(engine: Engine) -> None:
    model: Any = engine.model
    prompt = engine.tokenizer.encode(SOURCE.read_text(encoding="utf-8")[:1500])
    made = []
    for ending in (model._ending, Ending.nothing()):
        before, model._ending = model._ending, ending
        steps: list[tuple[list[int], list[int]]] = []
        while len(steps) < 5:
            # They end sooner where the second thread loses its core.
            steps = _steps_behind(engine, prompt)
        made.append(steps[:5])
        model._ending = before
    assert made[0] == made[1]
    assert sum(len(tokens) for tokens, _ in made[0]) > 10
    assert any(int(Source.SPECULATED) in sources for _, sources in made[0])


def _steps_behind(engine: Engine, prompt: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Tokens and sources of each of some steps with a speculator that costs nothing."""
    drafter = mixture_drafter(engine.tokenizer, engine.model.speculator, learnt=None, history=None)
    assert isinstance(drafter, SpeculatingMixture)
    session = engine.session()
    first = engine.generate(GenerationRequest(prompt, 1, drafter=drafter), session).finish()
    ones, free = np.ones(len(CHANCES)), np.zeros(MOST_NODES + 1)
    chains = Chains(ones.astype(np.int64), ones, 0 * ones, 1.0, 0.0, free, free)
    trust = Trust()
    trust.draft_s = 10.0
    asking = drafter.asking()
    assert asking is not None
    pauses = np.zeros(engine.model.vocabulary_size, np.bool_)
    limits = Limits(20, 60, 8, engine.max_positions, 60.0, pauses, engine.model.interruptions)
    drafting, last, found = (asking, Choice(trust).odds(chains)), first.tokens[-1:], None
    while found is None:
        # The second thread stands by for some time behind this, if nobody else takes its core.
        engine.model.forward(chain_rows(last, 0), session.cache)
        found = engine.run_steps(int(last[0]), drafting, session, limits, GREEDY)
    made, left = found
    ends = np.cumsum(left.accepted[: made.steps] + 1)
    tokens, sources = left.tokens[: made.tokens], left.sources[: made.tokens]
    parts = (np.split(each, ends[:-1]) for each in (tokens, sources))
    return [(one.tolist(), other.tolist()) for one, other in zip(*parts, strict=True)]


def test_nothing_is_made_where_nobody_asks() -> None:
    ending, states = Ending.nothing(), np.ones(BLOCK, np.float32)
    end_with(ending, states, states)
    assert ending.product.size == 0
    random = np.random.default_rng(0)
    matrix = Int8.of(random.standard_normal((BLOCK, 2 * BLOCK), np.float32))
    wanted = Ending.of(matrix)
    end_with(wanted, states, 2 * states)
    assert wanted.states.tolist() == [1.0] * BLOCK + [2.0] * BLOCK
    assert wanted.product.any()
