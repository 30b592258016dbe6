"""Fill-in-the-middle prompts as text, for servers that take a prompt and no suffix."""

from __future__ import annotations

import re

from accel.text.families import FAMILIES, Order, PromptFamily

_BLANKS = re.compile(r"[-_ ]+")
ANCESTORS = {"qwen": "Qwen2.5-Coder", "starcoder": "StarCoder2", "deepseekcoder": "DeepSeek-Coder"}
"""Families by a part of the names of models that share their tokens."""


def fim_text(model: str, prefix: str, suffix: str) -> str | None:
    """The prompt of a model by its name; None where no family of that name is known."""
    family = family_named(model)
    if family is None:
        return None
    before, after = family.prefix + prefix, family.suffix + suffix
    middle = family.middle or ""
    if family.order == Order.PREFIX_FIRST:
        return before + after + middle
    return after + before + middle


def family_named(model: str) -> PromptFamily | None:
    """The family whose name stands in the name of a model, as servers give it."""
    wanted = _squeezed(model)
    for family in FAMILIES:
        if _squeezed(family.name) in wanted:
            return family
    for part, name in ANCESTORS.items():
        if part in wanted:
            return next(family for family in FAMILIES if family.name == name)
    return None


def _squeezed(name: str) -> str:
    return _BLANKS.sub("", name).lower()
