"""Completion by replay: the reference stands in for the model's greedy output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from accel.decoding.drafting import Drafting
from accel.draft_tree import DraftTree, TokenArray
from accel.drafting.base import ContinuationIndex, Drafter, DraftRequest
from accel.execution.forwards import alone
from accel.execution.statistics import Statistics
from accel.models.base import BatchKind, Capability
from accel.planning.planner import DraftPlan, Planner
from tests.benchmarks.cases import CompletionCase
from tests.benchmarks.datastores import CaseDatastores, TokenFiles
from tests.benchmarks.measurement import Measurement, Projection
from tests.benchmarks.methods import PLANNED, MakeDrafter, tell_files
from tests.benchmarks.replay import replay

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer

PROMPT_TOKENS = 2048
"""Tokens of text before the cursor that a prompt holds, as in the paper."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """A case in token ids. All int32."""

    prompt: TokenArray
    suffix: TokenArray
    target: TokenArray


class PlainDrafter:
    """Never drafts: plain decoding, in replay."""

    name = "plain"

    def begin(self, request: DraftRequest) -> None:
        """Nothing to forget."""

    def draft(self, max_nodes: int) -> DraftTree:
        """The empty tree."""
        return DraftTree.empty()

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Nothing to learn."""


class Recorder:
    """A drafter that keeps the size of every tree of the drafter within, and how long it learnt."""

    def __init__(self, drafter: Drafter) -> None:
        self.name = drafter.name
        self.sizes: list[int] = []
        self.learn_s = 0.0
        self._drafter = drafter

    def begin(self, request: DraftRequest) -> None:
        """Begin within."""
        self._drafter.begin(request)

    def draft(self, max_nodes: int) -> DraftTree:
        """Draft within and note the size."""
        tree = self._drafter.draft(max_nodes)
        self.sizes.append(len(tree))
        return tree

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Commit within."""
        started = time.perf_counter()
        self._drafter.commit(tree, path, tokens)
        self.learn_s += time.perf_counter() - started


class Planned:
    """A drafter whose trees a planner cuts to what pays, as the engine does."""

    def __init__(
        self,
        drafter: Drafter,
        plan: DraftPlan,
        tokenizer: Tokenizer,
        leaves: int | None = None,
    ) -> None:
        self.name = drafter.name
        self._context = 0
        capability = Capability(BatchKind.TREE, leaves)
        self._drafting = Drafting(*(drafter, plan, capability, tokenizer, Statistics()), plans=True)

    def begin(self, request: DraftRequest) -> None:
        """Begin within."""
        alone(self._drafting.begin(request))
        self._context = len(request.prompt)

    def draft(self, max_nodes: int) -> DraftTree:
        """What pays of the tree within."""
        return alone(self._drafting.tree(1, self._context, max_nodes, b""))

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Commit within and note how far the probabilities were right."""
        self._context += len(tokens)
        self._drafting.learn(tree, path, tokens, 1, self._context)


def in_tokens(
    tokenizer: Tokenizer, case: CompletionCase, *, left_only: bool, max_tokens: int
) -> Replayed:
    """The case as the engine would meet it: the prompt ends at a border between tokens, and the
    target begins with what was typed behind that border."""
    from accel.text.prompts import back_off

    before, typed = back_off(tokenizer, case.prefix)
    return Replayed(
        prompt=tokenizer.encode(before)[-PROMPT_TOKENS:],
        suffix=tokenizer.encode("" if left_only else case.suffix),
        target=tokenizer.encode(typed + case.reference)[:max_tokens],
    )


def replay_cases(
    cases: list[CompletionCase],
    methods: Mapping[str, MakeDrafter],
    datastores: CaseDatastores,
    tokenizer: Tokenizer,
    *,
    max_nodes: int,
    max_tokens: int,
    left_only: bool,
    planner: Planner | None = None,
    done: Callable[[], None] = lambda: None,
) -> Iterator[Measurement]:
    """Every method on every case, methods taking turns case by case. ``done`` after each case.

    With a ``planner`` the time of the forwards is projected, after a further replay with planned
    trees for methods that are ``PLANNED``.
    """
    for case in cases:
        replayed = in_tokens(tokenizer, case, left_only=left_only, max_tokens=max_tokens)
        request = DraftRequest(
            replayed.prompt,
            replayed.suffix,
            index=cast(ContinuationIndex, datastores.snapshot(case, left_only=left_only)),
            workspace=case.group,
        )
        files = datastores.files_of(case, left_only=left_only)

        def begun(make: MakeDrafter, files: TokenFiles = files) -> Drafter:
            drafter = make() or PlainDrafter()
            tell_files(drafter, files)
            return drafter

        for name, make in methods.items():
            recorder = Recorder(begun(make))
            started = time.perf_counter()
            statistics = replay(recorder, request, replayed.target, max_nodes)
            statistics.learn_s = recorder.learn_s
            measurement = Measurement(
                method=name,
                group=case.group,
                case=case.id,
                statistics=statistics,
                tokens=np.asarray(replayed.target).tolist(),
                text_bytes=len(tokenizer.decode_bytes(replayed.target)),
                wall_s=time.perf_counter() - started,
            )
            if planner is not None:
                if name in PLANNED:
                    recorder = Recorder(Planned(begun(make), planner.begin(), tokenizer))
                    statistics = replay(recorder, request, replayed.target, max_nodes)
                    statistics.learn_s = recorder.learn_s
                measurement.projection = project(statistics, recorder.sizes, planner)
            yield measurement
        done()


def project(statistics: Statistics, sizes: list[int], planner: Planner) -> Projection:
    """Time that the replayed forwards, and plain decoding, would take; drafting and learning
    take what they took in the replay."""
    context = statistics.prompt_tokens
    drafted_s = sum(statistics.draft_s) + statistics.learn_s
    plain_s = 0.0
    for size, accepted in zip(sizes, statistics.accepted, strict=True):
        drafted_s += planner.costs.seconds(size + 1, context)
        # The last forward may end inside its path; one token more or less changes nothing here.
        for _ in range(accepted + 1):
            plain_s += planner.costs.seconds(1, context)
            context += 1
    return Projection(plain_s, drafted_s, statistics.forwards, sum(sizes))
