"""How long a forward takes by rows and context, t(T), measured on this machine."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source
from accel.model import Capability, Model
from accel.rows import chain_rows, tree_rows

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
CONTEXTS = (256, 2048)

BETWEEN_S = 3e-4
"""Time between forwards of two threads, as drafting takes it. The second thread stands by."""

WARM_AFTER = 4
"""Forwards of two threads after which both have what they need in their caches."""

SHARED_GAIN = 0.9
"""Share of one thread's time that two may take at most."""

MOST_LOOKS = 8
"""Starts at which costs are measured. What else runs on a machine may hold rows up for as long as a
look takes: with costs of such a moment, 295 instead of 229 us for three rows, drafts were too
small, and texts that hardly repeat were written 1.36 instead of 1.48 times as fast as plainly. One
look counts as a whole: one row is lucky at times, and its least beside that of others misleads."""

FEW_ROWS = 16
"""Rows that trees of fast models have mostly."""

STRAIGHT_ROWS = 8
"""Rows up to which costs have no bump: no more than a tile has, where kernels compute tiles. A bump
of 10 us at the second row, of 250, takes a sixth of the nodes drafted where little repeats."""

AGAIN_S, LONGEST_ROUND_S = 0.5, 0.1
"""What a further look takes, and forwards over the whole grid for which there is none: where they
take longer their costs are bent less, and a start would wait for seconds."""


@dataclass(slots=True)
class Costs:
    """Seconds of a forward. seconds: float64 [contexts, rows] at the grid points.

    ``shared_from``: rows from which two threads share it, 0 for never. ``was_busy``: other
    programs had the cores meanwhile, so that two threads could not show what they bring.
    ``looks``: at how many starts they were measured, of which this was the fastest.
    """

    contexts: list[int]
    rows: list[int]
    seconds: NDArray[np.float64]
    shared_from: int = 0
    was_busy: bool = False
    looks: int = 1

    @property
    def want_a_look(self) -> bool:
        """Whether to measure again would tell more, and is soon done."""
        return self.looks < MOST_LOOKS and float(self.seconds.sum()) < LONGEST_ROUND_S

    def by_rows(self, context: int, limit: int) -> NDArray[np.float64]:
        """Seconds for 0 to ``limit`` rows after ``context`` tokens; index 0 is not used.

        Between grid points, and beyond the last, costs are linear. What few rows take more than a
        line between fewer and more of them is interference.
        """
        contexts = np.array(self.contexts, np.float64)
        place = min(max(float(context), contexts[0]), contexts[-1])
        at = np.array([np.interp(place, contexts, column) for column in self.seconds.T])
        counts = np.arange(limit + 1)
        known = np.array(self.rows, np.float64)
        costs = np.interp(counts, known, at)
        if limit > known[-1] and len(known) > 1:
            slope = max((at[-1] - at[-2]) / (known[-1] - known[-2]), 0.0)
            beyond = counts > known[-1]
            costs[beyond] = at[-1] + slope * (counts[beyond] - known[-1])
        few = slice(1, STRAIGHT_ROWS + 1)
        costs[few] = _below_lines(costs[few].tolist())
        return costs

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return {
            "contexts": self.contexts,
            "rows": self.rows,
            "seconds": self.seconds.tolist(),
            "shared_from": self.shared_from,
            "was_busy": self.was_busy,
            "looks": self.looks,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Costs:
        """Raises KeyError, TypeError or ValueError for what ``to_json`` did not write."""
        costs = cls(
            [int(context) for context in data["contexts"]],
            [int(count) for count in data["rows"]],
            np.array(data["seconds"], np.float64),
            int(data["shared_from"]),
            bool(data["was_busy"]),
            int(data["looks"]),
        )
        if costs.seconds.shape != (len(costs.contexts), len(costs.rows)):
            raise ValueError("costs of another shape than their grid")
        if not (costs.rows and costs.contexts and (costs.seconds > 0).all()):
            raise ValueError("costs without a grid, or not above zero")
        return costs


def measure(
    model: Model,
    budget_s: float,
    rows: tuple[int, ...] = ROWS,
    contexts: tuple[int, ...] = CONTEXTS,
) -> Costs:
    """Time forwards for about ``budget_s`` seconds: rounds over the whole grid, the least of each.

    The least is what the machine can do; interference only adds. Few rows follow many: behind a
    wide forward the first five narrow ones take up to twice their time, since others' data stands
    in the shared cache by then. A model too slow for the grid gets a coarser one.
    """
    contexts = tuple(c for c in contexts if c + max(rows) < model.max_positions) or (16,)
    rows = tuple(count for count in rows if count + contexts[-1] < model.max_positions)
    if model.capability == Capability.PLAIN:
        rows, contexts = (1,), (16,)
    slowest = max(_once(model, 1, contexts[0]) for _ in range(2))
    if slowest * len(rows) * len(contexts) * 8 > budget_s:
        rows = tuple(count for count in rows if count in (1, 4, 16, 64)) or rows[:1]
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
            if not model.has_fixed_shapes:
                least = _after(least)
            return Costs(list(contexts), list(rows), least)


def share(model: Model, costs: Costs, budget_s: float) -> Costs:
    """The costs where two threads share forwards of as many rows as pay, in the mean of contexts.

    Two threads are timed by the clock on the wall, since what a busy machine takes from one of
    them is paid for.
    """
    if not model.can_share:
        return costs
    counts = costs.rows
    both = shared_seconds(model, costs.contexts, counts, budget_s)
    pays = (both / costs.seconds).mean(0) < SHARED_GAIN
    first = len(counts)
    while first and pays[first - 1]:
        first -= 1
    if first == len(counts):
        return replace(costs, shared_from=0)
    seconds = costs.seconds.copy()
    seconds[:, first:] = both[:, first:]
    return replace(costs, seconds=seconds, shared_from=counts[first])


def look_again(model: Model, costs: Costs, budget_s: float = AGAIN_S) -> Costs:
    """Costs measured earlier, or now where forwards take less in the mean. Half of the time is for
    few rows, of which many forwards are timed in a moment."""
    now = np.full(costs.seconds.shape, np.inf)
    for most in (FEW_ROWS, costs.rows[-1]):
        counts = [count for count in costs.rows if count <= most]
        looked_at = now[:, : len(counts)]
        np.minimum(looked_at, _seconds_now(model, costs, counts, budget_s / 2), out=looked_at)
    now = np.where(now < np.inf, now, costs.seconds)
    is_faster = float((now / costs.seconds).mean()) < 1
    return replace(costs, seconds=now if is_faster else costs.seconds, looks=costs.looks + 1)


def _seconds_now(
    model: Model, costs: Costs, counts: list[int], budget_s: float
) -> NDArray[np.float64]:
    """Least seconds of forwards of the first ``counts`` of costs, infinite where there was no time
    to look. float64 [contexts, counts]."""
    if costs.shared_from and model.can_share:
        seconds = shared_seconds(model, costs.contexts, counts, budget_s)
        seconds[:, : costs.rows.index(costs.shared_from)] = np.inf
        return seconds
    now = measure(model, budget_s, tuple(counts), tuple(costs.contexts))
    is_whole = (now.contexts, now.rows) == (costs.contexts, counts)
    return now.seconds if is_whole else np.full((len(costs.contexts), len(counts)), np.inf)


def shared_seconds(
    model: Model, contexts: list[int], counts: list[int], budget_s: float
) -> NDArray[np.float64]:
    """Least seconds of forwards by two threads, infinite where there was no time to look. float64
    [contexts, counts]."""
    before, model.shared_from = model.shared_from, 1
    model.shares_patiently(True)
    least = np.full((len(contexts), len(counts)), np.inf)
    try:
        timers = [_Timer(model, context, max(counts), time.perf_counter) for context in contexts]
        started = time.perf_counter()
        while time.perf_counter() - started < budget_s:
            for timer, row in zip(timers, least, strict=True):
                for j, count in reversed(list(enumerate(counts))):
                    if time.perf_counter() - started < 4 * budget_s:
                        again = (timer.seconds(count) for _ in range(WARM_AFTER))
                        row[j] = min(row[j], *again)
    finally:
        model.shared_from = before
        model.shares_patiently(False)
    return least


def _below_lines(seconds: list[float]) -> list[float]:
    """Each number, or what a line between two others has in its place where that is less."""
    least = list(seconds)
    for first, low in enumerate(seconds):
        for last in range(first + 2, len(seconds)):
            slope = (seconds[last] - low) / (last - first)
            for place in range(first + 1, last):
                least[place] = min(least[place], low + slope * (place - first))
    return least


def _falls(seconds: NDArray[np.float64]) -> bool:
    """Whether some count of rows is clearly slower than a larger one."""
    return bool((seconds > 1.15 * _after(seconds)).any())


def _after(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The least of each count of rows and all larger ones."""
    return np.minimum.accumulate(seconds[:, ::-1], axis=1)[:, ::-1]


def _once(model: Model, count: int, context: int) -> float:
    return _Timer(model, context, count).seconds(count)


class _Timer:
    """Times forwards behind a context of zeros."""

    def __init__(
        self, model: Model, context: int, most: int, clock: Callable[[], float] | None = None
    ) -> None:
        self._model = model
        # On a busy machine long forwards are interrupted and short ones are not, which would bend
        # the curve: the time of this thread alone is not bent. Windows counts it in 15 ms steps.
        own_time = model.device.type == "cpu" and os.name == "posix"
        self._clock = clock or (time.thread_time if own_time else time.perf_counter)
        self._between_s = BETWEEN_S if clock else 0.0
        self._cache = model.new_cache(context + most)
        with torch.inference_mode():
            if model.capability == Capability.PLAIN:
                return
            model.forward(chain_rows(np.zeros(1, np.int32), 1), self._cache)
            for buffer in self._cache.buffers:
                buffer.zero_()
            self._cache.length = context

    def seconds(self, count: int) -> float:
        tree = _tree(count)
        rows = tree_rows(np.zeros(1, np.int32), tree)
        if self._model.device.type == "cuda":
            torch.cuda.synchronize(self._model.device)
        ended = started = self._clock()
        while started < ended + self._between_s:
            started = self._clock()
        with torch.inference_mode():
            if self._model.verifies:
                self._model.verify(rows, tree, self._cache)
            else:
                best(self._model.forward(rows, self._cache))
        elapsed = self._clock() - started
        if self._model.capability == Capability.PLAIN:
            self._cache.keep([0])
        return elapsed


def _tree(count: int) -> DraftTree:
    """The tree of ``count`` rows, its root's among them."""
    tokens = np.arange(1, count, dtype=np.int32) % 50
    tree = DraftTree.chain(tokens, Source.MODEL)
    tree.parents = (np.arange(count - 1, dtype=np.int32) - 2).clip(-1)
    return tree


def best(logits: torch.Tensor) -> list[int]:
    """The most probable token of every row.

    On the CPU NumPy's argmax is up to thirty times as fast as torch's: 32 bf16 rows of 8,192
    860 -> 30 us.
    """
    if logits.device.type == "cpu":
        found: list[int] = logits.float().numpy().argmax(-1).tolist()
        return found
    return logits.argmax(-1).tolist()


def main() -> None:
    """Print milliseconds of forwards of the embedded model by rows, by one thread and by two.

    ``python -m accel.profile [fp32|bf16]``
    """
    from accel.compiled_llama import CompiledLlama
    from accel.loading import DEFAULT_MODEL, load_module

    torch.set_num_threads(1)
    for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
        if name not in (sys.argv[1:] or [name]):
            continue
        model = CompiledLlama.from_module(
            load_module(DEFAULT_MODEL, dtype, torch.device("cpu"), "eager")
        )
        assert model is not None
        costs = measure(model, 3.0)
        both = shared_seconds(model, costs.contexts, costs.rows, 3.0)
        chosen = share(model, costs, 1.0).shared_from
        print(f"{name}: two threads from {chosen} rows on (0: never)")
        print("context  rows  one thread  two, by the wall  of one row  two of one row")
        for context, alone, shared in zip(costs.contexts, costs.seconds, both, strict=True):
            for count, one, two in zip(costs.rows, alone, shared, strict=True):
                ratios = one / alone[0], two / alone[0]
                print(
                    f"{context:7} {count:5} {one * 1e3:11.3f} {two * 1e3:17.3f}"
                    f" {ratios[0]:11.2f} {ratios[1]:15.2f}"
                )


if __name__ == "__main__":
    main()
