"""Measure how long forwards of a model take on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source
from accel.models.base import BatchKind, Model
from accel.models.batch import chain_batch, tree_batch
from accel.models.costs.forward_costs import ForwardCosts
from operating_system.system import is_windows

ROWS = (1, 2, 3, 4, 5, 6, 8, 9, 12, 13, 16, 17, 24, 32, 48, 64, 96, 128)
"""Kernels compute up to four or eight rows for nearly the price of one: the first row of the next
chunk is a step up, which a line between measured points would hide."""
FEW_ROWS = (1, 4, 5, 8, 9, 12, 13, 16, 17, 64)
"""Of a model that is too slow for all of them."""
CONTEXTS = (256, 2048)
TYPICAL_COSTS = {1: 1.0, 8: 1.7, 64: 9.8, 128: 19.6}
"""Of forwards by rows, in those of one row: of a model of 135 million weights in eight bits, by one
thread with AVX2."""

BETWEEN_S = 3e-4
"""Time between forwards of several threads, as drafting takes it. The others fall asleep."""

WARM_AFTER = 4
"""Forwards of several threads after which all have what they need in their caches."""

FAR_S = 0.2
"""Time for forwards of a number of rows after a long text, of which the fastest counts: one where
it takes longer."""

SHARED_GAIN = 0.9
"""Share of fewer threads' time that more may take at most."""


@runtime_checkable
class Threaded(Protocol):
    """A model whose forwards several threads may share. ``can_share``: whether this machine lets
    them; ``shared_from``: rows from which they do, 0 for never; ``threads``: how many, of
    ``most_threads``."""

    can_share: bool
    shared_from: int
    threads: int
    most_threads: int


def measure(
    model: Model,
    budget_s: float,
    rows: tuple[int, ...] = ROWS,
    contexts: tuple[int, ...] = CONTEXTS,
) -> ForwardCosts:
    """Time forwards by one thread for about ``budget_s`` seconds: rounds over the whole grid, the
    least of each, as interference only adds. Few rows follow many, which leave the cache cold. A
    model too slow for the grid gets a coarser one; ``behind_long_texts`` has the rest."""
    with _computed_by(model, shared_from=0):
        return _measure_as_set(model, budget_s, rows, contexts)


@contextmanager
def _computed_by(model: Model, shared_from: int, threads: int = 1) -> Iterator[None]:
    """Have ``threads`` threads share the forwards of ``model`` from ``shared_from`` rows on, 0 for
    never, and as before afterwards."""
    if not isinstance(model, Threaded):
        yield
        return
    before = model.shared_from, model.threads
    model.shared_from, model.threads = shared_from, threads
    try:
        yield
    finally:
        model.shared_from, model.threads = before


def _measure_as_set(
    model: Model, budget_s: float, rows: tuple[int, ...], contexts: tuple[int, ...]
) -> ForwardCosts:
    contexts = tuple(c for c in contexts if c + max(rows) < model.max_positions) or (16,)
    rows = tuple(count for count in rows if count + contexts[-1] < model.max_positions)
    widths = model.capability.widths
    if widths is not None:
        rows = tuple(count for count in rows if count in widths) or widths
    if model.capability.kind == BatchKind.PLAIN:
        rows, contexts = (1,), (16,)
    slowest = max(_once(model, 1, contexts[0]) for _ in range(2))
    if slowest * len(rows) * len(contexts) * 8 > budget_s:
        rows = tuple(count for count in rows if count in FEW_ROWS) or rows[:1]
        contexts = contexts[:1]
    least = np.full((len(contexts), len(rows)), np.inf)
    timers = [_Timer(model, context, max(rows)) for context in contexts]
    started = time.perf_counter()
    while True:
        for timer, row in zip(timers, least, strict=True):
            for j, count in reversed(list(enumerate(rows))):
                row[j] = min(row[j], timer.seconds(count), timer.seconds(count))
        spent = time.perf_counter() - started
        # Fewer rows that cost more than many are mostly interference: look again.
        if spent > 2 * budget_s or (spent > budget_s and not _falls(least)):
            if widths is None:
                least = _after(least)
            return ForwardCosts(list(contexts), list(rows), least)


def estimate(model: Model) -> ForwardCosts:
    """What forwards may cost until they are measured: two are timed, of one row, and more rows cost
    what they typically do."""
    context = CONTEXTS[0] if CONTEXTS[0] < model.max_positions // 2 else 16
    one = min(_once(model, 1, context) for _ in range(2))
    rows = [count for count in TYPICAL_COSTS if count + context < model.max_positions]
    return ForwardCosts([context], rows, one * np.array([[TYPICAL_COSTS[count] for count in rows]]))


def share(model: Model, costs: ForwardCosts, budget_s: float) -> ForwardCosts:
    """The costs where as many threads as are fastest share forwards of as many rows as pay, in the
    mean of contexts. Threads are timed by the clock on the wall."""
    if not (isinstance(model, Threaded) and model.can_share):
        return costs
    counts, best = costs.rows, costs
    for threads in _more_than_one(model.most_threads):
        shared = shared_seconds(model, threads, costs.contexts, counts, budget_s)
        pays = (shared / best.seconds).mean(0) < SHARED_GAIN
        first = len(counts)
        while first and pays[first - 1]:
            first -= 1
        if first == len(counts):
            break
        seconds = costs.seconds.copy()
        seconds[:, first:] = shared[:, first:]
        best = replace(costs, seconds=seconds, shared_from=counts[first], threads=threads)
    return best if best is not costs else replace(costs, shared_from=0)


def behind_long_texts(model: Model, costs: ForwardCosts) -> ForwardCosts:
    """The costs after the longest context, too, where they are known after a short one alone: for
    the fewest rows and for the most."""
    far, ends = CONTEXTS[-1], (costs.rows[0], costs.rows[-1])
    if len(costs.contexts) > 1 or not costs.contexts[0] < far < model.max_positions - ends[1]:
        return costs
    near = costs.seconds[0]
    added: list[float] = []
    for rows in ends:
        shares = 0 < costs.shared_from <= rows
        timer = _Timer(model, far, rows, time.perf_counter if shares else None)
        found, end = timer.seconds(rows), time.perf_counter() + FAR_S
        while time.perf_counter() < end:
            found = min(found, timer.seconds(rows))
        added.append(max(found - near[costs.rows.index(rows)], *added[-1:], 0.0))
    seconds = np.stack([near, near + np.interp(costs.rows, ends, added)])
    return replace(costs, contexts=[*costs.contexts, far], seconds=seconds)


def _more_than_one(most: int) -> list[int]:
    """2, 4, 8 and so on, and ``most``; nothing where that is one."""
    counts = [1 << power for power in range(1, most.bit_length()) if 1 << power < most]
    return [*counts, most] if most > 1 else []


def shared_seconds(
    model: Model, threads: int, contexts: list[int], counts: list[int], budget_s: float
) -> NDArray[np.float64]:
    """Least seconds of forwards by so many threads, infinite where there was no time to look.
    float64 [contexts, counts]."""
    assert isinstance(model, Threaded)
    least = np.full((len(contexts), len(counts)), np.inf)
    with _computed_by(model, 1, threads):
        timers = [_Timer(model, context, max(counts), time.perf_counter) for context in contexts]
        started = time.perf_counter()
        while time.perf_counter() - started < budget_s:
            for timer, row in zip(timers, least, strict=True):
                for j, count in reversed(list(enumerate(counts))):
                    if time.perf_counter() - started < 4 * budget_s:
                        again = (timer.seconds(count) for _ in range(WARM_AFTER))
                        row[j] = min(row[j], *again)
    return least


def _falls(seconds: NDArray[np.float64]) -> bool:
    return bool((seconds > 1.15 * _after(seconds)).any())


def _after(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least of each count of rows and all larger ones."""
    return np.minimum.accumulate(seconds[:, ::-1], axis=1)[:, ::-1]


def _once(model: Model, count: int, context: int) -> float:
    return _Timer(model, context, count).seconds(count)


class _Timer:
    def __init__(
        self, model: Model, context: int, most: int, clock: Callable[[], float] | None = None
    ) -> None:
        self._model = model
        # On a busy machine long forwards are interrupted and short ones are not, which would bend
        # the curve: the time of this thread alone is not bent. Windows counts it in 15 ms steps.
        own_time = model.device == "cpu" and not is_windows()
        self._clock = clock or (time.thread_time if own_time else time.perf_counter)
        self._between_s = BETWEEN_S if clock else 0.0
        self._cache = model.new_cache(context + most)
        if model.capability.kind > BatchKind.PLAIN:
            model.forward(chain_batch(np.zeros(1, np.int32), 1), [self._cache])
            self._cache.pretend(context)

    def seconds(self, count: int) -> float:
        tree = _tree(count)
        batch = tree_batch(np.zeros(1, np.int32), tree)
        ended = started = self._clock()
        while started < ended + self._between_s:
            started = self._clock()
        assert self._model.forward(batch, [self._cache]).argmax()[0] >= 0
        elapsed = self._clock() - started
        if self._model.capability.kind == BatchKind.PLAIN:
            self._cache.commit([0])
        return elapsed


def _tree(count: int) -> DraftTree:
    tokens = np.arange(1, count, dtype=np.int32) % 50
    tree = DraftTree.chain(tokens, Source.MODEL)
    tree.parents = (np.arange(count - 1, dtype=np.int32) - 2).clip(-1)
    return tree
