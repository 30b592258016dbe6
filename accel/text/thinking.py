"""Thinking before an answer: how it is switched off, and closed where a template begins
it. Sources: the chat templates of Qwen3, SmolLM3, GLM-4.5, Granite 3, DeepSeek-V3.1, Seed-OSS,
Command A, gpt-oss, Magistral, Kimi, Apertus and the distills of DeepSeek-R1."""

from __future__ import annotations

import re

from accel.text.template import Pieces

_OFF: dict[str, object] = {
    "enable_thinking": False,
    "thinking": False,
    "enable_reasoning": False,
    "reasoning": False,
    "thinking_budget": 0,
}
"""Variables of templates that switch it off."""

_HARMONY = "<|start|>assistant"
_HARMONY_ANSWER = "<|channel|>final<|message|>"
"""gpt-oss says for every message whether it is one of thinking."""

_BLOCKS = (
    *((f"<{name}>", f"</{name}>", "\n\n") for name in ("think", "thinking", "thought")),
    *((f"<{name}>", f"</{name}>", "\n\n") for name in ("reasoning", "seed:think")),
    ("[THINK]", "[/THINK]", ""),
    ("\u25c1think\u25b7", "\u25c1/think\u25b7", ""),
    ("<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>", ""),
    ("<|channel>thought\n", "<channel|>", ""),
    ("<|channel|>analysis<|message|>", "<|end|>", f"{_HARMONY}{_HARMONY_ANSWER}"),
)
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
