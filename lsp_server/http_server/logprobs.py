"""How likely tokens were, in the forms of OpenAI's two routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsp_server.engine.jobs import TokenSpan


class CompletionLogprobs:
    """The form of ``/v1/completions``, whose offsets go on from piece to piece."""

    def __init__(self) -> None:
        self._offset = 0

    def of(self, tokens: Sequence[TokenSpan]) -> dict[str, Any]:
        """Four lists of one length."""
        offsets = []
        for span in tokens:
            offsets.append(self._offset)
            self._offset += len(span.text)
        return {
            "tokens": [_text(span.chance.token) for span in tokens],
            "token_logprobs": [span.chance.logprob for span in tokens],
            "top_logprobs": [
                {_text(token): logprob for token, logprob in span.chance.likeliest}
                for span in tokens
            ],
            "text_offset": offsets,
        }


def chat_logprobs(tokens: Sequence[TokenSpan]) -> dict[str, Any]:
    """The form of ``/v1/chat/completions``."""
    return {
        "content": [
            {
                **_chat_token(span.chance.token, span.chance.logprob),
                "top_logprobs": [
                    _chat_token(token, logprob) for token, logprob in span.chance.likeliest
                ],
            }
            for span in tokens
        ],
        "refusal": None,
    }


def _chat_token(token: list[int], logprob: float) -> dict[str, Any]:
    return {"token": _text(token), "logprob": logprob, "bytes": token}


def _text(token: list[int]) -> str:
    return bytes(token).decode("utf-8", "replace")
