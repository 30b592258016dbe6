"""A machine that is simulated: cores of different speed, other programs that come and go, limits of
a container, and what forwards of a model take there by so many threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source
from accel.models.costs.first_costs import CONTEXTS, ROWS, TYPICAL_COSTS
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.learnt_costs import LearntCosts
from accel.planning.cost_table import CostTable

OVERHEAD_S = 3e-4
PERIOD_S = 0.1
"""Within which a container's processor time is counted."""
SLICE_S = 3e-3
"""For so long a program has a core before another gets it."""


@dataclass
class Machine:
    """``speeds``: of its cores; ``one_s``: a forward of one row by the first core; ``shared``: what
    of it several cores share, the rest being bound by memory; ``load``: busy programs at a time;
    ``quota``: cores of processor time at a time."""

    speeds: tuple[float, ...] = (1.0, 1.0)
    one_s: float = 5e-3
    memory: float = 0.5
    meeting_s: float = 2e-4
    curve: dict[int, float] = field(default_factory=lambda: {1: 1.0, 8: 1.7, 64: 9.8, 256: 39.0})
    load: Callable[[float], int] = lambda _now: 0
    quota: Callable[[float], float] = lambda _now: 1e9
    power: Callable[[float], float] = lambda _now: 1.0
    noise: float = 0.05

    def work(self, rows: int, context: int) -> float:
        """Seconds of a forward by the first core alone."""
        steps = -(-rows // 4) * 4 if rows > 4 else rows
        by_rows = float(np.interp(steps, [*self.curve], [*self.curve.values()]))
        return self.one_s * (by_rows + rows * context * 2e-5)

    def expected(self, threads: int, rows: int, context: int, now: float) -> float:
        """Seconds of a forward on the mean, what is spent for a quota among them."""
        work = self.work(rows, context)
        busy, cores = self.load(now), len(self.speeds)
        share = min(1.0, cores / (threads + busy))
        speed = sum(self.speeds[:threads]) * share * self.power(now)
        least = self.memory * self.one_s / max(self.speeds)
        seconds = max(work / speed, least / share / self.power(now))
        if threads > 1:
            seconds += self.meeting_s * threads
            if threads + busy > cores:
                # Some wait for one that has no core.
                seconds *= 1 + 0.25 * min(busy, threads)
        return seconds * max(threads / self.quota(now), 1.0)

    def seconds(self, threads: int, rows: int, context: int, now: float, random: object) -> float:
        """Seconds of a forward that begins ``now``."""
        assert isinstance(random, np.random.Generator)
        seconds = self.expected(threads, rows, context, now)
        busy, cores = self.load(now), len(self.speeds)
        seconds *= float(np.exp(random.normal(0.0, self.noise)))
        if threads + busy > cores:
            # A core is taken away and given back in slices.
            lost = random.poisson(seconds / (4 * SLICE_S)) - seconds / (4 * SLICE_S)
            seconds = max(seconds + 0.5 * SLICE_S * lost, 0.6 * seconds)
        return seconds

    def perfect(self, threads: int, now: float) -> ForwardCosts:
        """What forwards by so many threads cost ``now``, as nobody knows it."""
        grid = np.array(
            [[self.expected(threads, rows, context, now) for rows in ROWS] for context in CONTEXTS]
        )
        return ForwardCosts([*CONTEXTS], [*ROWS], grid)

    def first(self, now: float = 0.0) -> ForwardCosts:
        """An estimate by a forward of one row, as ``first_costs`` makes it."""
        shape = np.interp(ROWS, [*TYPICAL_COSTS], [*TYPICAL_COSTS.values()])
        one_s = self.expected(1, 1, 0, now)
        return ForwardCosts([*CONTEXTS], [*ROWS], one_s * np.outer([*CONTEXTS.values()], shape))


@dataclass
class Written:
    """What was written, a row for each forward: when it began, tokens and expected seconds, what
    it really took, threads, whether somebody waited for a first token; then tokens and expected
    seconds of the same step by each fixed number of threads, its tree sized by perfect costs."""

    rows: list[tuple[float, ...]] = field(default_factory=list)

    def share_of_best(self, first_s: float, last_s: float) -> float:
        """Tokens a second of what began between two moments, in those of the best fixed choice."""
        found = self.within(first_s, last_s)
        tokens, seconds = found[:, 7::2].sum(0), found[:, 8::2].sum(0)
        return float(found[:, 1].sum() / found[:, 2].sum() / (tokens / seconds).max())

    def latest_p95(self) -> float:
        """How much longer than the usual a forward of the second half took in the slowest
        twentieth, in units of its work."""
        found = self.within(self.rows[len(self.rows) // 2][0], np.inf)
        seconds = (found[:, 3] / found[:, 6])[found[:, 5] == 0]
        return float(np.quantile(seconds, 0.95) / np.median(seconds))

    def within(self, first_s: float, last_s: float) -> NDArray[np.float64]:
        """Rows of what began between two moments."""
        found = np.array(self.rows)
        return found[(found[:, 0] >= first_s) & (found[:, 0] < last_s)]


def write(
    machine: Machine,
    seconds: float,
    learnt: LearntCosts,
    *,
    counts: Sequence[int] | None = None,
    seed: int = 0,
    prompt: int = 200,
    answer: int = 60,
) -> Written:
    """Write answers for so many seconds of use, each after a prompt, beside always ``counts``
    threads."""
    random, texts = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    written, now, table = Written(), 0.0, CostTable(learnt.costs)
    perfect: dict[tuple[float, ...], CostTable] = {}

    def sized(tree: DraftTree, costs: CostTable, context: int) -> DraftTree:
        return costs.fit(tree, 1, context, 1.0, OVERHEAD_S)[0]

    def run(tree: DraftTree, context: int, *, prompt: int = 0, is_first: bool = False) -> float:
        nonlocal now
        own = sized(tree, table, context)
        rows = prompt or 1 + len(own)
        threads = learnt.choose(rows, context, may_try=not is_first)
        real_s = machine.seconds(threads, rows, context, now, random)
        learnt.note(rows, context, real_s)
        expected_s = machine.expected(threads, rows, context, now) + OVERHEAD_S
        work_s = machine.work(rows, context)
        tokens = 0.0 if prompt else 1.0 + float(own.probabilities.sum())
        row = [now, tokens, expected_s, real_s, threads, is_first, work_s]
        state = machine.load(now), machine.quota(now), machine.power(now)
        for count in counts or learnt.threads:
            known = count, *state
            if known not in perfect:
                perfect[known] = CostTable(machine.perfect(count, now))
            costs = perfect[known]
            fitted = sized(tree, costs, context)
            best_s = machine.expected(count, prompt or 1 + len(fitted), context, now) + OVERHEAD_S
            row += [0.0 if prompt else 1.0 + float(fitted.probabilities.sum()), best_s]
        written.rows.append(tuple(row))
        now += real_s + OVERHEAD_S
        return tokens

    while now < seconds:
        context, left = int(texts.integers(0, 3000)), float(texts.integers(answer // 2, 2 * answer))
        for _ in range(0, prompt, 256):
            run(DraftTree.empty(), context, prompt=min(prompt, 256), is_first=True)
        is_first = True
        while left > 0 and now < seconds:
            tokens = run(_tree(texts), context, is_first=is_first)
            left, context, is_first = left - tokens, context + round(tokens), False
    return written


def _tree(random: np.random.Generator) -> DraftTree:
    """A draft whose nodes are likely, or not, as they are in texts: best first."""
    if random.random() < 0.3:
        return DraftTree.empty()
    count, first = 64, random.uniform(0.2, 0.95)
    tree = DraftTree.chain(np.zeros(count, np.int32), Source.PROMPT)
    tree.probabilities[:] = (first ** np.arange(1, count + 1)).astype(np.float32)
    return tree
