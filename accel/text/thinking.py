"""Thinking before an answer: how it is switched off, and closed where a template begins
it. Sources: the chat templates of Qwen3, SmolLM3, GLM-4.5, Granite 3, DeepSeek-V3.1, Seed-OSS,
Command A, gpt-oss, Magistral, Kimi, Apertus and the distills of DeepSeek-R1."""

from __future__ import annotations

import json
import re
from pathlib import Path

from accel.text.template import Pieces

_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
_OFF: dict[str, object] = _TABLE["off"]
"""Variables of templates that switch it off."""

_HARMONY = "<|start|>assistant"
_HARMONY_ANSWER = "<|channel|>final<|message|>"
"""gpt-oss says for every message whether it is one of thinking."""

_BLOCKS: list[tuple[str, str, str]] = _TABLE["blocks"]
"""The beginning of thinking, its end, and the text between that and the answer."""


def switched_off(template: str) -> dict[str, object]:
    """Variables by which this template, or none, lets a model answer at once."""
    options = {name: value for name, value in _OFF.items() if re.search(rf"\b{name}\b", template)}
    if "reasoning_effort" in template:
        options["reasoning_effort"] = "none" if re.search(r"['\"]none['\"]", template) else "low"
    return options


def answer_opening(pieces: Pieces) -> str:
    """Return the text between a rendered prompt and an answer that is begun for the model: the end
    of the thinking that the template begins after the last message, if it does."""
    tail = pieces[-1][0] if pieces and not pieces[-1][1] else ""
    offset, begin, end, between = max((tail.rfind(block[0]), *block) for block in _BLOCKS)
    inside = tail[offset + len(begin) :]
    if offset >= 0 and end not in inside:
        # A tag is on a line of its own, as Qwen3 closes it.
        lines = "\n" if inside.endswith("\n") else "\n\n"
        return f"{lines if end.startswith('</') else ''}{end}{between}"
    if tail.endswith(_HARMONY):
        return _HARMONY_ANSWER
    return ""
