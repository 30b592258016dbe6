"""What a request cost, as OpenAI tells it."""

from __future__ import annotations

from typing import Any

from lsp_server.engine.jobs import JobResult


def usage(result: JobResult) -> dict[str, Any]:
    """Tokens of prompt and answer. Of a prediction, accepted tokens are those that the answer took
    from it, and rejected ones those that are not in the answer."""
    accepted = min(result.sources.get("original", 0), result.prediction_tokens)
    return {
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.tokens,
        "total_tokens": result.prompt_tokens + result.tokens,
        "prompt_tokens_details": {"cached_tokens": result.prompt_tokens_reused},
        "completion_tokens_details": {
            "accepted_prediction_tokens": accepted,
            "rejected_prediction_tokens": result.prediction_tokens - accepted,
        },
    }


def finish_reason(result: JobResult) -> str:
    """Why an answer ended."""
    return "length" if result.stopped_by in ("length", "cancelled") else "stop"
