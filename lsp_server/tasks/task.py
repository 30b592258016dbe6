"""A task: one text that a model is asked for, from its prompt to how the answer is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lsp_server.shared.contract.jobs import AnyJob, JobResult
from lsp_server.tasks.pool import Key
from lsp_server.tasks.steps import Steps

if TYPE_CHECKING:
    from accel.decoding.request import GenerationRequest
    from accel.text.prompts import Prompt
    from accel.verification.sampling import Sampling

Cancelled = Callable[[], bool]

COMPLETION_NODES = 64
EDIT_NODES = 128

CUT = ("cancelled", "length", "loop", "broken")
"""How an answer ended that is not whole."""


@dataclass(slots=True)
class Task:
    """One text that an engine is asked for. The request has the tokens, the stop rule, the length
    limit and the number of draft nodes; the drafter is the engine's choice."""

    key: Key
    """Its kind, and what shares a KV cache."""
    prompt: Prompt
    request: GenerationRequest
    plain: bool
    """Decode without drafts."""
    copies: bool = False
    """It is drafted as a copy of an original that changes in places, as edits are."""
    read: Callable[[Steps], Steps] = lambda steps: steps
    """The work that writes it, with the result that is made of the text; by default as it is."""

    @property
    def shares(self) -> bool:
        """True if it names no document: such tasks share a key, and each continues the cache that
        is most like its prompt."""
        kind, name = self.key[0], self.key[-1]
        return kind == "edit" or (kind == "generate" and not name)

    def look_up_original(self) -> None:
        """Draft as for any other text: the original is one more text to look things up in."""
        draft = self.request.draft_request
        assert draft is not None
        assert draft.original is not None
        suffix = np.concatenate([draft.original, draft.suffix])
        self.request.draft_request = replace(draft, original=None, suffix=suffix)
        self.copies = False


class TaskList(NamedTuple):
    """The texts that a job asks for, one after another, and their joint result. A text that is cut
    is the last."""

    tasks: Sequence[Task]
    result: Callable[[list[JobResult]], JobResult] = lambda results: results[-1]


def new_task(
    key: Key,
    job: AnyJob,
    prompt: Prompt,
    sampling: Sampling,
    index: Any,
    cancelled: Cancelled,
    nodes: int = COMPLETION_NODES,
) -> Task:
    """Return the task of a job that reads ``prompt``, drafted from ``index``, a snapshot."""
    from accel.decoding.request import GenerationRequest
    from accel.drafting.base import DraftRequest

    request = GenerationRequest(
        prompt=prompt.tokens,
        max_tokens=job.max_tokens,
        draft_request=DraftRequest(
            prompt.text,
            sampling=sampling,
            suffix=prompt.suffix_tokens,
            original=prompt.original_tokens,
            closing=prompt.closing_tokens,
            index=index,
            workspace=job.scope,
            model_prompt=prompt.tokens,
        ),
        sampling=sampling,
        stop_tokens=prompt.stop_tokens,
        required_prefix=prompt.required_prefix,
        max_nodes=nodes,
        cancelled=cancelled,
    )
    return Task(key, prompt, request, job.plain)
