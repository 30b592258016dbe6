"""Replay: measure drafts without a model, a reference text standing in for its greedy output."""

from __future__ import annotations

import time

import numpy as np

from accel.draft_tree import TokenArray
from accel.drafting.base import Drafter, DraftRequest
from accel.execution.statistics import Statistics
from tests.draft_trees import accepted_path


def replay(
    drafter: Drafter, request: DraftRequest, reference: TokenArray, max_nodes: int
) -> Statistics:
    """Draft, verify against ``reference`` (int32 [n]), commit, until the reference is spelled out.

    The first token of the reference costs a forward of its own only in so far as nothing was
    drafted for it: the row of the prompt's last token is counted as the first forward.
    """
    statistics = Statistics(prompt_tokens=len(request.prompt))
    started = time.perf_counter()
    drafter.begin(request)
    done = 0
    while done < len(reference):
        draft_started = time.perf_counter()
        tree = drafter.draft(max_nodes)
        statistics.draft_s.append(time.perf_counter() - draft_started)
        rest = reference[done:]
        path = accepted_path(tree, rest)
        own = 0 if path and getattr(drafter, "drops_bonus_now", False) else 1
        tokens = np.asarray(rest[: len(path) + own], np.int32)
        drafter.commit(tree, path, tokens)
        statistics.record(tree, path, len(tokens))
        done += len(tokens)
    statistics.decode_s = time.perf_counter() - started
    return statistics
