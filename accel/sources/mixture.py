"""The default drafter for completion: one tree mixed from all match lengths and sources."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.sources import calibration, expansion, prompt
from accel.sources.acceptance import Floats, Scratch, Weights
from accel.sources.best_first import (
    MAX_DEPTH,
    Frontier,
    Room,
    Tree,
    commit_in,
    grow_in,
    room_of,
)
from accel.sources.calibration import Calibration
from accel.sources.evidence import MAX_MATCH, Evidence, Rows, Text, places_of
from accel.sources.history import History
from accel.sources.prompt import PromptIndex
from accel.sources.protocol import (
    ContinuationIndex,
    Continuations,
    DirectIndex,
    DraftRequest,
    Prices,
)
from accel.sources.recycling import RecyclingTable
from accel.sources.token_shapes import TokenShapes

ROWS_PER_SOURCE = 64
ROW_DEPTH = 32
FEW_ROWS, FEW_DEPTH = 24, 16
"""The same where trees stay small: every row is read from far apart in memory. At 8 nodes 3.29
tokens per forward with either."""
SMALL_TREE = 16
"""Where so many nodes make a step half as long again, trees stay small."""


LAYERS = 3
"""Sources that one index may have."""


class View(NamedTuple):
    """What a tree is grown from. ``accepted``: tokens that the last step brought."""

    text: Text
    rows: Rows
    shapes: TokenShapes
    accepted: int
    evidence: Evidence


class MixtureDrafter:
    """Drafts from prompt, output, text after the cursor, an index and earlier requests.

    Every source tells what it knows, whatever the length of its match; a learnt model of
    acceptance says how probable each next token is (``acceptance``), and the tree takes the most
    probable paths (``best_first``). Acceptance seen in use corrects the model (``calibration``).
    """

    name = "redraft"

    def __init__(
        self,
        shapes: TokenShapes | None = None,
        *,
        weights: Weights | None = None,
        learnt: Calibration | None = None,
        history: History | None = None,
        recycling: RecyclingTable | None = None,
    ) -> None:
        """``shapes`` of the tokenizer's vocabulary; without them drafts are somewhat worse."""
        self.calibration = learnt or Calibration()
        self._shapes = shapes or TokenShapes.unknown()
        self.weights = weights or Weights.load()
        self._prompt = PromptIndex(self._shapes.shapes)
        self._index: ContinuationIndex | None = None
        self._history = history
        self._recycling = recycling
        self._workspace = ""
        self._accepted = 0
        self._direct: DirectIndex | None = None
        self._rows = Rows.room(0, ROW_DEPTH)
        self._places = np.empty(0, np.int64)
        self._evidence = Evidence.room(1)
        self.scratch = Scratch.room()
        self.frontier = Frontier.room()
        self.matches = np.empty(0, np.int32)
        self._tree = Tree.room(0)
        self._prices = self._free = Prices.free(0)
        self._room: Room | None = None
        self._room_text = np.empty(0, np.int32)
        self._drafted = DraftTree.empty()
        self._saved = np.zeros(1)
        self._undrafted: list[TokenArray] = []

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        self._catch_up()
        if self._history is not None and self._workspace:
            self._history.remember(self._workspace, self._prompt.prompt, self._prompt.output)
        self._prompt.begin(request.prompt, request.suffix)
        self._index = request.index
        alone = self._history is None and self._recycling is None
        self._direct = request.index if alone and isinstance(request.index, DirectIndex) else None
        self._workspace = request.workspace
        self._accepted = 0

    def draft(self, max_nodes: int) -> DraftTree:
        """A tree of at most ``max_nodes`` nodes in decreasing path probability."""
        count = self._look_up(ROWS_PER_SOURCE, ROW_DEPTH)
        if len(self._free.seconds) != max_nodes + 1:
            self._free = Prices.free(max_nodes)
        return self._grow(count, max_nodes, self._free)

    def draft_within(self, max_nodes: int, prices: Prices) -> DraftTree:
        """The tree with the most expected tokens per second, empty when plain decoding has more."""
        return self._grow(self._looked_up(prices), max_nodes, prices)

    def _looked_up(self, prices: Prices) -> int:
        """Rows for a tree of this price."""
        nodes = min(SMALL_TREE, len(prices.seconds) - 1)
        if prices.seconds[nodes] > 1.5 * prices.seconds[0]:
            return self._look_up(FEW_ROWS, FEW_DEPTH)
        return self._look_up(ROWS_PER_SOURCE, ROW_DEPTH)

    def prepared(self, max_nodes: int, prices: Prices) -> tuple[Room, int, int, int, int] | None:
        """For whoever grows the tree: the room, where the text begins and ends, how many rows were
        looked up, tokens that the last step brought. None where there is nothing to grow from."""
        count = self._looked_up(prices)
        start, stop = self._prompt.start, self._prompt.stop
        if stop == start or max_nodes <= 0:
            return None
        return self._room_for(max_nodes, prices), start, stop, count, self._accepted

    def grown(self, count: int, chances: Floats, shown: NDArray[np.int8]) -> DraftTree:
        """The first ``count`` nodes that somebody else grew in the room, with other chances and
        sources than retrieval alone has. ``commit`` learns from retrieval's."""
        tree = self._tree
        self.matches = tree.matches
        self._drafted = DraftTree(
            tree.tokens[:count].copy(),
            tree.parents[:count].copy(),
            chances[:count].copy(),
            shown[:count].copy(),
        )
        return self._drafted

    def view(self) -> View:
        """All that the next tree of ``draft`` depends on."""
        count = self._look_up(ROWS_PER_SOURCE, ROW_DEPTH)
        self._evidence_for_text()
        rows = self._rows.first(count)
        text = self._prompt.text(room=MAX_DEPTH + 1)
        return View(text, rows, self._shapes, self._accepted, self._evidence)

    def _grow(self, row_count: int, max_nodes: int, prices: Prices) -> DraftTree:
        """The tree from what the text and the first of ``_rows`` say."""
        start, stop = self._prompt.start, self._prompt.stop
        if stop == start or max_nodes <= 0:
            return DraftTree.empty()
        room = self._room_for(max_nodes, prices)
        count = grow_in(room, start, stop, row_count, self._accepted, max_nodes, prices.trust)
        tree = self._tree
        self.matches = tree.matches
        self._drafted = DraftTree(
            tree.tokens[:count].copy(),
            tree.parents[:count].copy(),
            tree.probabilities[:count].copy(),
            tree.sources[:count].copy(),
        )
        return self._drafted

    @property
    def saved_s(self) -> float:
        """Seconds that the last tree of ``draft_within`` is expected to save."""
        return float(self._saved[0])

    def _evidence_for_text(self) -> None:
        if len(self._evidence.slots) < self._prompt.vocabulary:
            self._evidence = Evidence.room(self._prompt.vocabulary)
            self._room = None

    def _room_for(self, nodes: int, prices: Prices) -> Room:
        """What lasts from tree to tree, with room for so many nodes."""
        text = self._prompt.tokens_with(MAX_DEPTH + 1)
        if (
            self._room is None
            or self._room_text is not text
            or len(self._tree.tokens) < nodes
            or self._prices.seconds is not prices.seconds
            or len(self._evidence.slots) < self._prompt.vocabulary
        ):
            self._evidence_for_text()
            if len(self._tree.tokens) < nodes:
                self._tree = Tree.room(nodes)
            self._room_text = text
            self._prices = prices
            self._room = room_of(
                self._shapes,
                self._evidence,
                self.weights,
                self.calibration.corrections,
                self.scratch,
                self.frontier,
                self._tree,
                self.calibration.information,
                self._prompt.text(room=MAX_DEPTH + 1),
                self._rows,
                prices.seconds,
                prices.slopes,
                self._saved,
            )
        return self._room

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``; what was right and wrong in ``tree`` is learnt."""
        self._accepted = len(tokens)
        if not len(tree):
            self._undrafted.append(tokens)
            return
        self._catch_up()
        learns = len(tokens) > len(path)
        if tree is self._drafted and self._room is not None and tokens.dtype == np.int32:
            way = np.array(path, np.int32)
            stop = commit_in(self._room, len(tree), way, tokens, self._prompt.stop, learns)
            if stop >= 0:
                self._prompt.grew_to(stop)
                return
        if learns:
            self.calibration.learn(tree, self.matches[: len(tree)], path)
        self._prompt.extend(tokens)

    def _catch_up(self) -> None:
        """Add what came while nothing was drafted: it costs nothing as long as nothing is."""
        if self._undrafted:
            self._prompt.extend(np.concatenate(self._undrafted))
            self._undrafted = []

    def _look_up(self, limit: int, depth: int) -> int:
        """Fill ``_rows`` with what is known from outside the text; returns how many there are."""
        self._catch_up()
        context = self._prompt.context[-MAX_MATCH:]
        if self._direct is not None:
            self._reserve_rows(limit * LAYERS)
            return self._direct.lookup_into(
                context, self._places, max_match=MAX_MATCH, limit=limit, depth=depth
            )
        found: list[Continuations] = []
        if self._index is not None:
            found.append(self._index.lookup(context, max_match=MAX_MATCH, limit=limit, depth=depth))
        if self._history is not None and self._workspace:
            found.append(
                self._history.lookup(
                    self._workspace,
                    context,
                    max_match=MAX_MATCH,
                    limit=limit,
                    depth=depth,
                )
            )
        if self._recycling is not None and len(context):
            found.append(self._recycling.rows(int(context[-1]), depth))
        first = 0
        self._reserve_rows(sum(map(len, found)))
        for each in found:
            stop = first + len(each)
            self._rows.tokens[first:stop, :depth] = each.tokens
            self._rows.tokens[first:stop, depth:] = -1
            self._rows.lengths[first:stop] = each.lengths
            self._rows.counts[first:stop] = each.counts
            self._rows.sources[first:stop] = each.sources
            first = stop
        return first

    def _reserve_rows(self, count: int) -> None:
        if count > len(self._rows.lengths):
            self._rows = Rows.room(2 * count, ROW_DEPTH)
            self._places = places_of(self._rows)
            self._room = None


def warm_up() -> None:
    """Compile (or load the compiled form of) everything that drafting calls."""
    expansion.warm_up()
    prompt.warm_up()
    calibration.warm_up()
    drafter = MixtureDrafter(weights=Weights.random(0))
    drafter.begin(DraftRequest(np.array([1, 2, 1, 2, 1], np.int32)))
    tree = drafter.draft(4)
    drafter.commit(tree, [], np.array([2], np.int32))
