"""Other systems' indexes on the same tokens: build time, lookup time, memory.

Each runs in a process of its own: ``python -m lsp_server.bench.index_peers NAME FILES CONTEXTS``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree
from accel.errors import PeerUnavailable
from accel.sources.protocol import DraftRequest
from lsp_server.bench.index_reader import resident_bytes

Files = dict[str, NDArray[np.int32]]


def _rest(files: Files, vocabulary: int) -> tuple[Callable[[NDArray[np.int32]], DraftTree], int]:
    from accel.peers.rest import RestDrafter, RestStore

    store = RestStore({}, vocabulary)
    store.know(files)
    drafter = RestDrafter(store)
    return _drafting(drafter), 64


def _suffix_decoding(
    files: Files, vocabulary: int
) -> tuple[Callable[[NDArray[np.int32]], DraftTree], int]:
    from accel.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

    store = SuffixDecodingStore({})
    store.know(files)
    return _drafting(SuffixDecodingDrafter(store)), 64


def _drafting(drafter: Any) -> Callable[[NDArray[np.int32]], DraftTree]:
    def draft(context: NDArray[np.int32]) -> DraftTree:
        drafter.begin(DraftRequest(context))
        tree: DraftTree = drafter.draft(64)
        return tree

    return draft


PEERS = {"rest": _rest, "suffix-decoding": _suffix_decoding}


def measure(name: str, files: Path, contexts: Path) -> dict[str, Any]:
    """Build from the files (an ``.npz`` of tokens and lengths), draft at every context."""
    with np.load(files) as stored:
        parts = np.split(stored["tokens"], np.cumsum(stored["lengths"])[:-1])
        vocabulary = int(stored["vocabulary"])
    wanted = np.load(contexts)
    tokens = {str(i): part for i, part in enumerate(parts)}
    before = resident_bytes()
    started = time.perf_counter()
    try:
        draft, _ = PEERS[name](tokens, vocabulary)
    except PeerUnavailable as error:
        return {"unavailable": str(error)}
    built = time.perf_counter() - started
    times = []
    for context in wanted:
        started = time.perf_counter()
        draft(context)
        times.append(time.perf_counter() - started)
    total = sum(map(len, parts))
    return {
        "tokens": total,
        "build_s": built,
        "tokens_per_s": total / built,
        "lookup_us_p50": float(np.percentile(times, 50) * 1e6),
        "lookup_us_p95": float(np.percentile(times, 95) * 1e6),
        "resident_mb": (resident_bytes()[0] - before[0]) / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
