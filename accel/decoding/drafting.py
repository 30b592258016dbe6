"""Draft what pays: whether to draft, how much, and what drafts gained."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import ComputingDrafter, Drafter, DraftRequest, PlanningDrafter
from accel.execution.forwards import Forwards
from accel.execution.statistics import Statistics
from accel.models.base import BatchKind, Capability
from accel.models.costs.step_overheads import STEP_S
from accel.planning.acceptance_rate import expected_hits
from accel.planning.planner import DraftPlan
from accel.text.token_healing import prune

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer


class Drafting:
    """The drafts of one request.

    With ``plans``, a draft is made where it is expected to save time, and as large as pays.
    Without, every draft is verified as its drafter makes it, which is what rules without calibrated
    probabilities mean.
    """

    def __init__(
        self,
        drafter: Drafter | None,
        plan: DraftPlan,
        capability: Capability,
        tokenizer: Tokenizer,
        statistics: Statistics,
        *,
        plans: bool,
    ) -> None:
        drafts = capability.kind > BatchKind.PLAIN
        self._drafter = drafter if drafts and plan.costs.batch_size != 1 else None
        self._costs, self._acceptance, self._company = plan.costs, plan.acceptance, plan.company
        self._capability, self._tokenizer = capability, tokenizer
        self._statistics = statistics
        self._plans = plans
        grows = plans and capability.kind == BatchKind.TREE and capability.leaves is None
        can_plan = grows and isinstance(drafter, PlanningDrafter)
        self._planning_drafter: PlanningDrafter | None = drafter if can_plan else None  # type: ignore[assignment]
        self._step_s = STEP_S if self._planning_drafter is None else self._planning_drafter.step_s

    def begin(self, request: DraftRequest) -> Forwards[None]:
        """A new text begins."""
        if isinstance(self._drafter, ComputingDrafter):
            yield from self._drafter.begin_steps(request)
        elif self._drafter is not None:
            self._drafter.begin(request)

    def tree(
        self, pending: int, context: int, max_nodes: int, required: bytes
    ) -> Forwards[DraftTree]:
        """Return the draft that pays after ``pending`` rows and ``context`` tokens, of
        ``max_nodes`` nodes at most, empty where none does. ``required``: bytes that the text goes
        on with."""
        plain_s = self._costs.share_seconds(pending, context, self._company)
        if batch_size := self._costs.batch_size:
            max_nodes = min(max_nodes, batch_size - pending)
        if self._drafter is None or max_nodes < 1:
            return DraftTree.empty()
        if self._plans and not self._acceptance.wants_draft(plain_s):
            return DraftTree.empty()
        # What drafts cost is the thread's own time: being interrupted is no cost of theirs.
        started, started_cpu = time.perf_counter(), time.thread_time()
        if self._planning_drafter is not None and not required:
            tree, gain_s = self._grown(self._planning_drafter, pending, context, max_nodes)
        else:
            tree = yield from self._made(self._drafter, max_nodes, required)
            place = pending, context, self._acceptance.scale, STEP_S, self._company
            tree, gain_s = self._costs.fit(tree, *place, cuts=self._plans)
        own_s = time.thread_time() - started_cpu
        self._statistics.draft_s.append(time.perf_counter() - started)
        self._acceptance.note_draft(own_s, is_used=len(tree) > 0, gain_s=gain_s)
        return tree

    def _grown(
        self, drafter: PlanningDrafter, pending: int, context: int, max_nodes: int
    ) -> tuple[DraftTree, float]:
        """Return a tree that its drafter stops where more does not pay, and the seconds saved."""
        scale = self._acceptance.scale
        costs = self._costs.verify_costs(pending, context, scale, self._step_s, self._company)
        tree = drafter.draft_within(min(max_nodes, len(costs.marginal) - 1), costs)
        # A plain step, which an accepted token saves, takes less beside its forward.
        accepted = scale * sum(tree.probabilities.tolist())
        return tree, drafter.saved_s - accepted * (self._step_s - STEP_S)

    def _made(self, drafter: Drafter, max_nodes: int, required: bytes) -> Forwards[DraftTree]:
        """Return a tree as its drafter makes it, cut to what the model takes."""
        if required:
            tree = self._healing(drafter, max_nodes, required)
        elif isinstance(drafter, ComputingDrafter):
            tree = yield from drafter.draft_steps(max_nodes)
        else:
            tree = drafter.draft(max_nodes)
        if self._capability.kind == BatchKind.CHAIN:
            tree = tree.main_branch()
        if self._capability.leaves is not None:
            tree = tree.with_leaves(self._capability.leaves)
        return tree

    def _healing(self, drafter: Drafter, max_nodes: int, required: bytes) -> DraftTree:
        """Return branches that agree with what is typed, and its plain spelling."""
        tree = prune(drafter.draft(4 * max_nodes), required, self._tokenizer.byte_index).prefix(
            max_nodes
        )
        if len(tree):
            return tree
        spelt = self._tokenizer.encode(required.decode("utf-8", errors="replace"))
        return DraftTree.chain(spelt[:max_nodes], Source.PROMPT, 0.5)

    def learn(
        self, tree: DraftTree, path: list[int], tokens: TokenArray, pending: int, context: int
    ) -> None:
        """Of ``tree`` the nodes of ``path`` were right, and ``tokens`` became text; ``context``
        tokens are committed now. A tree that was pruned is not the one that the drafter made: give
        an empty one for it."""
        if len(tree):
            plain_s = self._costs.share_seconds(pending, context, self._company) + STEP_S
            self._acceptance.learn(expected_hits(tree, path), len(path), plain_s)
        if self._drafter is not None and len(tokens):
            started = time.perf_counter()
            self._drafter.commit(tree, path, tokens)
            self._statistics.learn_s += time.perf_counter() - started
