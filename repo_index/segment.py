"""An immutable piece of an index: a token stream of files, ordered by reversed context."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repo_index.ordering import (
    DEPTH,
    Order,
    Tokens,
    frozen,
    heads_of,
    separator_of,
    sort_positions,
    stream_type,
)

FACTS = np.dtype(
    [("size", "<i8"), ("modified", "<i8"), ("changed", "<i8"), ("digest", "<u8", (2,))]
)
"""What is known of a file: bytes, modification and change times (ns), hash of its content."""


@dataclass(frozen=True, eq=False)
class SegmentFile:
    """An open and mapped segment file, closed when nothing refers to it any more. tokens, order:
    bytes before these arrays."""

    descriptor: int
    mapping: mmap.mmap
    tokens: int
    order: int

    def __del__(self) -> None:
        os.close(self.descriptor)


@dataclass(frozen=True, eq=False)
class Segment:
    """Files as one token stream between separators, and all its positions in context order. tokens:
    uint16 or uint32 [n]; order: uint32 [m], see :mod:`repo_index.ordering`; starts: uint32 [files];
    paths: one for every file; facts: ``FACTS`` [files]; reasons: why a file that has no tokens is
    left out. All arrays are read-only, made or memory-mapped."""

    tokens: Tokens
    order: Order
    starts: NDArray[np.uint32]
    paths: Sequence[str]
    facts: NDArray[np.void] = field(default_factory=lambda: np.empty(0, FACTS))
    reasons: Sequence[str] = ()
    heads: Tokens = field(default_factory=lambda: np.empty((0, DEPTH), np.uint16))
    """Contexts of some entries of the order (``ordering.heads_of``); may be none."""
    name: str = ""
    """File name in the store, empty for a segment that lives in memory."""
    file: SegmentFile | None = None
    """The file that the arrays lie in."""
    known_parts: NDArray[np.int64] = field(init=False)
    """What lookups have found out, see ``matching.match_ranges``; none where the order is short.
    Memory is taken as it is written to: eight bytes a token of the vocabulary at most."""

    @classmethod
    def from_files(
        cls,
        files: Mapping[str, NDArray[Any]],
        *,
        dtype: type[np.unsignedinteger] | None = None,
        facts: NDArray[np.void] | None = None,
        reasons: Sequence[str] = (),
        threads: int = 1,
        pause: Callable[[], None] = lambda: None,
    ) -> Segment:
        """Concatenate and sort. ``files``: path to token ids (any integer type, >= 0).

        ``dtype``: type of the stream, by default the smallest that holds the ids. ``pause``: see
        :func:`repo_index.ordering.sort_positions`.
        """
        if dtype is None:
            largest = max((int(ids.max()) for ids in files.values() if len(ids)), default=0)
            dtype = stream_type(largest + 1)
        tokens, starts = join_files(list(files.values()), dtype)
        order = sort_positions(tokens, threads=threads, pause=pause)
        return cls(
            frozen(tokens),
            frozen(order),
            frozen(starts),
            tuple(files),
            frozen(np.empty(0, FACTS) if facts is None else facts),
            tuple(reasons),
            frozen(heads_of(tokens, order)),
        )

    def __post_init__(self) -> None:
        # One type for both, so that every function is compiled once.
        if self.heads.dtype != self.tokens.dtype:
            object.__setattr__(self, "heads", frozen(self.heads.astype(self.tokens.dtype)))
        ids = (1 << 16 if self.tokens.itemsize == 2 else 1 << 18) if len(self.heads) else 0
        object.__setattr__(self, "known_parts", np.zeros(ids, np.int64))

    def as_type(self, dtype: type[np.unsignedinteger]) -> Segment:
        """Return the same with tokens of a wider type; itself where they are of that."""
        if self.tokens.dtype == dtype:
            return self
        assert self.file is None, "a store has one type of tokens"
        tokens, heads = (_widened(each, dtype) for each in (self.tokens, self.heads))
        return replace(self, tokens=tokens, heads=heads)

    @property
    def separator(self) -> int:
        """Value between files."""
        return separator_of(self.tokens)

    @cached_property
    def file_ids(self) -> dict[str, int]:
        """Index of each path."""
        return {path: index for index, path in enumerate(self.paths)}

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each file. int64 [files]."""
        ends = np.append(self.starts[1:].astype(np.int64), len(self.tokens))
        return ends - 1 - self.starts.astype(np.int64) if len(self.paths) else ends[:0]

    def file_tokens(self, index: int) -> Tokens:
        """Return token ids of one file."""
        start = int(self.starts[index])
        return self.tokens[start : start + int(self.lengths[index])]


def _widened(tokens: Tokens, dtype: type[np.unsignedinteger]) -> Tokens:
    widened = tokens.astype(dtype)
    widened[tokens == separator_of(tokens)] = np.iinfo(dtype).max
    return frozen(widened)


def join_files(
    files: Sequence[NDArray[Any]], dtype: type[np.unsignedinteger]
) -> tuple[Tokens, NDArray[np.uint32]]:
    """One stream with a separator at both ends and between files, and where each file starts."""
    lengths = np.fromiter((len(ids) for ids in files), np.int64, len(files))
    ends = np.cumsum(lengths + 1)
    starts = (ends - lengths).astype(np.uint32)
    total = int(ends[-1]) + 1 if len(files) else 1
    tokens = np.full(total, np.iinfo(dtype).max, dtype)
    for start, ids in zip(starts, files, strict=True):
        tokens[int(start) : int(start) + len(ids)] = ids
    return tokens, starts
