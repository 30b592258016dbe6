"""The head of the prompts that follow one another while somebody types.

Every key ends the request for the answer behind the last one, within a forward whose rows are lost.
What the prompts of two keys begin with stays, so it is computed by a job of its own, which no key
ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING

from lsp_server.editor.next_edits.prompts import Piece
from lsp_server.shared.contract.calls import Call
from lsp_server.shared.contract.jobs import GenerateJob
from lsp_server.shared.errors import EngineFailed, EngineUnavailable, ModelUnavailable
from repo_index.common_ends import common_ends

if TYPE_CHECKING:
    from lsp_server.engine.client import EngineClient

LEAST_CHARACTERS = 200
"""A shorter head is about one forward of a prompt: it is computed with the rest."""


class PromptHead:
    """The text that the last prompts of one client begin with."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._last: GenerateJob | None = None
        self._pieces: list[Piece] = []
        self._call: Call | None = None
        """What computes it, or did."""

    async def computed(self, engine: EngineClient, job: GenerateJob, priority: int) -> None:
        """Wait until what a job's prompt has in common with the last one is computed. Leaving does
        not end that."""
        pieces = self._common(job)
        self._last = job
        if sum(len(text) for text, _ in pieces) < LEAST_CHARACTERS:
            return
        if self._call is None or pieces != self._pieces:
            self.stop()
            self._pieces = pieces
            self._call = engine.prefill(replace(job, pieces=pieces), self._client, priority)
        # Whoever asks for the rest is told what is wrong.
        with contextlib.suppress(EngineFailed, EngineUnavailable, ModelUnavailable):
            await asyncio.shield(self._call.future)

    def stop(self) -> None:
        """End the head: no prompt goes on with it."""
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def _common(self, job: GenerateJob) -> list[Piece]:
        last = self._last
        if last is None or (last.workspace, last.path) != (job.workspace, job.path):
            return []
        return common_pieces(last.pieces or [], job.pieces or [])


def common_pieces(prompt: list[Piece], other: list[Piece]) -> list[Piece]:
    """Return what two prompts begin with, to the end of a line."""
    count, _ = common_ends(prompt, other)
    same = prompt[:count]
    if count < min(len(prompt), len(other)) and prompt[count][1] and other[count][1]:
        length, _ = common_ends(prompt[count][0], other[count][0])
        end = prompt[count][0].rfind("\n", 0, length) + 1
        same += [(prompt[count][0][:end], True)] if end else []
    return same
