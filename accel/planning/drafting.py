"""Draft what pays: whether to draft, how much, and what drafts brought."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import Drafter, DraftRequest, PlanningDrafter
from accel.models.base import BatchKind, Capability
from accel.planning.draft_log import DraftLog
from accel.planning.feedback import AcceptanceTracker
from accel.planning.overheads import STEP_S
from accel.planning.planner import Planner
from accel.statistics import Statistics
from accel.text.token_healing import prune
from accel.verification.verifier import expected_hits

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer


class Drafting:
    """The drafts of one request.

    With ``plans``, a draft is made where it is expected to save time, and as large as pays;
    without, every draft is verified as its drafter makes it, which is what rules without calibrated
    probabilities mean. In a ``log`` drafts that are planned are noted in the size that it wants, of
    which no more than ever is verified.
    """

    def __init__(
        self,
        drafter: Drafter | None,
        planner: Planner,
        capability: Capability,
        tokenizer: Tokenizer,
        statistics: Statistics,
        *,
        plans: bool,
        log: DraftLog | None = None,
    ) -> None:
        drafts = capability.kind > BatchKind.PLAIN
        # Others need not grow trees best first, or ask a model for every node.
        is_best_first = plans and isinstance(drafter, PlanningDrafter)
        self._log = log if drafts and is_best_first else None
        drafts = drafts and (planner.width != 1 or self._log is not None)
        self._drafter = drafter if drafts else None
        self._planner, self._capability, self._tokenizer = planner, capability, tokenizer
        self._statistics = statistics
        self._plans = plans
        self._written = 0
        grows = plans and capability.kind == BatchKind.TREE and capability.leaves is None
        can_plan = grows and isinstance(drafter, PlanningDrafter)
        self._planning: PlanningDrafter | None = drafter if can_plan else None  # type: ignore[assignment]
        self._step_s = STEP_S if self._planning is None else self._planning.step_s
        self._tracker = AcceptanceTracker()

    def begin(self, request: DraftRequest) -> None:
        """A new text begins."""
        if self._drafter is not None:
            self._drafter.begin(request)

    def tree(self, pending: int, context: int, room: int, required: bytes) -> DraftTree:
        """The draft that pays behind ``pending`` rows and ``context`` tokens, of ``room`` nodes at
        most, empty where none does. ``required``: bytes that the text goes on with."""
        plain_s = self._planner.seconds(pending, context)
        width, most = self._planner.width, room
        if width:
            room = min(room, width - pending)
        # Nothing is drafted behind several rows in forwards of any width; in those of one row all
        # that is drafted is for the log.
        most = min(most, self._log.most_nodes) if self._log is not None and pending == 1 else room
        if self._drafter is None or most < 1:
            return self._noted(DraftTree.empty())
        if self._plans and width != 1 and not self._tracker.wants_draft(plain_s):
            return self._noted(DraftTree.empty())
        # What drafts cost is the thread's own time: being interrupted is no cost of theirs.
        started, started_cpu = time.perf_counter(), time.thread_time()
        if self._planning is not None and not required:
            tree, gain_s = self._grown(self._planning, pending, context, room)
        else:
            tree = self._noted(self._made(self._drafter, most, required))
            if len(tree) > room:
                tree = tree.prefix(max(room, 0))
            tree, gain_s = self._fitted(tree, pending, context)
        own_s = time.thread_time() - started_cpu
        self._statistics.draft_s.append(time.perf_counter() - started)
        self._tracker.note_draft(own_s, taken=len(tree) > 0, gain_s=gain_s)
        return tree

    def _grown(
        self, drafter: PlanningDrafter, pending: int, context: int, room: int
    ) -> tuple[DraftTree, float]:
        """A tree that its drafter stops where more does not pay, and the seconds it saves."""
        factor = self._tracker.factor
        prices = self._planner.prices(pending, context, factor, self._step_s)
        tree = drafter.draft_within(min(room, len(prices.slopes) - 1), prices)
        # A plain step, which an accepted token saves, takes less beside its forward.
        accepted = factor * float(tree.probabilities.sum())
        return tree, drafter.saved_s - accepted * (self._step_s - STEP_S)

    def _noted(self, tree: DraftTree) -> DraftTree:
        if self._log is not None:
            self._log.note(self._written, tree)
        return tree

    def _made(self, drafter: Drafter, room: int, required: bytes) -> DraftTree:
        """A tree as its drafter makes it, cut to what the model takes."""
        tree = self._healing(drafter, room, required) if required else drafter.draft(room)
        if self._capability.kind == BatchKind.CHAIN:
            tree = tree.main_branch()
        if self._capability.leaves is not None:
            tree = tree.with_leaves(self._capability.leaves)
        return tree

    def _fitted(self, tree: DraftTree, pending: int, context: int) -> tuple[DraftTree, float]:
        """A tree cut to what pays, and the seconds it saves."""
        factor = self._tracker.factor
        if self._plans:
            tree = self._planner.fit(tree, pending, context, factor, STEP_S)
        return tree, self._planner.saved_s(tree, pending, context, factor, STEP_S)

    def _healing(self, drafter: Drafter, room: int, required: bytes) -> DraftTree:
        """Branches that agree with what is typed, and the plain spelling of what is typed."""
        tree = prune(drafter.draft(4 * room), required, self._tokenizer.byte_index).prefix(room)
        if len(tree):
            return tree
        spelt = self._tokenizer.encode(required.decode("utf-8", errors="replace"))
        return DraftTree.chain(spelt[:room], Source.PROMPT, 0.5)

    def note_forward(self, seconds: float, rows: int, context: int) -> None:
        """A forward of so many rows took so long."""
        self._tracker.note_forward(seconds, self._planner.seconds(rows, context))

    def learn(
        self, tree: DraftTree, path: list[int], tokens: TokenArray, pending: int, context: int
    ) -> None:
        """Of ``tree`` the nodes of ``path`` were right, and ``tokens`` became text; ``context``
        tokens are held now. A tree that was pruned is not the one that the drafter made: give an
        empty one for it."""
        if len(tree):
            plain_s = self._planner.seconds(pending, context) + STEP_S
            self._tracker.learn(expected_hits(tree, path), len(path), plain_s)
        self._written += len(tokens)
        if self._drafter is not None and len(tokens):
            started = time.perf_counter()
            self._drafter.commit(tree, path, tokens)
            self._statistics.learn_s += time.perf_counter() - started

    def end(self, text: TokenArray) -> None:
        """The text, int32 [n], is whole, or nobody wants more of it."""
        if self._log is not None:
            self._log.end(text)
