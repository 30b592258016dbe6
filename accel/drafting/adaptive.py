"""Adaptive tokens in the forward that verifies, beside retrieval: no forward is spent on drafting.

Where the text is likely to stop in a draft tree, rows of adaptive tokens follow (BiTA, Lin et al.
2024, has the idea; the tokens are SDSAT's). While the tree is verified they say what comes after
the token that is chosen there. The next tree holds these guesses beside what retrieval knows.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest, VerifyCosts
from accel.drafting.retrieval.drafter import RetrievalDrafter

Floats = NDArray[np.float32]

# Measure with `python -m tests.benchmarks adaptive --cases CASES/completion_infilling.jsonl`.
MOST_STOPS = 6
"""Nodes, the root among them, after which rows of adaptive tokens follow."""
LIKELIEST = 8
"""Tokens that are guessed from one row."""
MOST_GUESSES, LEAST_CHANCE = 32, 0.01
"""Nodes of a tree of guesses, and the least likely of them."""
FIRST_GAIN, NEW_SHARE, UNTRIED_SHARE = 0.5, 0.05, 0.01
"""Accepted tokens that rows are expected to add before anything is known, and the shares of what
they just added, and of that where none were tried, in the running mean."""
LOOK_S = 3e-4
"""Seconds that guessing adds to a step."""

Guess = tuple[int, int, float]
"""Parent among the guesses, -1 for the text, token and chance of a node."""


class AdaptiveDrafter:
    """Drafts as ``retrieval`` does, and from what adaptive tokens said in the last forward.

    Rows of adaptive tokens are nodes at the end of a tree, of no chance of their own: they share no
    forward of several requests.
    """

    name = "redraft"

    def __init__(self, retrieval: RetrievalDrafter, tokens: tuple[int, ...]) -> None:
        """``tokens``: the ids of the model's adaptive tokens."""
        self._retrieval = retrieval
        self._tokens = np.array(tokens, np.int32)
        self.step_s = retrieval.step_s + LOOK_S
        self.saved_s = 0.0
        self._gain = FIRST_GAIN
        self._temperature = 1.0
        self._forget()

    def _forget(self) -> None:
        self._guesses: list[Guess] = []
        self._known = DraftTree.empty()
        self._places = np.empty(0, np.int64)
        """Positions of the nodes of ``_known`` in the last tree."""
        self._nodes = 0
        """Of the last tree, those that are no rows of adaptive tokens."""
        self._rows_after: dict[int, int] = {}
        self._used_guesses = False

    @property
    def looks(self) -> bool:
        """Return whether rows of adaptive tokens follow nodes of the last tree."""
        return bool(self._rows_after)

    def begin(self, request: DraftRequest) -> None:
        self._forget()
        self._temperature = (request.sampling and request.sampling.temperature) or 1.0
        self._retrieval.begin(request)

    def draft(self, max_nodes: int) -> DraftTree:
        """Return a tree of at most ``max_nodes`` nodes in decreasing path probability, without rows
        of adaptive tokens."""
        tree = self._merged(self._retrieval.draft(max_nodes)).prefix(max_nodes)
        return self._with_rows(tree, np.empty(0, np.int64))

    def draft_within(self, max_nodes: int, costs: VerifyCosts) -> DraftTree:
        """Return the tree, and rows after it, with the most expected tokens per second."""
        tree = self._merged(self._retrieval.draft_within(max_nodes, costs)).prefix(max_nodes)
        chances = costs.acceptance_scale * tree.probabilities.astype(np.float64)
        expected = 1 + np.concatenate([[0.0], np.cumsum(chances)])
        best, nodes, after, self.saved_s = 0.0, 0, np.empty(0, np.int64), 0.0
        for groups in range(min(MOST_STOPS, max_nodes // len(self._tokens)) + 1):
            rows = groups * len(self._tokens)
            retrieved = expected[: max_nodes - rows + 1]
            count = int((retrieved / costs.seconds[rows : rows + len(retrieved)]).argmax())
            stops = np.concatenate([[1.0], chances[:count]])
            np.subtract.at(stops, tree.parents[:count] + 1, chances[:count])
            likely = np.argsort(-stops, kind="stable")[:groups]
            tokens = expected[count] + self._gain * stops[likely].sum()
            seconds = costs.seconds[count + len(self._tokens) * len(likely)]
            if tokens / seconds > best:
                best, nodes, after = tokens / seconds, count, likely - 1
                self.saved_s = float(tokens * costs.seconds[0] - seconds)
        return self._with_rows(tree.prefix(nodes), after)

    def look(self, tree: DraftTree, stop: int, logits_of: Callable[[int], Floats]) -> None:
        """``tree`` was verified up to node ``stop``, -1 for its root: guess by the rows that follow
        it. ``logits_of``: of a node, float32 [vocabulary]."""
        first, self._guesses = self._rows_after.get(stop), []
        if first is not None:
            rows = range(first, min(first + len(self._tokens), len(tree)))
            likely = [_likeliest(logits_of(row), self._temperature) for row in rows]
            self._guesses = likely_paths(likely, MOST_GUESSES, LEAST_CHANCE)
        self._rows_after = {}

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Let retrieval learn from its own part of what was verified."""
        if self._used_guesses:
            guessed = (n for n, node in enumerate(path) if tree.sources[node] == Source.ADAPTIVE)
            brought = len(path) - next(guessed, len(path))
            self._gain += NEW_SHARE * (brought - self._gain)
        else:
            self._gain += UNTRIED_SHARE * (FIRST_GAIN - self._gain)
        self._used_guesses = False
        missing = np.flatnonzero(self._places >= min(self._nodes, len(tree)))
        count = int(missing[0]) if len(missing) else len(self._places)
        own = {int(position): node for node, position in enumerate(self._places[:count])}
        way: list[int] = []
        for node in path:
            if node not in own:
                break
            way.append(own[node])
        is_all = count == len(self._known)
        self._retrieval.commit(self._known if is_all else self._known.prefix(count), way, tokens)
        self._known, self._places = DraftTree.empty(), np.empty(0, np.int64)

    def _merged(self, retrieved: DraftTree) -> DraftTree:
        """Return the tree ``retrieved`` of retrieval merged with the guesses, in decreasing
        probability. A node in both has the larger of its probabilities, and its descendants follow
        it."""
        parents, tokens = retrieved.parents.tolist(), retrieved.tokens.tolist()
        chances, sources = retrieved.probabilities.tolist(), retrieved.sources.tolist()
        nodes = {key: node for node, key in enumerate(zip(parents, tokens, strict=True))}
        lifted: dict[int, float] = {}
        node_of: list[int] = []
        for parent, token, chance in self._guesses:
            key = (node_of[parent] if parent >= 0 else -1, token)
            node = nodes.setdefault(key, len(parents))
            node_of.append(node)
            if node < len(retrieved):
                lifted[node] = chance
            else:
                parents.append(key[0])
                tokens.append(token)
                chances.append(chance)
                sources.append(int(Source.ADAPTIVE))
        if lifted:
            factors = [1.0] * len(retrieved)
            for node in range(len(retrieved)):
                above = factors[parents[node]] if parents[node] >= 0 else 1.0
                chance = max(chances[node] * above, lifted.get(node, 0.0))
                factors[node], chances[node] = chance / max(chances[node], 1e-9), chance
        self._known, self._used_guesses = retrieved, bool(self._guesses)
        tree, positions = DraftTree.likeliest_first(tokens, parents, chances, sources)
        self._places = positions[: len(retrieved)].astype(np.int64)
        return tree

    def _with_rows(self, tree: DraftTree, after: NDArray[np.int64]) -> DraftTree:
        """Return the tree and, after each of some nodes, a chain of all adaptive tokens."""
        size, nodes = len(self._tokens), len(tree)
        self._nodes = nodes
        count = size * len(after)
        parents = nodes - 1 + np.arange(count, dtype=np.int32)
        parents[::size] = after
        self._rows_after = {int(node): nodes + size * n for n, node in enumerate(after)}
        return DraftTree(
            np.concatenate([tree.tokens, np.tile(self._tokens, len(after))]),
            np.concatenate([tree.parents, parents]),
            np.concatenate([tree.probabilities, np.zeros(count, np.float32)]),
            np.concatenate([tree.sources, np.full(count, Source.ADAPTIVE, np.int8)]),
        )


def likely_paths(
    rows: list[tuple[TokenArray, Floats]], most: int, least: float = 0.0
) -> list[Guess]:
    """Return the likeliest paths through rows that do not depend on each other, likeliest first,
    parents before children. rows: tokens and their chances, for each depth."""
    guesses: list[Guess] = []
    waiting = [(-1.0, -1, -1, 0)]
    while waiting and len(guesses) < most:
        chance, token, parent, depth = heapq.heappop(waiting)
        if -chance < least:
            break
        if depth:
            guesses.append((parent, token, -chance))
        if depth < len(rows):
            tokens, chances = rows[depth]
            for following, its in zip(tokens.tolist(), chances.tolist(), strict=True):
                heapq.heappush(waiting, (chance * its, following, len(guesses) - 1, depth + 1))
    return guesses


def _likeliest(logits: Floats, temperature: float) -> tuple[TokenArray, Floats]:
    """Return the likeliest tokens of a row, and their chances."""
    tokens = np.argpartition(logits, -LIKELIEST)[-LIKELIEST:].astype(np.int32)
    scaled = (logits - logits[tokens].max()) / np.float32(temperature)
    return tokens, np.exp(scaled[tokens]) / np.exp(scaled).sum()
