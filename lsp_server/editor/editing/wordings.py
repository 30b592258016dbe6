"""Words of instructions as patterns, which are ``wordings.json``: ``{name}`` stands for another."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

TABLE: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern that takes letters of any case."""
    while (expanded := re.sub(r"\{([a-z]+)\}", lambda name: TABLE[name[1]], pattern)) != pattern:
        pattern = expanded
    return re.compile(pattern, re.IGNORECASE)


def said(name: str, instruction: str) -> re.Match[str] | None:
    """Return the words of the kind ``name`` in an instruction."""
    return compiled(TABLE[name]).search(instruction)
