"""The obvious continuation index: every occurrence of every match length, one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from accel.draft_tree import Source, TokenArray
from accel.drafting.base import Continuations


class BruteIndex:
    """Files of two stores, searched token by token."""

    def __init__(self, repository: Sequence[list[int]], common: Sequence[list[int]]) -> None:
        self.stores = {Source.REPOSITORY: repository, Source.COMMON: common}
        self.lookups = 0

    def occurrences(self, store: Source, context: list[int], depth: int) -> list[tuple[int, list]]:
        """Match length and continuation of every place, longer matches first."""
        actual = []
        for file in self.stores[store]:
            for position in range(1, len(file)):
                length = 0
                while length < min(position, len(context)) and (
                    file[position - 1 - length] == context[-1 - length]
                ):
                    length += 1
                if length:
                    actual.append((length, file[position : position + depth]))
        return sorted(actual, key=lambda match: -match[0])

    def lookup(
        self, context: TokenArray, *, max_match: int = 16, limit: int = 64, depth: int = 16
    ) -> Continuations:
        self.lookups += 1
        rows, lengths, sources = [], [], []
        for store in self.stores:
            known = self.occurrences(store, context.tolist()[-max_match:], depth)
            for length, continuation in known[:limit]:
                rows.append(continuation + [-1] * (depth - len(continuation)))
                lengths.append(length)
                sources.append(int(store))
        order = np.argsort(-np.array(lengths, np.int32), kind="stable")
        return Continuations(
            np.array(rows, np.int32).reshape(-1, depth)[order],
            np.array(lengths, np.int32)[order],
            np.ones(len(rows), np.float32),
            np.array(sources, np.int8)[order],
            np.full(len(rows), -1, np.int32),
        )
