"""Completion by replay: the reference stands in for the model's greedy output."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from accel.draft_tree import DraftTree, TokenArray
from accel.replay import replay
from accel.sources.protocol import ContinuationIndex, Drafter, DraftRequest
from lsp_server.bench.cases import CompletionCase
from lsp_server.bench.datastores import CaseDatastores
from lsp_server.bench.measurement import Measurement
from lsp_server.bench.methods import MakeDrafter

if TYPE_CHECKING:
    from accel.tokenizer import Tokenizer

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
    """A drafter that keeps the size of every tree of the drafter within."""

    def __init__(self, drafter: Drafter) -> None:
        self.name = drafter.name
        self.sizes: list[int] = []
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
        self._drafter.commit(tree, path, tokens)


def in_tokens(
    tokenizer: Tokenizer, case: CompletionCase, *, left_only: bool, max_tokens: int
) -> Replayed:
    """The case as the engine would meet it: the prompt ends at a border between tokens, and the
    target begins with what was typed behind that border."""
    from accel.prompts import back_off

    before, typed = back_off(tokenizer, case.prefix)
    return Replayed(
        prompt=tokenizer.encode(before)[-PROMPT_TOKENS:],
        suffix=tokenizer.encode("" if left_only else case.suffix),
        target=tokenizer.encode(typed + case.reference)[:max_tokens],
    )


def replay_cases(
    cases: list[CompletionCase],
    methods: dict[str, MakeDrafter],
    datastores: CaseDatastores,
    tokenizer: Tokenizer,
    *,
    max_nodes: int,
    max_tokens: int,
    left_only: bool,
    done: Callable[[], None] = lambda: None,
) -> Iterator[Measurement]:
    """Every method on every case, methods taking turns case by case. ``done`` after each case."""
    for case in cases:
        replayed = in_tokens(tokenizer, case, left_only=left_only, max_tokens=max_tokens)
        request = DraftRequest(
            replayed.prompt,
            replayed.suffix,
            index=cast(ContinuationIndex, datastores.snapshot(case, left_only=left_only)),
            workspace=case.group,
        )
        files = datastores.files_of(case, left_only=left_only)
        for name, make in methods.items():
            drafter = make() or PlainDrafter()
            if hasattr(drafter, "know"):
                drafter.know(files)
            recorder = Recorder(drafter)
            started = time.perf_counter()
            statistics = replay(recorder, request, replayed.target, max_nodes)
            yield Measurement(
                method=name,
                group=case.group,
                case=case.id,
                statistics=statistics,
                tokens=np.asarray(replayed.target).tolist(),
                text_bytes=len(tokenizer.decode_bytes(replayed.target)),
                wall_s=time.perf_counter() - started,
                sizes=recorder.sizes,
            )
        done()
