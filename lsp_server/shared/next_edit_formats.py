"""Names of the formats in which models are asked for next edits."""

from __future__ import annotations

NEXT_EDIT_FORMATS = (
    "redraft",
    "redraft-piped",
    "sweep-a",
    "sweep-b",
    "zeta-1",
    "zeta-2",
    "zeta-2.1",
)
