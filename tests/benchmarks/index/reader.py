"""A process that maps datastores and looks up, as an engine does: its times and its memory.

Its arguments: STORE COMMON TOKENIZER_HASH VOCABULARY CONTEXTS.npy
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from repo_index.datastore import Datastore, warm_up_changes, warm_up_lookups

LOOKUPS_PER_REQUEST = 20


def resident_bytes() -> tuple[int, int]:
    """Resident memory of this process: all of it, and what is not backed by files."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    whole, anonymous = (int(fields[name].split()[0]) << 10 for name in ("VmRSS", "RssAnon"))
    return whole, anonymous


def measure(
    store: Path, common: Path | None, tokenizer_hash: str, vocabulary: int, contexts: Path
) -> dict[str, Any]:
    """Open, look every context up twice (the first time from a cold map), report."""
    wanted = np.load(contexts)
    warm_up_lookups(vocabulary)
    warm_up_changes(vocabulary)
    before = resident_bytes()
    started = time.perf_counter()
    datastore = Datastore(store, tokenizer_hash, common=common)
    opened = time.perf_counter() - started
    times, processor = np.empty((2, len(wanted))), np.empty(len(wanted))
    rows = 0
    highest = before
    for turn in range(2):
        for i, context in enumerate(wanted):
            if i % LOOKUPS_PER_REQUEST == 0:
                snapshot = datastore.snapshot()
            cpu = time.thread_time()
            started = time.perf_counter()
            rows += len(snapshot.lookup(context))
            times[turn, i] = time.perf_counter() - started
            processor[i] = time.thread_time() - cpu
            highest = max(highest, resident_bytes())
    datastore.release()
    idle = resident_bytes()
    first, second = times * 1e6
    return {
        "lookup_us_p50": float(np.percentile(second, 50)),
        "lookup_us_p95": float(np.percentile(second, 95)),
        "lookup_us_p99": float(np.percentile(second, 99)),
        # By the thread's own clock, which a busy machine lengthens less.
        "lookup_cpu_us_p50": float(np.percentile(processor * 1e6, 50)),
        "lookup_cpu_us_p95": float(np.percentile(processor * 1e6, 95)),
        "first_lookup_us_p95": float(np.percentile(first, 95)),
        "rows_mean": rows / (2 * len(wanted)),
        "open_s": opened,
        "tokens": sum(
            len(part.segment.tokens) - len(part.segment.paths) - 1 for part in snapshot.parts
        ),
        "segments": len(snapshot.parts),
        "resident_mb": (highest[0] - before[0]) / 1e6,
        "resident_private_mb": (highest[1] - before[1]) / 1e6,
        "resident_idle_mb": (idle[0] - before[0]) / 1e6,
        "problems": datastore.problems,
    }


if __name__ == "__main__":
    store, common, digest, vocabulary, contexts = sys.argv[1:]
    result = measure(
        Path(store), Path(common) if common else None, digest, int(vocabulary), Path(contexts)
    )
    print(json.dumps(result))
