"""FastCoder (= CodeSwift), retrieval-accelerated decoding as its paper describes it, selectable.

The rule of Algorithm 1 with these points settled, on which paper and published code are at fault
or disagree:

- retrieval happens at every position, and with probability p at the skip positions (read
  literally, Algorithm 1 retrieves at those alone);
- a search that was skipped is no miss and leaves the missing table alone;
- the missing table is keyed by the last two tokens, the shortest match that is searched: where
  those occur nowhere, nothing longer does;
- a skip position is one where the next token begins with the first non-whitespace character of a
  line, whatever tokens the newline and the indentation are made of;
- every 20 new tokens of output enter the cache; the best candidate path enters it with 16 tokens
  of context and with its rejected tail, as published, but without padding;
- where a store knows more than ``matches`` occurrences, an unbiased sample stands for them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import ContinuationIndex, Continuations, DraftRequest
from tests.benchmarks.published.fastcoder_cache import SequenceCache
from tests.benchmarks.published.fastcoder_trie import Trie
from tests.draft_trees import depths_of


@dataclass(frozen=True, slots=True)
class FastCoderParameters:
    """The paper's parameters (section V-D) and one switch for each component (Table II)."""

    repository: bool = True
    """Use D_r beside D_c (+ datastore D)."""
    cache: bool = True
    """Use the context- and model-preference-aware cache (+ CACHE)."""
    retrieval_strategy: bool = True
    """Use skip positions and the missing table (+ retrieval strategy)."""
    longest_match: int = 16
    shortest_match: int = 2
    continuation: int = 10
    """Tokens read behind every occurrence in a store; from the cache it is all there is."""
    activation_size: int = 50
    output_chunk: int = 20
    cached_context: int = 16
    retrieval_probability: float = 0.5
    """p, the probability to retrieve at a skip position."""
    skip_tokens: frozenset[int] = frozenset()
    """Tokens that end a line, with or without the indentation of the next one."""
    alpha: float = 1.0
    """Weight of an occurrence in the repository."""
    beta: float = 1.0
    """Weight of an occurrence in the common datastore."""
    draft_tokens: int = 64
    matches: int = 500
    seed: int = 0


REST = FastCoderParameters(repository=False, cache=False, retrieval_strategy=False)
"""REST's rule is FastCoder without its components, on the common datastore alone."""


@dataclass(slots=True)
class RetrievalCounts:
    """How often each part of the rule acted since ``begin``."""

    steps: int = 0
    from_cache: int = 0
    from_stores: int = 0
    skipped: int = 0
    known_misses: int = 0
    fruitless: int = 0


class FastCoderDrafter:
    """The rule ``fastcoder``; with ``parameters=REST`` the rule ``rest-rule``.

    The cache begins empty with every request. The missing table lives as long as the index
    snapshot that it speaks of.
    """

    name = "fastcoder"

    def __init__(self, parameters: FastCoderParameters | None = None) -> None:
        self.parameters = parameters or FastCoderParameters()
        self.counts = RetrievalCounts()
        self._index: ContinuationIndex | None = None
        self._missing: set[tuple[int, int]] = set()
        self._context = np.empty(0, np.int32)
        self._length = 0
        self._cache = SequenceCache(self.parameters.activation_size)
        self._uncached = np.empty(0, np.int32)
        self._random = random.Random(self.parameters.seed)

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        if request.index is not self._index:
            self._missing.clear()
        self._index = request.index
        self._context = np.array(request.prompt, np.int32)
        self._length = len(self._context)
        self._cache = SequenceCache(self.parameters.activation_size)
        self._uncached = np.empty(0, np.int32)
        self._random = random.Random(self.parameters.seed)
        self.counts = RetrievalCounts()

    def draft(self, max_nodes: int) -> DraftTree:
        """A tree of at most ``max_nodes`` nodes (and at most the parameters' ``draft_tokens``).

        Probabilities are shares of the retrieved weight, uncalibrated.
        """
        self.counts.steps += 1
        rows, weights, sources = self._retrieve()
        if not len(rows):
            return DraftTree.empty()
        choices = min(max_nodes, self.parameters.draft_tokens)
        return Trie.build(rows, weights, sources).best(choices, max_nodes)

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``; both update rules of the cache are applied."""
        if self.parameters.cache:
            if path:
                known = self.context[-self.parameters.cached_context :]
                self._cache.add(np.concatenate([known, _best_candidate(tree, path)]))
            self._uncached = np.concatenate([self._uncached, tokens])
            while len(self._uncached) >= self.parameters.output_chunk:
                self._cache.add(self._uncached[: self.parameters.output_chunk])
                self._uncached = self._uncached[self.parameters.output_chunk :]
        end = self._length + len(tokens)
        if end > len(self._context):
            self._context = np.concatenate([self.context, np.empty(2 * end, np.int32)])
        self._context[self._length : end] = tokens
        self._length = end

    @property
    def context(self) -> TokenArray:
        """Prompt and output so far. int32 [n]."""
        return self._context[: self._length]

    def _retrieve(self) -> tuple[TokenArray, NDArray[np.float64], NDArray[np.int8]]:
        """Algorithm 1: rows (int32 [r, depth], padded with -1), their weights and sources."""
        if self.parameters.cache and self._cache.active:
            sequences = self._cache.search(
                self.context[-self.parameters.longest_match :],
                self.parameters.longest_match,
                self.parameters.shortest_match,
            )
            if sequences:
                self.counts.from_cache += 1
                return _padded(sequences)
        if self._index is None or self._length < self.parameters.shortest_match:
            return _NOTHING
        suffix = (int(self.context[-2]), int(self.context[-1]))
        if self.parameters.retrieval_strategy:
            if suffix in self._missing:
                self.counts.known_misses += 1
                return _NOTHING
            if (
                suffix[-1] in self.parameters.skip_tokens
                and self._random.random() >= self.parameters.retrieval_probability
            ):
                self.counts.skipped += 1
                return _NOTHING
        rows, weights, sources = self._search_stores(self._index)
        if len(rows):
            self.counts.from_stores += 1
        else:
            self.counts.fruitless += 1
            if self.parameters.retrieval_strategy:
                self._missing.add(suffix)
        return rows, weights, sources

    def _search_stores(
        self, index: ContinuationIndex
    ) -> tuple[TokenArray, NDArray[np.float64], NDArray[np.int8]]:
        """R_r and R_c, each at its own longest match. One compiled lookup searches both stores."""
        found = index.lookup(
            self.context[-self.parameters.longest_match :],
            max_match=self.parameters.longest_match,
            limit=self.parameters.matches,
            depth=self.parameters.continuation,
        )
        common = found.sources == Source.COMMON
        chosen = self._longest(found, common)
        if self.parameters.repository:
            chosen = np.concatenate([self._longest(found, ~common), chosen])
        weights = np.where(common[chosen], self.parameters.beta, self.parameters.alpha)
        return found.tokens[chosen], weights * found.counts[chosen], found.sources[chosen]

    def _longest(self, found: Continuations, in_store: NDArray[np.bool_]) -> NDArray[np.int64]:
        rows = np.flatnonzero(in_store & (found.lengths >= self.parameters.shortest_match))
        if not len(rows):
            return rows
        return rows[found.lengths[rows] == found.lengths[rows].max()]


_NOTHING = np.empty((0, 0), np.int32), np.empty(0, np.float64), np.empty(0, np.int8)


def _padded(
    sequences: list[TokenArray],
) -> tuple[TokenArray, NDArray[np.float64], NDArray[np.int8]]:
    """Sequences from the cache as rows of weight 1."""
    rows = np.full((len(sequences), max(map(len, sequences))), -1, np.int32)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows, np.ones(len(rows)), np.full(len(rows), Source.HISTORY, np.int8)


def _best_candidate(tree: DraftTree, path: list[int]) -> TokenArray:
    """The accepted path, extended to the end of its longest branch. int32 [n]."""
    depths = depths_of(tree)
    below = np.zeros(len(tree), np.bool_)
    below[path[-1]] = True
    for node in range(path[-1] + 1, len(tree)):
        below[node] = tree.parents[node] >= 0 and below[tree.parents[node]]
    node = int(np.argmax(np.where(below, depths, 0)))
    tokens: list[int] = []
    while node >= 0:
        tokens.append(int(tree.tokens[node]))
        node = int(tree.parents[node])
    return np.array(tokens[::-1], np.int32)
