"""The usage of a request, and log probabilities of tokens, as OpenAI reports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsp_server.shared.contract.jobs import JobResult, Span, TokenLogprob


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


class CompletionLogprobs:
    """The form of ``/v1/completions``, whose offsets go on from piece to piece."""

    def __init__(self) -> None:
        self._offset = 0

    def of(self, tokens: Sequence[Span]) -> dict[str, Any]:
        """Four lists of one length."""
        offsets = []
        chances = _chances(tokens)
        for span in tokens:
            offsets.append(self._offset)
            self._offset += len(span.text)
        return {
            "tokens": [_text(chance.token) for chance in chances],
            "token_logprobs": [chance.logprob for chance in chances],
            "top_logprobs": [
                {_text(token): logprob for token, logprob in chance.likeliest} for chance in chances
            ],
            "text_offset": offsets,
        }


def chat_logprobs(tokens: Sequence[Span]) -> dict[str, Any]:
    """Return the form of ``/v1/chat/completions``."""
    return {
        "content": [
            {
                **_chat_token(chance.token, chance.logprob),
                "top_logprobs": [
                    _chat_token(token, logprob) for token, logprob in chance.likeliest
                ],
            }
            for chance in _chances(tokens)
        ],
        "refusal": None,
    }


def _chances(tokens: Sequence[Span]) -> list[TokenLogprob]:
    return [span.token_logprob for span in tokens if span.token_logprob is not None]


def _chat_token(token: list[int], logprob: float) -> dict[str, Any]:
    return {"token": _text(token), "logprob": logprob, "bytes": token}


def _text(token: list[int]) -> str:
    return bytes(token).decode("utf-8", "replace")
