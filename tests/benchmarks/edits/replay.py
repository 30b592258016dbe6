"""Edits by replay: the text after the edit stands in for the model's greedy output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from accel.drafting.base import ContinuationIndex, DraftRequest
from tests.benchmarks.cases import EditCase
from tests.benchmarks.completion.replay import PlainDrafter
from tests.benchmarks.edits.cases import in_tokens, reuse_bin
from tests.benchmarks.edits.methods import EditMethod
from tests.benchmarks.measurement import Measurement
from tests.benchmarks.methods import tell_files
from tests.benchmarks.replay import replay

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer


def replay_edits(
    cases: list[EditCase],
    methods: dict[str, EditMethod],
    tokenizer: Tokenizer,
    index: ContinuationIndex | None,
    *,
    max_nodes: int,
    max_tokens: int | None,
    group_of: Callable[[EditCase], str] | None = None,
    done: Callable[[], None] = lambda: None,
) -> Iterator[Measurement]:
    """Every method on every case, each with a drafter that has seen no other. Groups are reuse
    bins unless ``group_of`` says otherwise. The end token counts for all alike."""
    for case in cases:
        edit = in_tokens(tokenizer, case, case.instruction, max_tokens)
        request = DraftRequest(
            edit.prompt.text,
            original=edit.prompt.original_tokens,
            index=index,
        )
        for name, method in methods.items():
            drafter = method.make() or PlainDrafter()
            tell_files(drafter, {})
            started = time.perf_counter()
            statistics = replay(drafter, request, edit.target, max_nodes)
            yield Measurement(
                method=name,
                group=group_of(case) if group_of else reuse_bin(edit.reuse),
                case=case.id,
                statistics=statistics,
                tokens=edit.target.tolist(),
                text_bytes=len(case.after.encode()),
                wall_s=time.perf_counter() - started,
                reuse=edit.reuse,
            )
        done()
