"""Prompts of jobs that may come, computed alone."""

from __future__ import annotations

from lsp_server.engine.service import EngineService, never
from lsp_server.shared.contract.jobs import AnyJob
from lsp_server.tasks.steps import finished
from lsp_server.tasks.task import Cancelled


def prefill(service: EngineService, job: AnyJob, cancelled: Cancelled = never) -> int:
    """Compute the prompt of a job; return the tokens that are known then."""
    return finished(service.prefill_steps(job, cancelled), None).prompt_tokens
