"""Names by which a token is known to be a control token where its vocabulary does not say so."""

from __future__ import annotations

import re

_NAMES = re.compile(
    r"<\|.*\|>|<｜.*｜>|<unused\d+>|<(?:pad|mask|2mass)>|\[@BOS@\]"
    r"|<fim[-_]\w+>|<\[fim-\w+\]>|\u2581?<(?:PRE|SUF|MID|EOT)>|\[(?:PREFIX|SUFFIX|MIDDLE)\]",
    re.DOTALL,
)
"""Those that llama.cpp's converter knows, and markers of fill-in-the-middle."""


def is_control_name(name: str) -> bool:
    """Return whether an added token called ``name`` is a control token; ``<think>`` is text."""
    return _NAMES.fullmatch(name) is not None
