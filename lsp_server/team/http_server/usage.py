"""The usage of a request, as OpenAI reports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsp_server.shared.contract.jobs import JobResult


def usage(results: Sequence[JobResult], choices: int = 1) -> dict[str, Any]:
    """Return the usage of a request whose prompts have ``choices`` answers each, one after another.
    Of a prediction, accepted tokens are in the answer, and rejected ones are not."""
    firsts = results[::choices]
    prompt = sum(result.prompt_tokens for result in firsts)
    written = sum(result.tokens for result in results)
    accepted = sum(result.prediction_accepted for result in results)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": written,
        "total_tokens": prompt + written,
        "prompt_tokens_details": {
            "cached_tokens": sum(result.prompt_tokens_reused for result in firsts)
        },
        "completion_tokens_details": {
            "accepted_prediction_tokens": accepted,
            "rejected_prediction_tokens": sum(result.prediction_tokens for result in results)
            - accepted,
        },
    }


def finish_reason(result: JobResult, calls: bool = False) -> str:
    """Return why an answer ended; ``calls``: it calls functions."""
    if calls:
        return "tool_calls"
    return "length" if result.stopped_by in ("length", "cancelled") else "stop"
