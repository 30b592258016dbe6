"""Interprets an event of another server: text, the end, or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

WORDS: dict[str, Any] = json.loads(Path(__file__).with_name("server_words.json").read_text("utf-8"))
"""What servers call things."""
WHOLE = frozenset(WORDS["whole"])
"""Reasons, as servers write them, after which an answer is whole."""
TOO_LONG = frozenset(WORDS["too long"])


class TextEvent(NamedTuple):
    """Text that came. ``ended``: why nothing follows, as in ``JobResult.stopped_by`` where that
    holds, else in the server's word; empty where the text goes on."""

    text: str
    ended: str = ""


class ErrorEvent(NamedTuple):
    """A server gives up."""

    error: dict[str, Any]


NOTHING = TextEvent("")


def read_event(data: Any, event: str = "message") -> TextEvent | ErrorEvent:
    """One event of ``/infill`` or of OpenAI's routes; events of other kinds say nothing. data: its
    JSON. Raises TypeError, ValueError or AttributeError for what is no such event."""
    if not isinstance(data, dict):
        return NOTHING
    if data.get("error") or event == "error":
        return ErrorEvent(data)
    choices = data.get("choices")
    if choices:
        return _of_choice(choices[0])
    if choices is None and isinstance(data.get("content"), str) and "type" not in data:
        return _of_llama_server(data)
    # The usage, a sign of life, or facts of the provider.
    return NOTHING


def _of_llama_server(data: dict[str, Any]) -> TextEvent:
    """tools/server/README.md of llama.cpp, the answer of ``/completion``."""
    limited = data.get("stop_type") == "limit" or data.get("stopped_limit")
    # In place of a stream the one answer may lack the word that it has ended.
    has_ended = data.get("stop", "stop_type" in data)
    return TextEvent(data["content"], ("length" if limited else "end") if has_ended else "")


def _of_choice(choice: dict[str, Any]) -> TextEvent:
    if error := choice.get("error"):
        return TextEvent(
            "", str(error.get("message", error)) if isinstance(error, dict) else "error"
        )
    message = choice.get("delta") or choice.get("message") or {}
    content = message.get("content") if message else choice.get("text")
    reason = choice.get("finish_reason")
    if message.get("refusal"):
        reason = reason if reason and reason not in WHOLE else "refusal"
    if "message" in choice and "finish_reason" not in choice:
        # A whole document without the word for its end.
        reason = "stop"
    return TextEvent(_text(content), _ended(reason))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return ""
    texts = []
    for item in content:
        if isinstance(item, str):
            texts.append(item)
        elif isinstance(item, dict) and item.get("type", "text") in ("text", "output_text"):
            text = item.get("text", "")
            texts.append(text if isinstance(text, str) else str(text.get("value", "")))
    return "".join(texts)


def _ended(reason: Any) -> str:
    if not reason:
        return ""
    word = str(reason.get("type", "end") if isinstance(reason, dict) else reason).strip()
    if word.lower() in WHOLE:
        return "end"
    return "length" if word.lower() in TOO_LONG else word
