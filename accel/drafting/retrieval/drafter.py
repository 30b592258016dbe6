"""The default drafter for completion: one tree mixed from all match lengths and sources."""

from __future__ import annotations

from typing import Any

import numpy as np

from accel.draft_tree import DraftTree, TokenArray
from accel.drafting.base import (
    ContinuationIndex,
    Continuations,
    DirectIndex,
    DraftRequest,
    VerifyCosts,
)
from accel.drafting.history import History
from accel.drafting.retrieval.acceptance_model import AcceptanceBuffers, AcceptanceWeights
from accel.drafting.retrieval.candidate_features import MAX_MATCH, Evidence, MatchRows, places_of
from accel.drafting.retrieval.kernels import (
    ARENA_NODES,
    NOT_COMMITTED,
    Committed,
    DraftingState,
    commit_in,
    draft_in,
    drafting_state_of,
)
from accel.drafting.retrieval.prompt_index import PromptIndex
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.drafting.retrieval.tree_search import MAX_DEPTH, Frontier, TreeBuffers
from accel.models.costs.step_overheads import DRAFTED_STEP_S
from accel.native.numba_cache import State

# Measure with `python -m tests.benchmarks completion --cases CASES/completion_repoeval.jsonl`.
ROWS_PER_SOURCE = 64
ROW_DEPTH = 32
FEW_ROWS, FEW_DEPTH = 24, 16
"""The same where trees stay small: every row is read from far apart in memory. At 8 nodes 3.29
tokens per forward with either."""
SMALL_TREE = 16
"""Trees stay small if this number of nodes makes a step half as long again."""

USUAL_NODES, USUAL_COSTS = 64, 512
"""Nodes and costs that a request's buffers are made for when it begins."""

LAYERS = 3
"""Sources that one index may have."""


class RetrievalDrafter:
    """Drafts from prompt, output, text after the cursor, an index and earlier requests:
    ``acceptance_model`` says how probable each next token is, ``tree_search`` takes the most
    probable paths."""

    name = "redraft"

    step_s = DRAFTED_STEP_S

    def __init__(
        self,
        shapes: TokenShapes | None = None,
        *,
        weights: AcceptanceWeights | None = None,
        history: History | None = None,
    ) -> None:
        """``shapes`` of the tokenizer's vocabulary; without them drafts are somewhat worse."""
        self._shapes = shapes or TokenShapes.unknown()
        self.weights = weights or AcceptanceWeights.load()
        self._prompt = PromptIndex(self._shapes.shapes)
        self._index: ContinuationIndex | None = None
        self._history = history
        self._workspace = ""
        self._accepted = 0
        self._direct: DirectIndex | None = None
        self._entry = np.zeros(2, np.int64)
        self._rows = MatchRows.allocate(0, ROW_DEPTH)
        self._places = np.empty(0, np.int64)
        self._evidence = Evidence.allocate(1)
        self.scratch = AcceptanceBuffers.allocate()
        self.frontier = Frontier.allocate()
        self._tree = TreeBuffers.allocate(0)
        self._costs_for = self._free = VerifyCosts.free(0)
        self._seconds, self._marginal = np.empty(USUAL_COSTS), np.empty(USUAL_COSTS)
        self._state: State | None = None
        self._state_text = np.empty(0, np.int32)
        self._read_for = self._free.seconds
        self._reads_few = False
        self._arena = TreeBuffers.allocate(0)
        self._arena_used = 0
        self._drafted = DraftTree.empty()
        self._saved = np.zeros(1)
        self._committed: Committed | None = None
        self._undrafted: list[TokenArray] = []

    def begin(self, request: DraftRequest) -> None:
        self._catch_up()
        if self._history is not None and self._workspace:
            self._history.remember(self._workspace, self._prompt.prompt, self._prompt.output)
        self._prompt.begin(request.prompt, request.suffix)
        self._index = request.index
        self._direct = request.index if isinstance(request.index, DirectIndex) else None
        self._entry[:] = self._direct.entry if self._direct is not None else 0
        self._workspace, self._accepted = request.workspace, 0
        if not self._prompt.is_empty:
            self._reserve_rows(ROWS_PER_SOURCE * LAYERS)
            self._state_for(USUAL_NODES, self._costs_for)

    def draft(self, max_nodes: int) -> DraftTree:
        """Return a tree of at most ``max_nodes`` nodes in decreasing path probability."""
        if len(self._free.seconds) != max_nodes + 1:
            self._free = VerifyCosts.free(max_nodes)
        return self.draft_within(max_nodes, self._free)

    def draft_within(self, max_nodes: int, costs: VerifyCosts) -> DraftTree:
        """Return the tree with the most expected tokens per second, empty when plain decoding has
        more."""
        if self._undrafted:
            self._catch_up()
        if self._prompt.is_empty or max_nodes <= 0:
            return DraftTree.empty()
        limit, depth = self._row_limits(costs)
        first_rows = self._look_up_beside(limit, depth)
        self._reserve_rows(first_rows + limit * LAYERS, first_rows)
        state = self._state_for(max_nodes, costs)
        first = self._arena_used
        (leaf, own), accepted = self._coming(), self._accepted
        start, stop = self._prompt.start, self._prompt.stop
        count = draft_in(
            *(state, leaf, own, start, stop, first_rows, limit, depth, accepted),
            *(max_nodes, costs.acceptance_scale, first),
        )
        if count == NOT_COMMITTED:
            self._settle()
            return self.draft_within(max_nodes, costs)
        if self._committed is not None:
            self._prompt.stop = stop + accepted
            self._committed = None
        self._arena_used = last = first + count
        arena: Any = self._arena
        self._drafted = DraftTree(*[array[first:last] for array in arena])
        return self._drafted

    def _row_limits(self, costs: VerifyCosts) -> tuple[int, int]:
        """Return the rows of each layer, and tokens of each row, for a tree of these costs."""
        if costs.seconds is not self._read_for:
            self._read_for = costs.seconds
            few = min(SMALL_TREE, len(costs.seconds) - 1)
            self._reads_few = bool(costs.seconds[few] > 1.5 * costs.seconds[0])
        return (FEW_ROWS, FEW_DEPTH) if self._reads_few else (ROWS_PER_SOURCE, ROW_DEPTH)

    @property
    def saved_s(self) -> float:
        """Seconds that the last tree of ``draft_within`` is expected to save."""
        return float(self._saved[0])

    def _evidence_for_text(self) -> None:
        if len(self._evidence.slots) < self._prompt.vocabulary:
            self._evidence = Evidence.allocate(self._prompt.vocabulary)
            self._state = None

    def _state_for(self, nodes: int, costs: VerifyCosts) -> State:
        """Return the state that lasts from tree to tree, with room for ``nodes`` nodes."""
        if len(self._tree.tokens) < nodes:
            self._settle()  # the path is read from the tree that is
            self._tree, self._state = TreeBuffers.allocate(nodes), None
        coming = 0 if self._committed is None else len(self._committed.tokens)
        text = self._prompt.tokens_with(MAX_DEPTH + 1 + coming)
        if self._arena_used + nodes > len(self._arena.tokens):
            self._arena = TreeBuffers.allocate(max(ARENA_NODES, 4 * nodes))
            self._arena_used = 0
            self._state = None
        if self._costs_for.seconds is not costs.seconds:
            self._take_costs(costs)
        self._evidence_for_text()
        if self._state is None or self._state_text is not text:
            self._state_text = text
            arrays: tuple[Any, ...] = (
                *(self._shapes, self._evidence, self.weights),
                *(self.scratch, self.frontier, self._tree),
                *(self._prompt.text(spare=MAX_DEPTH + 1 + coming), self._rows),
                *(self._seconds, self._marginal, self._saved, self._arena),
                *(self._entry, self._places),
            )
            self._state = drafting_state_of(DraftingState(*arrays))
        return self._state

    def _take_costs(self, costs: VerifyCosts) -> None:
        """Write other costs into the state: a new state takes as long as a draft."""
        self._costs_for = costs
        count = len(costs.seconds)
        if count > len(self._seconds):
            self._seconds, self._marginal = np.empty(count), np.empty(count)
            self._state = None
        self._seconds[:count], self._seconds[count:] = costs.seconds, np.inf
        self._marginal[:count], self._marginal[count:] = costs.marginal, np.inf

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``: they are added to the text with the next draft."""
        is_first = self._committed is None and not self._undrafted
        if not len(tree) and (len(tokens) > 1 or not is_first):
            self._accepted = len(tokens)
            self._undrafted.append(tokens)
            return
        self._catch_up()
        self._accepted = len(tokens)
        leaf, own = path[-1] if path else -1, -1
        if len(tokens) > len(path):
            own = int(tokens[-1])
        if (len(tree) and tree is not self._drafted) or len(tokens) > len(path) + 1:
            self._prompt.extend(tokens)
        else:
            self._committed = Committed(tokens, leaf, own)

    def _coming(self) -> tuple[int, int]:
        """Return the tokens that are not yet in the text: the last node of the path, and the
        model's own token, -1 for none."""
        return (-1, -1) if self._committed is None else self._committed[1:]

    def _settle(self) -> None:
        """Add what the last step accepted to the text, without drafting."""
        if self._committed is None:
            return
        stop = NOT_COMMITTED
        if self._state is not None and self._state_text is self._prompt.tokens_with(0):
            stop = commit_in(self._state, *self._coming(), self._prompt.stop)
        if stop == NOT_COMMITTED:  # the text is full
            self._prompt.extend(self._committed.tokens)
        else:
            self._prompt.stop = stop
        self._committed = None

    def _catch_up(self) -> None:
        """Add what came since the last draft; while nothing is drafted, it costs nothing."""
        self._settle()
        if self._undrafted:
            self._prompt.extend(np.concatenate(self._undrafted))
            self._undrafted = []

    def _look_up_beside(self, limit: int, depth: int) -> int:
        """Fill ``_rows`` with what is known beside a ``DirectIndex``; returns how many."""
        history, index = self._history, self._index if self._direct is None else None
        if history is not None and not history.knows(self._workspace):
            history = None
        if history is None and index is None:
            return 0
        self._catch_up()
        context, sizes = self._prompt.context[-MAX_MATCH:], {"limit": limit, "depth": depth}
        continuations: list[Continuations] = []
        if history is not None:
            continuations.append(
                history.lookup(self._workspace, context, max_match=MAX_MATCH, **sizes)
            )
        if index is not None:
            continuations.append(index.lookup(context, max_match=MAX_MATCH, **sizes))
        self._reserve_rows(sum(map(len, continuations)))
        rows, first = self._rows, 0
        for each in continuations:
            stop = first + len(each)
            rows.tokens[first:stop, :depth], rows.tokens[first:stop, depth:] = each.tokens, -1
            rows.lengths[first:stop], rows.counts[first:stop] = each.lengths, each.counts
            rows.sources[first:stop] = each.sources
            first = stop
        return first

    def _reserve_rows(self, count: int, filled: int = 0) -> None:
        """Make room for ``count`` rows, of which the first are ``filled``."""
        if count > len(self._rows.lengths):
            rows = MatchRows.allocate(2 * count, ROW_DEPTH)
            arrays: Any = zip(rows, self._rows, strict=True)
            for array, old in arrays:
                array[:filled] = old[:filled]
            self._rows, self._places = rows, places_of(rows)
            self._state = None


def warm_up() -> None:
    """Compile (or load the compiled form of) everything that drafting calls."""
    index = PromptIndex()
    index.begin(np.array([1, 2, 1], np.int32), np.empty(0, np.int32))
    index.lookup(index.context, max_match=4, limit=4, depth=4)
    drafter = RetrievalDrafter()
    drafter.begin(DraftRequest(np.array([1, 2, 1, 2, 1], np.int32)))
    tree = drafter.draft(4)
    drafter.commit(tree, [], np.array([2], np.int32))
    # A request that ends, or begins, settles what the last step accepted.
    drafter._settle()
