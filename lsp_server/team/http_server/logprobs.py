"""Log probabilities of tokens in the formats of OpenAI's two routes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lsp_server.shared.contract.jobs import Span, TokenLogprob


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
