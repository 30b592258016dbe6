"""Shapes of access tokens, as their issuers document them."""

from __future__ import annotations

import json
import re
from pathlib import Path

_SHAPES: dict[str, list[tuple[str, int, str]]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)
TOKENS = {
    mark: (before, re.compile(pattern))
    for shapes in _SHAPES.values()
    for mark, before, pattern in shapes
}
"""What a token is known by, how many characters may be before that, and its whole form."""

KEY_BLOCKS = {
    "PRIVATE KEY": re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"),
    "PuTTY-User-Key-File": re.compile(r"(PuTTY)-User-Key-File-\d"),
    "LS0tLS1CRUdJTi": re.compile(
        r"(LS)0tLS1CRUdJTi[A-Za-z0-9+/]{0,40}(?:UFJJVkFURSBLRVkt|BSSVZBVEUgS0VZL|QUklWQVRFIEtFWS)"
    ),
}
"""How private keys begin or end, as they are and in base 64; the key lies on the inner side."""

PASSWORDS = {
    "machine": (0, re.compile(r"machine\s+\S+\s+login\s+\S+\s+password\s+(\S{6,})", re.I)),
    "bearer ": (0, re.compile(r"bearer\s+([A-Za-z0-9+/_=.~-]{20,})", re.I)),
    "basic ": (0, re.compile(r"basic\s+([A-Za-z0-9+/]{16,}={0,2})", re.I)),
    "_auth": (0, re.compile(r"_auth\s*=\s*\"?([A-Za-z0-9+/]{12,}={0,2})", re.I)),
    '"auth"': (0, re.compile(r"\"auth\"\s*:\s*\"([A-Za-z0-9+/]{12,}={0,2})\"", re.I)),
    "-key-data": (0, re.compile(r"-key-data\"?:\s*\"?([A-Za-z0-9+/]{100,}={0,2})", re.I)),
    **{
        mark: (
            200,
            re.compile(
                r"\b(?:user(?: id|name)?|uid|server|host|data source)\s*=[^\n]{1,160};\s*"
                r"(?:password|pwd)\s*=\s*([^;\"'\s{}$<>%]{6,})(?=[;\"'\s]|$)",
                re.I,
            ),
        )
        for mark in ("password=", "pwd=")
    },
}
"""Small letters that a login is known by, how many characters may be before them, and its form;
the group is what must stay secret."""
