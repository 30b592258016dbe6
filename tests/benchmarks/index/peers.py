"""Other systems' indexes on the same tokens: build time, lookup time, memory.

Each runs in a process of its own, with the arguments NAME FILES CONTEXTS.
A lookup is what a system does to draft at a context: search and choice of at most 64 nodes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.drafting.base import DraftRequest
from tests.benchmarks.index.reader import resident_bytes
from tests.benchmarks.peers.errors import PeerUnavailable

Files = dict[str, NDArray[np.int32]]
Contexts = NDArray[np.int32]

NODES = 64


@dataclass(frozen=True)
class Measured:
    """Seconds to build, seconds of each lookup, bytes by which the process grew that looks up."""

    build_s: float
    lookups: list[float]
    resident: int


def _rest(files: Files, vocabulary: int, contexts: Contexts) -> Measured:
    """One retriever writes the index; another, which looks up, opens it."""
    from tests.benchmarks.peers.rest import start_retriever

    writer, reader = start_retriever(), start_retriever()
    with tempfile.TemporaryDirectory(prefix="redraft-rest-") as folder:
        tokens, index = Path(folder, "tokens"), Path(folder, "index")
        before = reader.resident()
        started = time.perf_counter()
        np.concatenate(list(files.values())).astype(np.int32).tofile(tokens)
        writer.write(str(index), str(tokens), vocabulary)
        reader.open(str(index))
        built = time.perf_counter() - started
        times = reader.timed(contexts.tolist(), NODES)
        return Measured(built, times, reader.resident() - before)


def _suffix_decoding(files: Files, vocabulary: int, contexts: Contexts) -> Measured:
    from tests.benchmarks.peers.suffix_decoding import SuffixDecodingDrafter, SuffixDecodingStore

    before = resident_bytes()[0]
    started = time.perf_counter()
    store = SuffixDecodingStore({})
    store.know(files)
    built = time.perf_counter() - started
    drafter = SuffixDecodingDrafter(store)
    times = []
    for context in contexts:
        drafter.begin(DraftRequest(context))
        started = time.perf_counter()
        drafter.draft(NODES)
        times.append(time.perf_counter() - started)
    return Measured(built, times, resident_bytes()[0] - before)


PEERS: dict[str, Callable[[Files, int, Contexts], Measured]] = {
    "rest": _rest,
    "suffix-decoding": _suffix_decoding,
}


def measure(name: str, files: Path, contexts: Path) -> dict[str, Any]:
    """Build from the files (an ``.npz`` of tokens and lengths), look every context up."""
    with np.load(files) as stored:
        parts = np.split(stored["tokens"], np.cumsum(stored["lengths"])[:-1])
        vocabulary = int(stored["vocabulary"])
    tokens = {str(i): part for i, part in enumerate(parts)}
    try:
        done = PEERS[name](tokens, vocabulary, np.load(contexts))
    except PeerUnavailable as error:
        return {"unavailable": str(error)}
    total = sum(map(len, parts))
    return {
        "tokens": total,
        "build_s": done.build_s,
        "tokens_per_s": total / done.build_s,
        "lookup_us_p50": float(np.percentile(done.lookups, 50) * 1e6),
        "lookup_us_p95": float(np.percentile(done.lookups, 95) * 1e6),
        "resident_mb": done.resident / 1e6,
    }


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
