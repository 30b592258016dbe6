"""SuffixDecoding by its own package (``arctic-inference``), as a drafter.

Prompts stand in the package's local suffix tree, repository and common code in its global one, as
finished responses: so it knows the same text as our datastore.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.drafting.base import DraftRequest
from tests.benchmarks.peers.errors import PeerUnavailable

TREE_DEPTH = 64
REQUEST = "the running request"


class SuffixDecodingStore:
    """One cache of the package, holding common code and the repository of the moment."""

    def __init__(self, common: Mapping[str, TokenArray]) -> None:
        """Raises PeerUnavailable where the package is not installed."""
        try:
            package: Any = importlib.import_module("arctic_inference.suffix_decoding")
        except ImportError as error:
            raise PeerUnavailable(
                f"suffix-decoding needs the package arctic-inference ({error}); see "
                "tests/benchmarks/peers/README.md for how to install it"
            ) from error
        self.cache: Any = package.SuffixDecodingCache(max_tree_depth=TREE_DEPTH)
        self._repository: dict[str, TokenArray] = {}
        for path, tokens in common.items():
            self._add(("common", path), tokens)

    def know(self, files: Mapping[str, TokenArray]) -> None:
        """Bring the repository in line with ``files``, path to int32 [n]."""
        for path in [path for path in self._repository if path not in files]:
            self._remove(path)
        for path, tokens in files.items():
            known = self._repository.get(path)
            if known is not None and np.array_equal(known, tokens):
                continue
            if known is not None:
                self._remove(path)
            self._add(("repository", path), tokens)
            self._repository[path] = tokens

    def start(self, prompt: TokenArray) -> None:
        """Begin a request, forgetting the last one and its response."""
        if REQUEST in self.cache.active_requests:
            self.cache.stop_request(REQUEST)
            self.cache.evict_cached_response(REQUEST)
        self.cache.start_request(REQUEST, np.ascontiguousarray(prompt, np.int32))

    def _add(self, key: tuple[str, str], tokens: TokenArray) -> None:
        self.cache.start_request(key, np.empty(0, np.int32))
        self.cache.add_active_response(key, np.ascontiguousarray(tokens, np.int32))
        self.cache.stop_request(key)

    def _remove(self, path: str) -> None:
        self.cache.evict_cached_response(("repository", path))
        del self._repository[path]


class SuffixDecodingDrafter:
    """Asks the package's ``speculate`` with its published parameters.

    Length at most ``max_spec_factor`` (1) times the match, tokens of at least 0.1 probability.
    """

    name = "suffix-decoding"

    def __init__(self, store: SuffixDecodingStore, *, tree: bool = True) -> None:
        """``tree``: let it draft several branches, which it can and vLLM does not use."""
        self._store = store
        self._tree = tree
        self._end = np.empty(0, np.int32)

    def know(self, files: Mapping[str, TokenArray]) -> None:
        """Repository of the coming request, path to int32 [n]."""
        self._store.know(files)

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        self._store.start(request.prompt)
        self._end = np.array(request.prompt[-TREE_DEPTH:], np.int32)

    def draft(self, max_nodes: int) -> DraftTree:
        """A tree of at most ``max_nodes`` nodes, with the package's own path probabilities."""
        draft = self._store.cache.speculate(
            REQUEST, self._end, max_spec_tokens=max_nodes, use_tree_spec=self._tree
        )
        count = len(draft.token_ids)
        return DraftTree(
            np.array(draft.token_ids, np.int32),
            np.array(draft.parents, np.int32),
            np.array(draft.probs, np.float32),
            np.full(count, Source.REPOSITORY, np.int8),
        )

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The context grew by ``tokens``."""
        new = np.ascontiguousarray(tokens, np.int32)
        self._store.cache.add_active_response(REQUEST, new)
        self._end = np.ascontiguousarray(np.concatenate([self._end, new])[-TREE_DEPTH:])
