"""The loop that answers a request: draft, verify, commit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from accel.choice import MADE_AT_ONCE, Choice
from accel.draft_tree import DraftTree, Source, TokenArray
from accel.greedy import GreedyWalk
from accel.healing import prune
from accel.mask_planner import fit_with_masks
from accel.model import Capability
from accel.profile import best
from accel.request import Chunk, GenerationRequest, StoppedBy
from accel.rows import MaskGroups, tree_rows
from accel.sampling import choose
from accel.sources.protocol import (
    Drafter,
    DraftRequest,
    Guesser,
    Matcher,
    PricedDrafter,
    Recycler,
    Speculating,
)
from accel.statistics import Statistics
from accel.stepping import Stepper
from accel.transcript import Transcript
from accel.trust import Trust
from accel.verifier import expected_hits, main_branch, relaxed, walk

if TYPE_CHECKING:
    from accel.engine import Engine
    from accel.session import Session

__all__ = ["Chunk", "Generation", "GenerationRequest", "StoppedBy"]

PREFILL_ROWS = 256
"""Rows of one prefill forward: cancel is checked between them."""

MERGED_ROWS = 32
"""A prompt whose last new rows are this few is computed together with the first draft."""

OVERHEAD_S = 1e-4
"""Time of a step outside of drafting and the forward, the same for every tree."""

RECYCLED_ROWS, RECYCLED_WIDTH = 3, 4
"""Rows and tokens a forward that a recycling drafter is told of."""


class Generation:
    """A running generation. Iterate over it for chunks; the rest is complete after the end.

    Cancel is checked before every forward; before several short ones, which ``Engine.interrupt``
    ends. Leaving the iteration early is a cancel.
    """

    def __init__(self, engine: Engine, request: GenerationRequest, session: Session) -> None:
        request.check(engine.max_positions)
        self.request = request
        self.statistics = Statistics(prompt_tokens=len(request.prompt))
        self._engine = engine
        self._session = session
        self._max_positions, self._takes_chains = engine.max_positions, engine.takes_chains
        ends = request.stop_tokens | engine.end_tokens
        self._ends = frozenset[int]() if request.ignore_end else ends
        self._written = Transcript(request, engine.tokenizer, self._ends)
        self._trust = Trust()
        drafter: object = request.drafter
        self._recycler = drafter if isinstance(drafter, Recycler) else None
        self._matcher = drafter if isinstance(drafter, Matcher) and request.plan else None
        speculates = self._matcher is not None and engine.model.speculator is not None
        speculator = drafter if isinstance(drafter, Speculating) else None
        self._speculator = speculator if speculates else None
        has_masks = engine.model.mask_tokens is not None
        self._guesser = drafter if has_masks and isinstance(drafter, Guesser) else None
        self._groups = MaskGroups.none()
        self._priced = self._planning(drafter)
        self._step_s = OVERHEAD_S if self._priced is None else self._priced.step_s
        penalised = request.prompt if request.sampling.penalise_prompt else _NOTHING
        self._prompt_set = np.unique(penalised)
        self._greedy = self._greedy_walk()
        self._wants_no_logits = self._takes_tokens_alone()
        looks_at_logits = not (self._wants_no_logits or request.sampling.greedy)
        self._choice = Choice(self._trust, looks_at_logits=looks_at_logits)
        self._stepper = self._several_steps()
        self._chunks = self._run()

    @property
    def tokens(self) -> TokenArray:
        """Tokens generated so far. int32 [n]."""
        return np.array(self._written.tokens, np.int32)

    @property
    def text(self) -> str:
        """Text so far, without the required prefix, cut by the stop rule."""
        return self._written.text

    @property
    def stopped_by(self) -> StoppedBy:
        """Why it ended; ``cancelled`` until it does."""
        return self._written.stopped_by

    def __iter__(self) -> Iterator[Chunk]:
        return self._chunks

    def finish(self) -> Generation:
        """Run to the end."""
        for _ in self._chunks:
            pass
        return self

    def _run(self) -> Iterator[Chunk]:
        session, request = self._session, self.request
        session.take(self)
        started = time.perf_counter()
        if request.drafter is not None:
            request.drafter.begin(request.draft_request or DraftRequest(request.prompt))
        self.statistics.prefill_s = time.perf_counter() - started
        pending = self._prefill()
        started = time.perf_counter()
        while pending is not None and self._goes_on():
            session.check(self)
            chunk = self._several(pending) or self._one(pending)
            pending = chunk.tokens[-1:]
            self.statistics.decode_s += time.perf_counter() - started
            if len(chunk.tokens):
                yield chunk
            started = time.perf_counter()

    def _goes_on(self) -> bool:
        """Whether there is another step to make."""
        if self._stepper is not None:
            self._stepper.note_interruptions()
        return not (self._written.is_finished or self.request.cancelled())

    def _several(self, pending: TokenArray) -> Chunk | None:
        """Some steps at once, None where one is to be made by itself."""
        if self._stepper is None:
            return None
        return self._stepper.run(pending, self._written, self._choice, self._trust, self.statistics)

    def _one(self, pending: TokenArray) -> Chunk:
        """One step: draft, verify, commit."""
        tree = self._draft(len(pending))
        path, tokens = self._verify(pending, tree)
        return self._commit(pending, tree, path, tokens)

    def _prefill(self) -> TokenArray | None:
        """Compute the prompt but for its last rows, which are returned; None when cancelled."""
        started = time.perf_counter()
        request = self.request
        reused = self._engine.prepare(self._session, request.prompt)
        self.statistics.prompt_tokens_reused = reused
        left = len(request.prompt) - reused
        merged = left if reused and left <= MERGED_ROWS and self._engine.takes_chains else 1
        done = self._engine.extend(
            self._session, request.prompt[: len(request.prompt) - merged], request.cancelled
        )
        computed = len(request.prompt) - merged - reused
        if done and computed > 0 and merged == 1 and self._speculator is not None:
            # What the last chunk left is all that the first step can be guessed from.
            self._speculator.note_state(*self._engine.model.state_of((computed - 1) % PREFILL_ROWS))
        self.statistics.prefill_s += time.perf_counter() - started
        return request.prompt[-merged:].copy() if done else None

    def _draft(self, pending: int) -> DraftTree:
        """The draft tree that pays on this device, empty when none does."""
        drafter, planner, context = self.request.drafter, self._engine.planner, self._session.length
        self._groups = MaskGroups.none()
        room = self._room(pending)
        if drafter is None or room < 1 or not self._takes_chains:
            return DraftTree.empty()
        if self._matcher is not None and not self._written.rest:
            if self._choice.passes():
                return DraftTree.empty()
            chains = planner.chains(pending, context)
            draft = self._choice.draft(self._matcher, chains, room, self._speculator)
            self.statistics.drafted(self._choice.took_s, self._choice.kind in MADE_AT_ONCE)
            if draft is not None:
                return draft
        elif self.request.plan and not self._trust.wants_draft(planner.seconds(pending, context)):
            return DraftTree.empty()
        # What drafts cost is the thread's own time: being interrupted is no cost of theirs.
        started, started_cpu = time.perf_counter(), time.thread_time()
        if self._priced is not None and not self._written.rest:
            prices = planner.prices(pending, context, self._trust.factor, self._step_s)
            if self._guesser is not None and self._greedy is not None:
                prices = prices._replace(masks=True)
            tree = self._priced.draft_within(min(room, len(prices.slopes) - 1), prices)
            # A plain step, which an accepted token saves, takes less beside its forward.
            saved = self._trust.factor * float(tree.probabilities.sum())
            gain_s: float | None = self._priced.saved_s - saved * (self._step_s - OVERHEAD_S)
            tree = self._with_masks(tree)
        else:
            tree = self._healing_draft(drafter, room) if self._written.rest else drafter.draft(room)
            if self._engine.model.capability == Capability.CHAIN:
                tree = main_branch(tree)
            tree = self._planned(tree, pending) if self.request.plan else self._with_masks(tree)
            saved_s = planner.saved_s(tree, pending, context, self._trust.factor, OVERHEAD_S)
            gain_s = None if self._groups.rows else saved_s
        elapsed_cpu = time.thread_time() - started_cpu
        self.statistics.draft_s.append(time.perf_counter() - started)
        is_taken = bool(len(tree) or self._groups.rows)
        self._trust.drafted(elapsed_cpu, is_taken, gain_s)
        if not is_taken:
            self._choice.learn(0, 0)
        return tree

    def _planning(self, drafter: object) -> PricedDrafter | None:
        """The drafter where it plans alone: a tree whose every node is verified."""
        plans = self.request.plan and self._engine.model.capability == Capability.TREE
        return drafter if plans and isinstance(drafter, PricedDrafter) else None

    def _planned(self, tree: DraftTree, pending: int) -> DraftTree:
        """What pays of a tree, and of mask rows behind it."""
        planner, context, guesser = self._engine.planner, self._session.length, self._guesser
        trust = self._trust.factor
        if guesser is None:
            return planner.fit(tree, pending, context, trust, OVERHEAD_S)
        tree, self._groups = fit_with_masks(
            tree,
            pending,
            planner.by_rows(context),
            trust,
            OVERHEAD_S,
            guesser.gains,
            guesser.cost_s,
        )
        return tree

    def _with_masks(self, tree: DraftTree) -> DraftTree:
        """The tree as it is, with the mask rows that its drafter wants."""
        if self._guesser is not None:
            self._groups = self._guesser.groups(tree)
        return tree

    def _room(self, pending: int) -> int:
        """Nodes that may be drafted: what is asked, left to generate and left of the context."""
        left = self._max_positions - self._session.length - pending
        remaining = self.request.max_tokens - len(self._written.tokens)
        if remaining <= 1:
            return 0
        return min(self.request.max_nodes, left)

    def _healing_draft(self, drafter: Drafter, room: int) -> DraftTree:
        """Branches that agree with what is typed, and the plain spelling of what is typed."""
        index, tokenizer = self._engine.tokenizer.byte_index, self._engine.tokenizer
        tree = prune(drafter.draft(4 * room), self._written.rest, index).prefix(room)
        if len(tree):
            return tree
        spelt = tokenizer.encode(self._written.rest.decode("utf-8", errors="replace"))
        return DraftTree.chain(spelt[:room], Source.PROMPT, 0.5)

    def _verify(self, pending: TokenArray, tree: DraftTree) -> tuple[list[int], TokenArray]:
        """One forward, and the walk along what the model chooses."""
        started, planner, context = time.perf_counter(), self._engine.planner, self._session.length
        count = len(pending) + len(tree) + self._groups.rows
        found = self._walked(pending, tree, planner.padding(count, context))
        self.statistics.verify_s.append(time.perf_counter() - started)
        # To draw from whole logits takes time that says nothing about the machine's pace.
        if self._greedy is not None or self._wants_no_logits:
            self._trust.verified(self.statistics.verify_s[-1], planner.seconds(count, context))
        return found

    def _walked(
        self, pending: TokenArray, tree: DraftTree, padding: int
    ) -> tuple[list[int], TokenArray]:
        rows = tree_rows(pending, tree, padding, self._groups)
        constrained = self._written.rest or len(self._written.tokens) < self.request.min_tokens
        if self._wants_no_logits and not (padding or constrained):
            draws = self.request.sampling.draws_at(len(self._written.tokens))
            path, chosen = self._engine.verify(rows, tree, self._session, draws)
            if self._guesser is not None and self._groups.rows:
                self._guess_from(self._guesser, path, int(chosen[-1]))
            return path, chosen
        all_logits, states = self._engine.forward_with_masks(rows, self._session)
        logits = all_logits[: len(tree) + 1]
        if self._greedy is not None and not constrained:
            path, tokens = self._greedy(tree, logits.float().numpy())
        elif self.request.sampling.plain_greedy and not constrained:
            token_of, request = best(logits), self.request
            others = relaxed(
                lambda node: logits[node + 1].float().cpu().numpy(),
                *(logits.shape[-1], request.entropy_top_k, request.relaxed_rule),
            )
            path, tokens = walk(tree, lambda node, _above: token_of[node + 1], others)
        else:
            numbers = logits.float().cpu().numpy()
            path, tokens = walk(tree, lambda node, above: self._choose(numbers[node + 1], above))
            if self._greedy is not None:
                self._greedy.note(tokens)
        if self._recycler is not None:
            self._recycle(self._recycler, rows.tokens[len(pending) - 1 :], path, logits)
        if self._guesser is not None and self._groups.rows:
            self._guess(self._guesser, all_logits[len(logits) :], states, path, tokens[-1])
        return path, np.array(tokens, np.int32)

    def _guess(
        self, drafter: Guesser, logits: Tensor, states: Tensor, path: list[int], token: int
    ) -> None:
        """Tell what the mask rows found that stand where the text stopped, if any do."""
        self.statistics.mask_rows += self._groups.rows
        group = self._groups.rows_behind(path[-1] if path else -1)
        if group.stop:
            drafter.guess(
                logits[group].float().cpu().numpy(), states[group].float().cpu().numpy(), token
            )

    def _guess_from(self, drafter: Guesser, path: list[int], token: int) -> None:
        """``_guess`` after a verification without logits."""
        self.statistics.mask_rows += self._groups.rows
        group = self._groups.rows_behind(path[-1] if path else -1)
        if group.stop:
            drafter.guess(*self._engine.model.mask_rows(group), token)

    def _recycle(
        self, drafter: Recycler, tokens: TokenArray, path: list[int], logits: Tensor
    ) -> None:
        """Tell what came next in likelihood on the rows that became text: all rows would cost more
        than they give."""
        places = [0, *(node + 1 for node in path[-RECYCLED_ROWS:])]
        likely = logits[places].topk(RECYCLED_WIDTH).indices
        drafter.recycle(tokens[places], likely.cpu().numpy().astype(np.int32))

    def _greedy_walk(self) -> GreedyWalk | None:
        """The compiled walk where it applies: greedy and lossless, logits in the CPU's memory."""
        model, sampling = self._engine.model, self.request.sampling
        if not sampling.greedy or self.request.entropy_top_k > 1 or model.device.type != "cpu":
            return None
        return GreedyWalk(model.vocabulary_size, sampling.repetition_penalty, self._prompt_set)

    def _takes_tokens_alone(self) -> bool:
        """Whether nobody looks at logits: they are taken as they are, or drawn from."""
        plain = self.request.sampling.wants_tokens_alone and self.request.entropy_top_k < 2
        return plain and self._recycler is None and self._engine.model.verifies

    def _several_steps(self) -> Stepper | None:
        """What makes several steps at a time, where that may be."""
        model, request = self._engine.model, self.request
        drafts = request.drafter is not None
        may_be = self._wants_no_logits and model.runs_steps and self._guesser is None
        if not may_be or request.min_tokens or (drafts and self._speculator is None):
            return None
        return Stepper(self._engine, self._session, request, self._speculator, ends=self._ends)

    def _choose(self, logits: NDArray[np.float32], above: list[int]) -> int:
        """The next token of a node whose path from the committed text holds ``above``."""
        sampling = self.request.sampling
        place = len(self._written.tokens) + len(above)
        if place < self.request.min_tokens and self._ends:
            logits = logits.copy()
            logits[list(self._ends)] = -np.inf
        rest = self._written.rest_after(above)
        if rest:
            allowed = self._engine.tokenizer.byte_index.agreeing(rest)
            held = np.full_like(logits, -np.inf)
            held[allowed] = logits[allowed]
            logits = held
        seen = _NOTHING
        if sampling.repetition_penalty != 1:
            generated = np.array([*self._written.tokens, *above], np.int32)
            seen = np.concatenate([self._prompt_set, generated])
        return choose(logits, sampling, seen, place)

    def _commit(
        self, pending: TokenArray, tree: DraftTree, path: list[int], tokens: TokenArray
    ) -> Chunk:
        """Keep the accepted rows, end where the request ends, and let the drafter learn."""
        healing, session = bool(self._written.rest), self._session
        count = self._written.take(tokens.tolist())
        if session.length + len(pending) + len(path) >= self._max_positions:
            self._written.finish("length")
        path, taken = path[:count], tokens[:count]
        session.keep_path(pending, path, taken)
        self.statistics.record(tree, path, count)
        if len(tree):
            self._choice.learn(len(tree), len(path))
        if len(tree) and self._choice.kind not in MADE_AT_ONCE:
            plain_s = self._engine.planner.seconds(len(pending), session.length) + OVERHEAD_S
            self._trust.learn(expected_hits(tree, path), len(path), plain_s)
        if self.request.drafter is not None and count:
            # A pruned tree is not the one that the drafter made, so it learns the text alone.
            learnt = (DraftTree.empty(), []) if healing else (tree, path)
            started = time.perf_counter()
            self.request.drafter.commit(*learnt, taken)
            if self._speculator is not None and self._choice.will_ask:
                row = len(pending) + (path[-1] if path else -1)
                self._speculator.note_state(*self._engine.model.state_of(row))
            self.statistics.learn_s += time.perf_counter() - started
        return Chunk(taken, tree.sources, path)


_NOTHING = np.empty(0, np.int32)
