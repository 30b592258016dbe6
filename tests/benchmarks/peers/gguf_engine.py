"""What other engines that read a GGUF file have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.execution.statistics import Statistics

CHAINS = (3, 7, 15)
"""Tokens of an engine's lookup: with the pending one they fill 4, 8 or 16 rows."""

Lookups: TypeAlias = Mapping[str, "int | tuple[int, int]"]
"""By what it is called: the ``draft_tokens`` of an engine's ``generate``."""


@dataclass(slots=True)
class PeerAnswer:
    """Generated tokens without the stop token, int32 [n], and what they cost."""

    tokens: TokenArray
    statistics: Statistics


def until_stop(tokens: NDArray[np.integer[Any]], stop_tokens: frozenset[int]) -> TokenArray:
    """The tokens before the first stop token."""
    stops = np.flatnonzero(np.isin(tokens, list(stop_tokens)))
    return tokens[: stops[0] if len(stops) else None].astype(np.int32)


def is_built_here(package: str) -> bool:
    """Whether a package was compiled on this machine, with the instructions that it has: a wheel
    of an index names the oldest system that it runs on."""
    tags = metadata.distribution(package).read_text("WHEEL") or ""
    return "manylinux" not in tags and "musllinux" not in tags
