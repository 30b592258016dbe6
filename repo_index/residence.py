"""The share of the segments' mapped files that a process holds resident; it is let go of when the
process idles."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Sequence

import numpy as np

from repo_index.matching import READS, Source
from repo_index.segment import Segment

MAX_MAPPED = 125 << 20
"""Bytes of tokens that lookups may touch in mappings."""
SMALL = 1 << 20
"""Bytes of an order that is mapped like the tokens, being no more than a folio."""


def sources_of(segments: Sequence[Segment]) -> list[Source]:
    """Return where lookups read each segment: the smallest are mapped, as far as ``MAX_MAPPED``
    goes."""
    remaining = MAX_MAPPED
    sources: list[Source] = [np.full(3, -1, np.int64) for _ in segments]
    for i in sorted(range(len(segments)), key=lambda i: segments[i].tokens.nbytes):
        segment = segments[i]
        if segment.file is None or not READS:
            continue
        sources[i][0] = segment.file.descriptor
        if segment.order.nbytes > SMALL:
            sources[i][1] = segment.file.order
        if segment.tokens.nbytes > remaining:
            sources[i][2] = segment.file.tokens
        else:
            remaining -= segment.tokens.nbytes
    return sources


def release(segments: Iterable[Segment]) -> None:
    """Let go of all that is mapped of these segments. They stay usable."""
    for segment in segments:
        if segment.file is not None and hasattr(mmap, "MADV_DONTNEED"):
            segment.file.mapping.madvise(mmap.MADV_DONTNEED)
