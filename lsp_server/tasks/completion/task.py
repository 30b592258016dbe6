"""A completion as a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.tasks.completion import stopping
from lsp_server.tasks.completion.gate import GateWatch
from lsp_server.tasks.task import Cancelled, Key, Task, new_task

if TYPE_CHECKING:
    from accel.text.prompts import Prompt


def completion_key(job: CompletionJob) -> Key:
    """What shares the caches of completions: a document."""
    return ("complete", job.scope, job.path)


def completion_task(
    job: CompletionJob, prompt: Prompt, index: Any, cancelled: Cancelled, *, fits_line: bool
) -> Task:
    """The text at the cursor."""
    task = new_task(completion_key(job), job, prompt, job.sampling, index, cancelled)
    rule = stopping.completion(job.prefix, one_line=job.single_line, gated=job.gate > 0)
    task.request.stop_rule = stopping.before_other_files(rule, prompt.stop_texts)
    task.fits_line = fits_line
    if job.gate > 0:
        watch = GateWatch(job.gate, cancelled)
        task.request.confidences, task.request.cancelled = True, watch.cancelled
        task.read = watch.over
    return task
