"""Shapes of access tokens, as their issuers document them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_SHAPES: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
TOKENS, PASSWORDS = (
    {mark: (before, re.compile(pattern)) for rows in groups for mark, before, pattern in rows}
    for groups in (_SHAPES["tokens"].values(), [_SHAPES["passwords"]])
)
"""What a token is known by, and in small letters a login; how many characters may be before that,
and its whole form. The group is what must stay secret."""
KEY_BLOCKS = {mark: re.compile(pattern) for mark, pattern in _SHAPES["key blocks"]}
"""How private keys begin or end, as they are and in base 64; the key lies on the inner side."""
