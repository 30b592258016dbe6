"""Costs of steps by their number of rows, and the prefix of a draft tree that is worth them: that
with the largest (1 + sum P) / (t(|S| + pending) + overhead) (as Sequoia and TurboSpec)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree
from accel.drafting.base import VerifyCosts
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.step_overheads import NODE_S
from accel.native.numba_cache import compiled

_MOST_KNOWN = 4096
"""Costs that are remembered."""

CONTEXT_STEP = 256
"""Contexts are rounded to this, so that few tables are made."""


@dataclass(slots=True)
class Company:
    """Requests that one forward computes, with the rows of all."""

    requests: int = 1
    rows: int = 1

    @property
    def others(self) -> int:
        """Rows of all but one of them."""
        return self.rows * (self.requests - 1) // self.requests


ALONE = Company()


class CostTable:
    """Costs of one model's forwards, padded to the batch sizes that it computes fast."""

    def __init__(
        self, costs: ForwardCosts, limit: int = 320, *, widths: tuple[int, ...] | None = None
    ) -> None:
        """limit: the most rows of a forward; widths: see ``models.base.Capability``."""
        self._costs, self._limit, self._widths = costs, limit, widths
        self._version = costs.version
        self._tables: dict[int, tuple[NDArray[np.float64], NDArray[np.int64]]] = {}
        self._verify_costs: dict[
            tuple[int, int, float, int, int], tuple[NDArray[np.float64], NDArray[np.float64]]
        ] = {}

    @property
    def batch_size(self) -> int:
        """Rows of every forward, with drafts or without; 0 for any number."""
        return self._widths[0] if self._widths and len(self._widths) == 1 else 0

    def seconds(self, rows: int, context: int) -> float:
        """Return the seconds of a forward of ``rows`` rows after ``context`` tokens, padded to the
        fastest number."""
        return float(self._table(context)[0][min(rows, self._limit)])

    def share_seconds(self, rows: int, context: int, company: Company = ALONE) -> float:
        """Return a request's share of a forward in which it has ``rows`` rows: the cost of these
        beside those of the others, and its share of the cost of a forward with any rows."""
        others = min(company.others, self._limit // 2)
        if not others:
            return self.seconds(rows, context)
        seconds = self._table(context)[0]
        last = min(others + rows, self._limit)
        return float(seconds[1] / company.requests + seconds[last] - seconds[others + 1])

    def prefill_seconds(self, rows: int, context: int) -> float:
        """Return the seconds of a forward of ``rows`` rows of a prompt; beyond the largest number
        in the table, in proportion."""
        if 0 < self.batch_size < rows:
            counted = min(rows, max(self._costs.rows))
            return float(self._costs.by_rows(context, counted)[counted]) * rows / counted
        counted = min(rows, self._limit)
        return self.seconds(counted, context) * rows / counted

    def prefill_seconds_from(self, rows: int, count: int, context: int) -> NDArray[np.float64]:
        """Return ``prefill_seconds`` of ``rows`` rows, of one more and so on, ``count`` in all."""
        if self.batch_size:
            return np.array([self.prefill_seconds(rows + more, context) for more in range(count)])
        numbers = np.arange(rows, rows + count)
        counted = np.minimum(numbers, self._limit)
        seconds: NDArray[np.float64] = self._table(context)[0][counted] * numbers / counted
        return seconds

    def padding(self, rows: int, context: int) -> int:
        """Return the rows to add so that the forward is faster than without them."""
        if rows > self._limit or self._widths is None:
            return 0
        return int(self._table(context)[1][rows]) - rows

    def verify_costs(
        self,
        pending: int,
        context: int,
        acceptance_scale: float,
        overhead_s: float,
        company: Company = ALONE,
    ) -> VerifyCosts:
        """Return the costs of verifying trees after ``pending`` rows, for a drafter that plans."""
        self._forget_earlier()
        key = context // CONTEXT_STEP, pending, overhead_s, company.requests, company.others
        arrays = self._verify_costs.get(key)
        if arrays is None:
            seconds = self._shared_seconds(pending, context, company) + overhead_s
            if len(self._verify_costs) >= _MOST_KNOWN:
                self._verify_costs.clear()
            arrays = self._verify_costs[key] = seconds, _least_marginal(seconds) + NODE_S
        return VerifyCosts(*arrays, acceptance_scale)

    def _shared_seconds(self, pending: int, context: int, company: Company) -> NDArray[np.float64]:
        """Return ``share_seconds`` with ``pending`` rows and 0, 1, .. nodes."""
        seconds, others = self._table(context)[0], min(company.others, self._limit // 2)
        if not others:
            return seconds[pending:]
        return seconds[1] / company.requests + seconds[others + pending :] - seconds[others + 1]

    def fit(
        self,
        tree: DraftTree,
        pending: int,
        context: int,
        acceptance_scale: float,
        overhead_s: float,
        company: Company = ALONE,
        *,
        cuts: bool = True,
    ) -> tuple[DraftTree, float]:
        """Return the prefix of ``tree`` with the most expected tokens per second, empty when plain
        decoding has more, or with ``cuts`` false the tree itself; and the seconds that verifying it
        is likely to save over plain decoding."""
        seconds = self._shared_seconds(pending, context, company)
        if cuts:
            count = max(min(len(tree), len(seconds) - 1), 0)
            predicted = np.cumsum(tree.probabilities[:count], dtype=np.float64)
            expected = 1.0 + acceptance_scale * np.concatenate([[0.0], predicted])
            chosen = int(np.argmax(expected / (seconds[: count + 1] + overhead_s)))
            tree = tree.prefix(chosen) if chosen < len(tree) else tree
        accepted = acceptance_scale * float(tree.probabilities.sum())
        whole_s = seconds[min(len(tree), len(seconds) - 1)]
        return tree, float(accepted * (seconds[0] + overhead_s) - (whole_s - seconds[0]))

    def _table(self, context: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return seconds by rows when padded to the best count, and that count."""
        self._forget_earlier()
        step = context // CONTEXT_STEP
        table = self._tables.get(step)
        if table is None:
            plain = self._costs.by_rows((step * CONTEXT_STEP) + CONTEXT_STEP // 2, self._limit)
            widths = self._widths or ()
            table = _padded(plain, [count for count in self._costs.rows if count in widths])
            self._tables[step] = table
        return table

    def _forget_earlier(self) -> None:
        """Drop tables that were made of earlier costs."""
        if self._version != self._costs.version:
            self._version = self._costs.version
            self._tables.clear()
            self._verify_costs.clear()


@compiled()
def _least_marginal(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least marginal cost of a node beyond each count, and at least zero."""
    marginal = np.zeros(len(seconds))
    for count in range(len(seconds) - 1):
        least = np.inf
        for more in range(count + 1, len(seconds)):
            least = min(least, (seconds[more] - seconds[count]) / (more - count))
        marginal[count] = max(least, 0.0)
    return marginal


def _padded(
    seconds: NDArray[np.float64], measured: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return seconds and target when each count grows to the next in ``measured``, or to a larger
    one that is clearly faster. Only these are computed, because kernels are compiled (oneDNN) or
    recorded (CUDA graphs) for every shape anew."""
    padded = seconds.copy()
    target = np.arange(len(seconds))
    fastest = 0
    for count in sorted((count for count in measured if count < len(seconds)), reverse=True):
        if not fastest or seconds[fastest] * 1.03 >= seconds[count]:
            fastest = count
        padded[: count + 1] = seconds[fastest]
        target[: count + 1] = fastest
    return padded, target
