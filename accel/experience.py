"""What forwards take in use for what the profile says, t(T) corrected while it is used.

The profile is measured once, in a fast or a slow minute. Here log(taken / profile) is a Gaussian
process over log2(rows), one for forwards by one thread and one for those by two, zero for one row
alone: what all forwards have in common is the machine's pace, which decides nothing about trees.
A Kalman filter keeps it, a batch of forwards at a time (Rasmussen and Williams, chapters 2 and
B.2). Rows that are seldom seen lean to their neighbours, and go back to them by and by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.profile import Costs

BATCH, BLOCK = 64, 16
"""Forwards that are looked at together, and those of them that are taken to share a pace."""

MOVED = 0.05
"""Least change of the logarithm of some cost for which prices are reckoned anew."""

EXPLORED, EXPLORING, HOPE = 128, 16, 2.0
"""Of so many forwards the last few are planned as if rows that were seldom seen were fast, by so
many standard deviations of what is not known of them."""

SAVED = 1024
"""Forwards between two times that the corrections are saved."""

_SPREAD, _REACH, _ALIKE = 0.5, 3.0, 0.5
"""What is expected of a profile: standard deviation of the logarithm of its errors, octaves of rows
over which they are alike, and how far those of one and of two threads are."""

_NOISE, _LEAST_NOISE, _PACE = 0.3, 0.05, 1.0
"""Standard deviations of logarithms: of one forward, of the mean of many, and of a batch's pace."""

_SLOWER, _FASTER = 0.25, 0.7
"""Largest surprises for each forward that they were seen in: a slow one may have been interrupted.
"""

_KEPT = 1 - 1 / 300
"""Of what was learnt, after each further batch: a machine changes."""

_NEW_TOGETHER = 0.3
"""Of the newest batch, in how often two threads share what they are meant to."""


class Experience:
    """Corrections of one profile. Used by the thread that decodes."""

    def __init__(
        self, costs: Costs, saved: Any = None, save: Callable[[Any], None] | None = None
    ) -> None:
        """``saved`` is what ``save`` got in another process: it is begun with if it belongs to
        this profile."""
        self._measured, self._save = costs, save
        curves = costs.seconds[None] if costs.by_threads is None else costs.by_threads
        self._curves: NDArray[np.float64] = curves
        self._prior = _prior(costs.rows, len(curves))
        self._covariance = self._prior
        self.shape = np.zeros(len(self._prior))
        """Logarithm of taken / profile beyond that of one row. float64 [threads * rows]."""
        if len(kept := self._belonging(saved)) == len(self.shape):
            self.shape, self._covariance = kept, self._prior / 4
        self._together = 1.0
        self._nearest = _nearest(costs.rows)
        self._taken: list[tuple[int, int, float, bool]] = []
        self._count = 0
        self.explores = False
        """Whether the next forward is to be planned with ``hopeful``."""
        self.costs = costs
        """The profile as corrected."""
        self.hopeful = costs
        """The same where doubt about seldom seen rows is in their favour."""
        self._apply()

    def took(self, rows: int, context: int, seconds: float | None, shared: bool) -> None:
        """A forward was computed, by two threads if ``shared``; ``seconds`` None where what it
        took is not to be compared."""
        if seconds is not None and rows < len(self._nearest):
            self._taken.append((rows, context, seconds, shared))
            if len(self._taken) == BATCH:
                # One number of rows tells no shape, and plain decoding shall cost nothing.
                if len({taken[0] for taken in self._taken}) > 1:
                    self._learn()
                    self._apply_if_moved()
                self._taken.clear()
        self._count += 1
        self.explores = self._count % EXPLORED >= EXPLORED - EXPLORING
        if self._save is not None and self._count % SAVED == 0:
            self._save(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return {"profile": self._identity(), "shape": self.shape.tolist()}

    def _identity(self) -> float:
        return float(self._measured.seconds.sum())

    def _belonging(self, saved: Any) -> NDArray[np.float64]:
        try:
            shape = np.array(saved["shape"], np.float64)
            if saved["profile"] == self._identity() and np.isfinite(shape).all():
                return shape
        except (KeyError, TypeError, ValueError):
            pass
        return np.empty(0)

    def _learn(self) -> None:
        """One step of the filter by the medians of the batch."""
        columns = np.array(self._taken).T
        rows, shared = columns[0].astype(np.int64), columns[3].astype(np.int64)
        if len(self._curves) == 1:
            shared[:] = 0
        self._note_sharing(rows, shared)
        places = self._nearest[rows] + shared * len(self._measured.rows)
        ratios = np.log(columns[2] / self._expected(rows, columns[1], shared))
        ratios -= self.shape[places]
        blocks = np.arange(BATCH) // BLOCK
        ratios -= np.sort(ratios.reshape(-1, BLOCK))[blocks, BLOCK // 2]
        # Medians of the forwards of a block that had as many rows.
        groups = blocks * len(self.shape) + places
        order = np.lexsort((ratios, groups))
        seen, starts, counts = np.unique(groups[order], return_index=True, return_counts=True)
        ordered = ratios[order]
        medians = (ordered[starts + (counts - 1) // 2] + ordered[starts + counts // 2]) / 2
        surprises, weights = np.zeros((2, BATCH // BLOCK, len(self.shape)))
        surprises.flat[seen] = np.clip(medians, -_FASTER * counts, _SLOWER * counts).clip(-3, 3)
        weights.flat[seen] = 1 / (_NOISE**2 / counts + _LEAST_NOISE**2)
        if (weights > 0).any(0).sum() > 1:
            self._filter(surprises, weights)

    def _filter(self, surprises: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """A step of the filter, in its information form. float64 [blocks, threads * rows]: what was
        seen beyond the shape and the block's pace, which is not known, and 1 / its variance."""
        kept = _KEPT * _KEPT
        covariance = kept * self._covariance + (1 - kept) * self._prior
        paces = weights.sum(1) + 1 / _PACE**2
        weighted = weights * surprises
        information = np.diag(weights.sum(0)) - weights.T @ (weights / paces[:, None])
        told = weighted.sum(0) - weights.T @ (weighted.sum(1) / paces)
        unit = np.eye(len(information))
        self._covariance = np.linalg.solve(unit + covariance @ information, covariance)
        self.shape = _KEPT * self.shape + self._covariance @ told

    def _note_sharing(self, rows: NDArray[np.int64], shared: NDArray[np.int64]) -> None:
        """How often two threads shared a forward that they were meant to."""
        first = self.costs.shared_from
        meant = shared[rows >= first] if first and len(self._curves) > 1 else shared[:0]
        if len(meant):
            self._together += _NEW_TOGETHER * (float(meant.mean()) - self._together)

    def _expected(
        self, rows: NDArray[np.int64], contexts: NDArray[np.float64], shared: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """What the profile says of forwards. float64 [forwards]."""
        known, last = self._measured.contexts, len(self._measured.contexts) - 1
        by_context = np.array(
            [
                [np.interp(rows, self._measured.rows, seconds) for seconds in curve]
                for curve in self._curves
            ]
        )
        steps = np.interp(contexts, known, np.arange(last + 1))
        lower = steps.astype(np.int64)
        part, each = steps - lower, np.arange(len(rows))
        below = by_context[shared, lower, each]
        above = by_context[shared, np.minimum(lower + 1, last), each]
        return np.asarray((1 - part) * below + part * above)

    def _apply_if_moved(self) -> None:
        moved = self._measured.corrected(self._factors(self._likely()), self._together)
        if np.abs(np.log(moved.seconds / self.costs.seconds)).max() >= MOVED:
            self._apply()

    def _apply(self) -> None:
        factors, doubts = self._factors(self._likely()), self._doubts()
        best = self._factors(self.shape - HOPE * doubts)
        self.costs = self._measured.corrected(factors, self._together)
        # By one thread nothing is hoped for where two are to be tried.
        tried = np.concatenate([factors[:1], best[1:]])
        self.hopeful = self._measured.corrected(best, 1.0, tried)

    def _likely(self) -> NDArray[np.float64]:
        """The corrections for planning: slower than the profile says is what is so beyond doubt.
        What is wrongly thought fast is used and found out; what is wrongly thought slow is not."""
        return np.where(self.shape < 0, self.shape, (self.shape - self._doubts()).clip(0))

    def _doubts(self) -> NDArray[np.float64]:
        """Standard deviations of the corrections."""
        return np.asarray(np.sqrt(self._covariance.diagonal().clip(0)))

    def _factors(self, shape: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.exp(shape).reshape(len(self._curves), -1))


def _prior(rows: list[int], threads: int) -> NDArray[np.float64]:
    """Covariance of corrections before anything was seen, where that of one row is zero.
    float64 [threads * rows, threads * rows]."""
    octaves = np.log2(rows)
    alike = np.exp(-np.abs(octaves[:, None] - octaves) / _REACH)
    among = np.full((threads, threads), _ALIKE) + (1 - _ALIKE) * np.eye(threads)
    free = _SPREAD**2 * np.kron(among, alike)
    return np.asarray(free - np.outer(free[:, 0], free[0]) / free[0, 0])


def _nearest(rows: list[int]) -> NDArray[np.int64]:
    """Place in the grid for every number of rows up to the last: the nearest by ratio."""
    octaves = np.log2(np.arange(1, rows[-1] + 1))
    places = np.abs(octaves[:, None] - np.log2(rows)).argmin(1)
    return np.concatenate([[0], places])
