"""Costs of forwards, learnt from those that are run: no forward is computed to be timed.

A cell of the table holds the seconds of a forward by threads, context and rows as a low running
quantile, in units of the *pace* of its number of threads: how long forwards by so many threads took
of late, over their cells, whatever their rows. So a load that comes or goes is followed within some
forwards by all cells at once, and the form of the curve is kept. A cell that was not run follows
its neighbours, first those of the same number of threads.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.models.costs.forward_costs import ForwardCosts

# Measure with `python -m tests.benchmarks learnt-costs --model FILE`.
SHORT_S, SHORT_TRIAL = 0.02, 3
"""A trial of another number of threads is a forward, or so many where one is shorter than this: the
first of these does not count, as threads wake up and their caches are cold."""
SELDOM, OFTEN = 50, 8
"""A forward in so many is one of a trial: where nothing calls for one, and where it does."""
CHANGED, CHANGED_S = 0.2, 0.4
"""Another pace than at the last trial, as a logarithm, calls for one after so many seconds."""
HOPELESS = 4.0
"""An alternative that is expected to take longer by this factor is tried as seldom as this."""

PACE_MEMORY_S, LEAST_PACE_SHARE, MOST_PACE_SHARE = 0.5, 0.15, 0.6
"""Seconds after which a pace is that of new forwards, and the share that one forward has in it."""
MOST_OUTLIER = 3.0
"""A forward counts as longer than expected by this factor at most."""
DOWN, UP = 0.08, 0.05
"""Share of a new forward in a cell that is well known, below and above it: a low quantile."""
MOST_EVIDENCE, STORED_EVIDENCE, FADING = 20.0, 3.0, 0.995
"""Forwards that a cell's evidence counts as at most, those that a stored cell counts as, and what
is left of evidence whenever costs are published."""
NEXT_THREADS, NEXT_CONTEXT, NEXT_ROWS = 0.01, 0.05, 0.05
"""Weight of a neighbouring cell's evidence beside a cell's own."""
NO_EVIDENCE = 1e-9
OPTIMISM = 0.3
"""Forwards that were not run of late are published as so much shorter, as a logarithm, so that
trees of other sizes are tried."""

PUBLISHED_S, PUBLISHED_FORWARDS, PUBLISHED_CHANGE = 0.2, 8, 0.02
"""Costs are published after so many seconds and forwards, where any changed by such a share."""


class LearntCosts:
    """Seconds of one model's forwards by threads, context and rows, and the number of threads for
    the next one. Used by the thread that runs the model."""

    def __init__(
        self,
        first: ForwardCosts,
        threads: Sequence[int] = (1,),
        *,
        cores: int = 1 << 20,
        optimism: float = OPTIMISM,
    ) -> None:
        """Begin with ``first``, an estimate by one thread. ``threads``: ascending numbers to choose
        from, of which those above ``cores`` are expected to gain nothing more."""
        self._optimism = optimism
        self.save: Callable[[], None] = lambda: None
        """Stores what was learnt."""
        self.threads = list(threads)
        self.costs = ForwardCosts(first.contexts, first.rows, first.seconds.copy())
        """What a forward costs by the best number of threads."""
        shares = [1 / min(count, cores) + 0.05 * (count > 1) for count in self.threads]
        self._first = np.log(first.seconds)[None] + np.log(shares)[:, None, None]
        self._corrections = np.zeros_like(self._first)
        self._evidence = np.zeros_like(self._first)
        sizes = self._first.shape
        decays = NEXT_THREADS, NEXT_CONTEXT, NEXT_ROWS
        self._kernels = tuple(
            decay ** abs(np.subtract.outer(np.arange(size), np.arange(size)))
            for decay, size in zip(decays, sizes, strict=True)
        )
        self._pace = [1.0] * len(self.threads)
        self._forwards = 0
        self._used_s = 0.0
        self._seen_s = [0.0] * len(self.threads)
        self._seen_pace = [0.0] * len(self.threads)
        """Logarithm of the best choice's pace when forwards by so many threads were last run."""
        self._seen = [[0] * (_group(1 << 20) + 1) for _ in self.threads]
        """Number of the forward that was the last by so many threads, by groups of rows."""
        self._trial, self._trial_left, self._trial_length = 0, 0, 1
        self._last_trial, self._last_trial_s = 0, 0.0
        self._published = 0, 0.0
        self._chosen, self._is_counted = 0, True
        self._publish()

    def choose(self, rows: int, context: int, *, may_try: bool = False) -> int:
        """Return the number of threads for the next forward, of ``rows`` rows after ``context``
        tokens. With ``may_try`` it may be a trial of another number than the best."""
        self._chosen, self._is_counted = 0, True
        if len(self.threads) > 1:
            expected = [
                pace * self._expected(choice, rows, context)
                for choice, pace in enumerate(self._pace)
            ]
            best = min(range(len(expected)), key=expected.__getitem__)
            self._chosen = self._tried(best, expected, _group(rows)) if may_try else best
        return self.threads[self._chosen]

    def note(self, rows: int, context: int, seconds: float) -> None:
        """Learn that the forward which was chosen for took ``seconds``."""
        choice, most = self._chosen, self.costs.rows[-1]
        if rows > most:
            rows, seconds = most, seconds * most / rows
        self._forwards += 1
        self._used_s += seconds
        if not self._is_counted or seconds <= 0:
            return
        ratio = seconds / self._expected(choice, rows, context)
        pace = self._pace[choice]
        cells = self._cells(rows, context)
        evidence_here = float(sum(weight * self._evidence[choice, i, j] for i, j, weight in cells))
        share = (self._used_s - self._seen_s[choice]) / PACE_MEMORY_S
        share = (
            min(max(share, LEAST_PACE_SHARE), MOST_PACE_SHARE) * evidence_here / (evidence_here + 1)
        )
        # No accident makes a forward much shorter.
        share = MOST_PACE_SHARE if ratio * MOST_OUTLIER < pace else share
        limited = min(ratio, pace * MOST_OUTLIER)
        self._pace[choice] = pace + share * (limited - pace)
        surprise = log(limited / pace)
        for i, j, weight in cells:
            evidence = float(self._evidence[choice, i, j])
            learnt = max(1 / (evidence + 1), UP if surprise > 0 else DOWN) * weight * surprise
            self._table[choice][i][j] *= exp(learnt)
            self._corrections[choice, i, j] = (
                log(self._table[choice][i][j]) - self._first[choice, i, j]
            )
            self._evidence[choice, i, j] = min(evidence + weight, MOST_EVIDENCE)
        self._seen_s[choice] = self._used_s
        self._seen[choice][_group(rows)] = self._forwards
        self._publish_sometimes()

    def to_json(self) -> dict[str, Any]:
        """Return the last learnt costs for the store."""
        seconds = self._smoothed() * np.array(self._pace)[:, None, None]
        grid = {"contexts": self.costs.contexts, "rows": self.costs.rows, "threads": self.threads}
        return grid | {"seconds": seconds.tolist()}

    @classmethod
    def stored(
        cls, data: Any, threads: Sequence[int] | None = None, *, optimism: float = OPTIMISM
    ) -> LearntCosts | None:
        """Return costs that begin with what ``to_json`` gave; None for ``data`` that it did not
        give, or of other ``threads``."""
        if (read := read_costs(data)) is None or (threads is not None and read[0] != list(threads)):
            return None
        counts, contexts, rows, seconds = read
        learnt = cls(ForwardCosts(contexts, rows, seconds[0]), counts, optimism=optimism)
        learnt._first = np.log(seconds)
        learnt._evidence[:] = STORED_EVIDENCE
        learnt._publish()
        return learnt

    def _tried(self, best: int, expected: list[float], group: int) -> int:
        """Return the choice for a forward in which a trial is allowed."""
        if not self._trial_left:
            due = [
                other
                for other in (best - 1, best + 1)
                if 0 <= other < len(expected) and self._is_due(other, best, expected, group)
            ]
            if not due:
                return best
            self._trial = min(due, key=lambda other: self._seen[other][group])
            self._trial_left = self._trial_length = _trial_length(expected[best])
            self._last_trial, self._last_trial_s = self._forwards, self._used_s
            self._seen_pace[self._trial] = log(self._pace[best])
        if self._trial == best:
            self._trial_left = 0
            return best
        self._is_counted = self._trial_left < self._trial_length or self._trial_length == 1
        self._trial_left -= 1
        return self._trial

    def _is_due(self, other: int, best: int, expected: list[float], group: int) -> bool:
        """Return whether a trial of another choice than the best is worth its time now."""
        length = _trial_length(expected[best])
        since, unseen = (
            self._forwards - last for last in (self._last_trial, self._seen[other][group])
        )
        longer = min(max(expected[other] / expected[best], 1.0), HOPELESS)
        if since >= SELDOM * length and unseen >= SELDOM * length * longer:
            return True
        has_changed = abs(log(self._pace[best]) - self._seen_pace[other]) > CHANGED
        since_s = self._used_s - max(self._last_trial_s, self._seen_s[other])
        return has_changed and since >= OFTEN * length and since_s >= CHANGED_S

    def _expected(self, choice: int, rows: int, context: int) -> float:
        """Return the seconds of a forward at a pace of 1."""
        table = self._table[choice]
        return sum(weight * table[i][j] for i, j, weight in self._cells(rows, context))

    def _cells(self, rows: int, context: int) -> list[tuple[int, int, float]]:
        """Return the cells around a forward as indices of context and rows, and their weights."""
        return [
            (i, j, of_context * of_rows)
            for i, of_context in _around(self.costs.contexts, context)
            for j, of_rows in _around(self.costs.rows, rows)
        ]

    def _publish_sometimes(self) -> None:
        forwards, used_s = self._published
        if self._forwards - forwards >= PUBLISHED_FORWARDS and self._used_s - used_s >= PUBLISHED_S:
            self._evidence *= FADING
            self._publish()

    def _publish(self) -> None:
        """Have ``costs`` say what is known now."""
        self._published = self._forwards, self._used_s
        smoothed = self._smoothed()
        self._table: list[list[list[float]]] = smoothed.tolist()
        hopeful = np.exp(-self._optimism / (1 + self._evidence))
        seconds = (smoothed * hopeful * np.array(self._pace)[:, None, None]).min(0)
        if np.abs(np.log(seconds / self.costs.seconds)).max() > PUBLISHED_CHANGE:
            self.costs.seconds = seconds
            self.costs.version += 1

    def _smoothed(self) -> NDArray[np.float64]:
        """Return seconds at a pace of 1, [threads, contexts, rows]: a cell without evidence of its
        own follows its neighbours."""
        weight, weighted = (
            np.einsum("tcr,ta,cb,rd->abd", values, *self._kernels, optimize=True)
            for values in (self._evidence, self._evidence * self._corrections)
        )
        corrections: NDArray[np.float64] = weighted / (weight + NO_EVIDENCE)
        return np.exp(self._first + corrections)


def read_costs(data: Any) -> tuple[list[int], list[int], list[int], NDArray[np.float64]] | None:
    """Return the threads, contexts, rows and seconds of ``data``, which ``to_json`` gave; None for
    ``data`` that it did not give."""
    try:
        counts, contexts, rows = (
            [int(count) for count in data[name]] for name in ("threads", "contexts", "rows")
        )
        seconds = np.array(data["seconds"], np.float64)
    except (KeyError, TypeError, ValueError):
        return None
    is_sound = seconds.shape == (len(counts), len(contexts), len(rows)) and seconds.size
    if not is_sound or not (np.isfinite(seconds) & (seconds > 0)).all():
        return None
    return counts, contexts, rows, seconds


def _trial_length(expected_s: float) -> int:
    """Return the number of forwards of a trial where one takes ``expected_s`` seconds."""
    return SHORT_TRIAL if expected_s < SHORT_S else 1


def _around(grid: list[int], value: int) -> list[tuple[int, float]]:
    """Return the grid points around a value, or the nearest, and their weights."""
    after = bisect_right(grid, value)
    if after == 0 or after == len(grid):
        return [(max(after - 1, 0), 1.0)]
    share = (value - grid[after - 1]) / (grid[after] - grid[after - 1])
    return [(after - 1, 1 - share), (after, share)] if share else [(after - 1, 1.0)]


def _group(rows: int) -> int:
    """Return the group of a number of rows: one, a small tree, a large one, a prompt."""
    return bisect_right((1, 8, 32), rows - 1)
