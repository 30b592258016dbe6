"""The default drafter for completion: one tree mixed from all match lengths and sources."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from accel.draft_tree import DraftTree, TokenArray
from accel.sources import calibration, expansion, prompt
from accel.sources.acceptance import Scratch, Weights
from accel.sources.best_first import MAX_DEPTH, Frontier, Room, Tree, grow_in, room_of
from accel.sources.calibration import Calibration
from accel.sources.evidence import MAX_MATCH, Evidence, Rows, Text
from accel.sources.history import History
from accel.sources.prompt import PromptIndex
from accel.sources.protocol import ContinuationIndex, Continuations, DraftRequest, Prices
from accel.sources.recycling import RecyclingTable
from accel.sources.token_shapes import TokenShapes

ROWS_PER_SOURCE = 64
ROW_DEPTH = 32
FEW_ROWS, FEW_DEPTH = 24, 16
"""The same where trees stay small: every row is read from far apart in memory. At 8 nodes 3.29
tokens per forward with either."""
SMALL_TREE = 16
"""Where so many nodes make a step half as long again, trees stay small."""


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
        self._prompt = PromptIndex()
        self._index: ContinuationIndex | None = None
        self._history = history
        self._recycling = recycling
        self._workspace = ""
        self._accepted = 0
        self._evidence = Evidence.room(1)
        self.scratch = Scratch.room()
        self.frontier = Frontier.room()
        self.matches = np.empty(0, np.int32)
        self._tree = Tree.room(0)
        self._room: Room | None = None

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        if self._history is not None and self._workspace:
            self._history.remember(self._workspace, self._prompt.prompt, self._prompt.output)
        self._prompt.begin(request.prompt, request.suffix)
        self._index = request.index
        self._workspace = request.workspace
        self._accepted = 0

    def draft(self, max_nodes: int) -> DraftTree:
        """A tree of at most ``max_nodes`` nodes in decreasing path probability."""
        return self.draft_on(self.view(), max_nodes)

    def draft_within(self, max_nodes: int, prices: Prices) -> DraftTree:
        """The tree with the most expected tokens per second, empty when plain decoding has more."""
        nodes = min(SMALL_TREE, len(prices.seconds) - 1)
        is_small = prices.seconds[nodes] > 1.5 * prices.seconds[0]
        return self.draft_on(self.view(few_rows=is_small), max_nodes, prices)

    def view(self, *, few_rows: bool = False) -> View:
        """All that the next tree depends on; ``few_rows`` for small trees."""
        text = self._prompt.text(room=MAX_DEPTH + 1)
        if len(self._evidence.slots) < len(text.newest):
            self._evidence = Evidence.room(len(text.newest))
            self._room = None
        rows = (
            self._rows(FEW_ROWS, FEW_DEPTH) if few_rows else self._rows(ROWS_PER_SOURCE, ROW_DEPTH)
        )
        return View(text, rows, self._shapes, self._accepted, self._evidence)

    def draft_on(self, view: View, max_nodes: int, prices: Prices | None = None) -> DraftTree:
        """``draft`` for a ``view`` of now, ``draft_within`` where there are prices."""
        if view.text.stop == view.text.start or max_nodes <= 0:
            return DraftTree.empty()
        count = grow_in(
            self._room_for(max_nodes),
            view.text,
            view.rows,
            view.accepted,
            max_nodes,
            prices or Prices.free(max_nodes),
        )
        tree = self._tree
        self.matches = tree.matches
        return DraftTree(
            tree.tokens[:count].copy(),
            tree.parents[:count].copy(),
            tree.probabilities[:count].copy(),
            tree.sources[:count].copy(),
        )

    def _room_for(self, nodes: int) -> Room:
        """What lasts from tree to tree, with room for so many nodes."""
        if self._room is None or len(self._tree.tokens) < nodes:
            self._tree = Tree.room(nodes)
            self._room = room_of(
                self._shapes,
                self._evidence,
                self.weights,
                self.calibration.corrections,
                self.scratch,
                self.frontier,
                self._tree,
            )
        return self._room

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``; what was right and wrong in ``tree`` is learnt."""
        if len(tokens) > len(path):
            self.calibration.learn(tree, self.matches[: len(tree)], path)
        self._accepted = len(tokens)
        self._prompt.extend(tokens)

    def _rows(self, limit: int, depth: int) -> Rows:
        """Continuations from outside the text, as compiled code reads them."""
        context = self._prompt.context[-MAX_MATCH:]
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
        rows = found[0] if len(found) == 1 else _joined(found, depth)
        return Rows(
            rows.tokens,
            rows.lengths,
            rows.counts,
            rows.sources,
            np.empty(len(rows), np.int32),
        )


def _joined(found: list[Continuations], depth: int) -> Continuations:
    if not found:
        return Continuations.empty(depth)
    return Continuations(
        np.concatenate([each.tokens for each in found]),
        np.concatenate([each.lengths for each in found]),
        np.concatenate([each.counts for each in found]),
        np.concatenate([each.sources for each in found]),
        np.concatenate([each.files for each in found]),
    )


def warm_up() -> None:
    """Compile (or load the compiled form of) everything that drafting calls."""
    expansion.warm_up()
    prompt.warm_up()
    calibration.warm_up()
    drafter = MixtureDrafter(weights=Weights.random(0))
    drafter.begin(DraftRequest(np.array([1, 2, 1, 2, 1], np.int32)))
    tree = drafter.draft(4)
    drafter.commit(tree, [], np.array([2], np.int32))
