"""The default drafter: probabilities and trees against plain forms, and what it knows."""

from __future__ import annotations

import heapq

import numpy as np
from seeds import for_each_seed
from small_mixture import WEIGHTS, IndexOfText, drafter, paths_of, request_of

from accel.draft_tree import DraftTree, Source
from accel.drafting.base import Continuations, DraftRequest, VerifyCosts
from accel.drafting.history import History
from accel.drafting.retrieval import acceptance_model as acceptance
from accel.drafting.retrieval import drafter as mixture
from accel.drafting.retrieval.acceptance_model import (
    AcceptanceBuffers,
    hidden_of_near,
    probabilities_of,
)
from accel.drafting.retrieval.candidate_features import (
    GROUPS,
    LEVELS,
    MATCHED_GROUPS,
    MAX_CANDIDATES,
    Evidence,
    forget,
    gather,
)
from accel.drafting.retrieval.drafter import RetrievalDrafter
from accel.drafting.retrieval.nearby_tokens import note_surroundings
from accel.drafting.retrieval.token_classes import SHAPES
from accel.drafting.retrieval.tree_search import LEAST_PROBABILITY, MAX_DEPTH, WIDE, describe
from tests.benchmarks.replay import replay
from tests.draft_trees import accepted_path
from tests.drafting_views import view_of


def slow_probabilities(counts, totals, state, shapes, last_shape):
    """The model of acceptance in dense arrays."""
    logarithms = np.log1p(np.round(counts)) / 3
    shares = counts[:, :MATCHED_GROUPS] / np.maximum(totals[:MATCHED_GROUPS], 1)
    count = len(counts)
    inputs = np.hstack([logarithms.reshape(count, -1), shares.reshape(count, -1)])
    node = np.concatenate([(np.log1p(totals[:MATCHED_GROUPS]) / 3).ravel(), state])
    hidden = inputs @ WEIGHTS.candidate + node @ WEIGHTS.node + WEIGHTS.bias
    hidden += WEIGHTS.last_shape[last_shape] + WEIGHTS.shape[shapes]
    scores = np.maximum(hidden, 0) @ WEIGHTS.out + WEIGHTS.pair[last_shape, shapes]
    escape = np.maximum(node @ WEIGHTS.escape_node + WEIGHTS.escape_bias, 0) @ WEIGHTS.escape_out
    scores = np.append(scores, escape + WEIGHTS.escape_shape[last_shape])
    chances = np.exp(scores - scores.max())
    return (chances / chances.sum())[:-1]


@for_each_seed(range(10))
def test_probabilities_equal_the_dense_form(seed):
    random = np.random.default_rng(seed)
    count = 12
    evidence = Evidence.allocate(64)
    counts = random.integers(0, 4, (count, GROUPS, LEVELS)).astype(np.float32)
    counts[4:, MATCHED_GROUPS:] = 0  # these do not stand near
    counts[:, :MATCHED_GROUPS] = np.cumsum(counts[:, :MATCHED_GROUPS, ::-1], axis=2)[:, :, ::-1]
    matched = counts[:, :MATCHED_GROUPS]
    evidence.counts[:count] = matched
    evidence.reach[:count] = (matched > 0).sum(axis=2)
    evidence.totals[:] = matched.sum(axis=0) + random.integers(0, 3, matched.shape[1:])
    evidence.near_counts[:4] = counts[:4, MATCHED_GROUPS:]
    evidence.near_items[:4], evidence.near_items[4:] = np.arange(4), -1
    evidence.tokens[:count] = np.arange(count)
    evidence.best[:count] = 1
    evidence.sources[:count] = Source.PROMPT
    shapes = random.integers(0, SHAPES, count).astype(np.int8)
    state = random.standard_normal(acceptance.STATE_INPUTS).astype(np.float32)
    written, scratch = np.empty(count, np.float32), AcceptanceBuffers.allocate()
    hidden_of_near(WEIGHTS, evidence, 4, scratch)
    probabilities_of(WEIGHTS, evidence, count, shapes, 4, state, scratch, written)
    expected = slow_probabilities(counts, evidence.totals, state, shapes, 4)
    assert np.allclose(written, expected, rtol=1e-3, atol=1e-6)


def slow_tree(view, weights, max_nodes):
    """Best-first growth with a heap of paths, evidence gathered from the root for each."""
    text, rows, shapes, accepted, evidence = view
    scratch, chances = AcceptanceBuffers.allocate(), np.empty(MAX_CANDIDATES, np.float32)
    state = np.empty(acceptance.STATE_INPUTS, np.float32)
    surroundings = note_surroundings(text, shapes, evidence)
    hidden_of_near(weights, evidence, surroundings, scratch)

    def children(path, chance, conditional):
        """Evidence of a path, walking the rows from the root as the lists of growth do."""
        rows.following[:] = [*range(1, len(rows.lengths)), -1]
        first = 0 if len(rows.lengths) else -1
        for depth in range(len(path) + 1):
            text.tokens[text.stop : text.stop + depth] = path[:depth]
            wide = depth == len(path) and chance >= WIDE
            count = gather(text, depth, rows, first, shapes, surroundings if wide else 0, evidence)
            tokens = evidence.tokens[:count].tolist()
            if depth < len(path):
                slot = tokens.index(path[depth]) if path[depth] in tokens else -1
                first = int(evidence.heads[slot]) if slot >= 0 else -1
            else:
                describe(state, depth, chance, conditional, wide, accepted)
                last = int(text.tokens[text.stop + depth - 1])
                probabilities_of(
                    weights,
                    evidence,
                    count,
                    shapes.shapes,
                    int(shapes.shapes[last]),
                    state,
                    scratch,
                    chances,
                )
            forget(evidence, count)
        return [(token, float(chances[slot])) for slot, token in enumerate(tokens)]

    heap, tree = [], []
    pending = [((), 1.0, 1.0)]
    while len(tree) < max_nodes:
        for path, chance, conditional in pending:
            if len(path) < MAX_DEPTH:
                for token, share in children(list(path), chance, conditional):
                    if chance * share >= LEAST_PROBABILITY:
                        heapq.heappush(heap, (-chance * share, (*path, token), share))
        if not heap:
            break
        chance, path, conditional = heapq.heappop(heap)
        tree.append((path, -chance))
        pending = [(path, -chance, conditional)]
    return tree


@for_each_seed(range(8))
def test_tree_equals_the_slow_form(seed):
    drafting = drafter()
    drafting.begin(request_of(np.random.default_rng(seed), index=seed % 4 > 0))
    view = view_of(drafting)
    tree = drafting.draft(40)
    expected = slow_tree(view, WEIGHTS, 40)
    assert np.allclose(tree.probabilities, [chance for _, chance in expected], rtol=1e-2)
    same = len(set(paths_of(tree)) & {path for path, _ in expected})
    assert same >= 0.95 * len(expected)  # near-equal probabilities may change places


def test_order_is_parents_first_and_decreasing_and_a_prefix_is_a_smaller_tree():
    request = request_of(np.random.default_rng(1))
    large, small = drafter(), drafter()
    large.begin(request)
    small.begin(request)
    tree, cut = large.draft(64), small.draft(10)
    assert len(tree) == 64
    assert (tree.parents < np.arange(64)).all()
    assert (np.diff(tree.probabilities) <= 0).all()
    assert paths_of(tree)[:10] == paths_of(cut)


@for_each_seed(range(8))
def test_planning_while_drafting_gives_the_best_prefix_of_the_whole_tree(seed, monkeypatch):
    monkeypatch.setattr(mixture, "FEW_ROWS", mixture.ROWS_PER_SOURCE)
    monkeypatch.setattr(mixture, "FEW_DEPTH", mixture.ROW_DEPTH)
    random = np.random.default_rng(seed)
    request = request_of(random)
    whole, planning = drafter(), drafter()
    whole.begin(request)
    planning.begin(request)
    tree = whole.draft(64)
    for _ in range(5):
        fixed, step = random.uniform(0.5, 3), random.uniform(0.01, 1.2)
        seconds = fixed + step * np.cumsum(random.random(65) ** 3)
        marginal = np.array(
            [
                min((seconds[n + 1 :] - seconds[n]) / np.arange(1, 65 - n), default=0)
                for n in range(65)
            ]
        )
        trust = float(random.uniform(0.3, 1.4))
        sums = np.concatenate([[0], np.cumsum(tree.probabilities, dtype=np.float64)])
        rates = (1 + trust * sums) / seconds
        planned = planning.draft_within(64, VerifyCosts(seconds, marginal, trust))
        assert paths_of(planned) == paths_of(tree)[: len(planned)]
        assert rates[len(planned)] >= rates.max() * (1 - 1e-6)
    steep = VerifyCosts(np.arange(1.0, 66.0), np.ones(65), 1.0)
    assert len(planning.draft_within(64, steep)) == 0


def test_children_of_a_node_are_different_and_share_at_most_its_probability():
    drafting = drafter()
    drafting.begin(request_of(np.random.default_rng(2)))
    tree = drafting.draft(64)
    for parent in range(-1, len(tree)):
        children = np.flatnonzero(tree.parents == parent)
        assert len(set(tree.tokens[children].tolist())) == len(children)
        above = 1.0 if parent < 0 else tree.probabilities[parent]
        assert tree.probabilities[children].sum() <= above * 1.001


def test_text_that_repeats_needs_few_forwards():
    random = np.random.default_rng(5)
    phrase = random.integers(1, 40, 60).astype(np.int32)
    request = DraftRequest(np.concatenate([phrase, phrase[:12]]))
    statistics = replay(drafter(), request, phrase[12:], 32)
    assert statistics.tokens_per_forward > 5
    assert statistics.sources["prompt"] > 30


def test_each_source_is_found_and_named():
    random = np.random.default_rng(6)
    known, other = random.permutation(np.arange(1, 41)), random.integers(1, 40, 30)
    answer, prompt = known[8:30].astype(np.int32), known[:8].astype(np.int32)
    suffix = known.astype(np.int32)
    in_suffix = replay(drafter(), DraftRequest(prompt, suffix), answer, 32)
    assert in_suffix.sources["suffix"] > 12
    index = IndexOfText(np.concatenate([other, known]))
    in_index = replay(drafter(), DraftRequest(prompt, index=index), answer, 32)
    assert in_index.sources["repository"] > 12


def test_history_serves_the_next_request_of_a_workspace():
    random = np.random.default_rng(7)
    answer = random.permutation(np.arange(1, 41)).astype(np.int32)
    prompt = np.array([44, 45, 46, 47], np.int32)
    drafting = drafter(history=History())
    first = replay(drafting, DraftRequest(prompt, workspace="a"), answer, 32)
    again = replay(drafting, DraftRequest(prompt, workspace="a"), answer, 32)
    elsewhere = replay(drafting, DraftRequest(prompt, workspace="b"), answer, 32)
    assert again.sources["history"] > 20
    assert again.forwards < first.forwards / 2
    assert elsewhere.sources["history"] == 0


def test_what_came_while_nothing_was_drafted_is_known_when_something_is():
    random = np.random.default_rng(9)
    request, text = request_of(random), random.integers(1, 60, 20).astype(np.int32)
    often, once = drafter(), drafter()
    often.begin(request)
    once.begin(request)
    for token in text:
        often.draft(4)
        often.commit(DraftTree.empty(), [], np.array([token]))
        once.commit(DraftTree.empty(), [], np.array([token]))
    assert paths_of(once.draft(24)) == paths_of(often.draft(24))


@for_each_seed(range(6))
def test_whatever_was_committed_a_draft_is_that_of_a_drafter_that_began_with_the_text(seed):
    """Trees with and without nodes, paths that are right, wrong and cut short, and one token or
    several for which nothing was drafted."""
    random = np.random.default_rng(seed)
    text = random.integers(0, 12, 60).astype(np.int32)
    drafting = RetrievalDrafter(weights=WEIGHTS)
    drafting.begin(DraftRequest(text))
    for _ in range(40):
        tree = drafting.draft(int(random.integers(0, 9)))
        right = random.integers(0, 12, 4).astype(np.int32)
        path = accepted_path(tree, right)
        own = int(not len(tree) or random.random() < 0.8)
        added = right[: len(path) + own] if len(tree) else right[: int(random.integers(1, 3))]
        drafting.commit(tree, path, added)
        text = np.concatenate([text, added])
        if random.random() < 0.3:
            continue
        fresh = RetrievalDrafter(weights=WEIGHTS)
        fresh.begin(DraftRequest(text))
        fresh._accepted = len(added)
        actual, expected = view_of(drafting), view_of(fresh)
        assert actual.text.tokens[: len(text)].tolist() == text.tolist()
        assert actual.text.newest[:12].tolist() == expected.text.newest[:12].tolist()
        each, other = drafting.draft(16), fresh.draft(16)
        assert each.tokens.tolist() == other.tokens.tolist()
        assert each.parents.tolist() == other.parents.tolist()
        assert each.probabilities.tolist() == other.probabilities.tolist()


def test_nothing_to_go_on_is_an_empty_tree():
    drafting = drafter()
    drafting.begin(DraftRequest(np.empty(0, np.int32)))
    assert len(drafting.draft(8)) == 0
    drafting.begin(DraftRequest(np.array([1, 2], np.int32)))
    assert len(drafting.draft(0)) == 0


def test_ids_beyond_the_known_vocabulary_are_drafted_too():
    high = np.array([90_001, 90_002, 90_003, 90_004], np.int32)
    statistics = replay(drafter(), DraftRequest(np.concatenate([high, high[:1]])), high[1:], 8)
    assert statistics.tokens_per_forward > 1
    plain = RetrievalDrafter(weights=WEIGHTS)
    assert replay(plain, DraftRequest(np.concatenate([high, high[:1]])), high[1:], 8).forwards < 3


def test_rows_of_an_index_may_end_anywhere():
    class Ending:
        def lookup(self, context, *, max_match=16, limit=64, depth=16):
            tokens = np.full((3, depth), -1, np.int32)
            tokens[1, :1], tokens[2] = 7, 8
            return Continuations(
                tokens,
                np.full(3, 4, np.int32),
                np.ones(3, np.float32),
                np.full(3, Source.COMMON, np.int8),
                np.zeros(3, np.int32),
            )

    drafting = drafter()
    drafting.begin(DraftRequest(np.array([1, 2], np.int32), index=Ending()))
    tree = drafting.draft(64)
    assert (7,) in paths_of(tree)
    assert (8, 8, 8) in paths_of(tree)
