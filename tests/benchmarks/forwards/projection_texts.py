"""Texts that drafts are replayed on for a projection, and what the replays come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from accel.draft_tree import TokenArray
from accel.drafting.base import ContinuationIndex, Drafter, DraftRequest
from accel.planning.planner import DraftPlan
from tests.benchmarks.completion import replay as completion_replay
from tests.benchmarks.completion.replay import Planned, Recorder
from tests.benchmarks.edits import cases as edit_cases
from tests.benchmarks.peers.prompt_lookup import prompt_lookup_drafter
from tests.benchmarks.replay import replay

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer
    from tests.benchmarks.cases import CompletionCase, EditCase
    from tests.benchmarks.datastores import CaseDatastores

BeginText = Callable[[], DraftPlan]

LOOKUP_LONGEST = 2
"""Of the n-grams of llama-cpp-python's lookup."""


@dataclass(frozen=True, slots=True)
class ProjectedText:
    """What a model would write, int32 [n], behind a prompt."""

    request: DraftRequest
    target: TokenArray


@dataclass(frozen=True, slots=True)
class ProjectedTexts:
    """Texts of one kind, and how a drafter for them is made that has seen none."""

    texts: list[ProjectedText]
    make: Callable[[], Drafter]
    tokenizer: Tokenizer

    @property
    def tokens(self) -> int:
        """Of all that is written."""
        return sum(len(text.target) for text in self.texts)

    def tokens_per_forward(self, rows: int) -> float:
        """With trees that fill forwards of ``rows``, the pending token's among them."""
        ran = [replay(self.make(), each.request, each.target, rows - 1) for each in self.texts]
        return sum(each.tokens for each in ran) / sum(each.forwards for each in ran)

    def looked_up_rows(self, draft_tokens: int) -> Counter[int]:
        """How many forwards of how many rows chains of llama.cpp's n-gram lookup take; 0 tokens
        are plain decoding."""
        found: Counter[int] = Counter()
        for text in self.texts:
            if not draft_tokens:
                found[1] += len(text.target)
                continue
            recorder = Recorder(prompt_lookup_drafter(LOOKUP_LONGEST, draft_tokens))
            replay(recorder, text.request, text.target, draft_tokens)
            found.update(size + 1 for size in recorder.sizes)
        return found

    def planned(self, begin: BeginText, most_rows: int, leaves: int | None = None) -> PlannedRun:
        """With trees of so many leaves at most that a planner cuts to what pays. ``begin`` gives
        the plan of the next text."""
        forwards, widths = 0, Counter[int]()
        forwards_s = drafting_s = 0.0
        for text in self.texts:
            plan = begin()
            widths[plan.costs.batch_size] += 1
            planned = Planned(self.make(), plan, self.tokenizer, leaves)
            recorder = Recorder(planned)
            ran = replay(recorder, text.request, text.target, most_rows - 1)
            planned.end(text.target)
            drafting_s += sum(ran.draft_s) + recorder.learn_s
            context = ran.prompt_tokens
            for size, accepted in zip(recorder.sizes, ran.accepted, strict=True):
                forwards_s += plan.costs.seconds(size + 1, context)
                context += accepted + 1
            forwards += ran.forwards
        return PlannedRun(forwards, forwards_s, drafting_s, widths)


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """Forwards, the seconds they would take, and the seconds that drafting took; of how many texts
    the forwards had how many rows, 0 for any number."""

    forwards: int
    forwards_s: float
    drafting_s: float
    widths: Counter[int]


def completions(
    cases: list[CompletionCase],
    datastores: CaseDatastores,
    tokenizer: Tokenizer,
    *,
    left_only: bool,
    max_tokens: int,
) -> Iterator[ProjectedText]:
    """The references of completion cases."""
    for case in cases:
        replayed = completion_replay.in_tokens(
            tokenizer, case, left_only=left_only, max_tokens=max_tokens
        )
        index = cast(ContinuationIndex, datastores.snapshot(case, left_only=left_only))
        request = DraftRequest(replayed.prompt, replayed.suffix, index=index, workspace=case.group)
        yield ProjectedText(request, replayed.target)


def edits(
    cases: list[EditCase], index: ContinuationIndex | None, tokenizer: Tokenizer
) -> Iterator[ProjectedText]:
    """The texts behind edits, with their end tokens."""
    for case in cases:
        edit = edit_cases.in_tokens(tokenizer, case, case.instruction, None)
        request = DraftRequest(
            edit.prompt.text,
            original=edit.prompt.original_tokens,
            index=index,
        )
        yield ProjectedText(request, edit.target)
