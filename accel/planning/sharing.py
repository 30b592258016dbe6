"""The requests that one forward computes, and the rows of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from accel.execution.forwards import Forward
from accel.models.costs.step_overheads import STEP_S
from accel.planning.cost_table import CostTable
from accel.planning.planner import Planner

LENGTHENED = 1.25
"""Rows of less urgent requests make a forward longer than that of the most urgent ones alone by
this factor at most."""


class Urgent(NamedTuple):
    """A forward that is asked for; the least number is the most urgent."""

    urgency: int
    forward: Forward


def plan_step(asked: Sequence[Urgent], planner: Planner) -> list[Forward]:
    """Return the forwards of ``asked``, given in the order of their turns, that are computed
    together next; their ``rows`` are lowered to what pays. The planner is told of the company, for
    the drafts to come.

    Of prompts, whose rows are many, one of the most urgent takes part, by one chunk. Guesses share
    what is worth computing: those are verified that are likeliest, of all trees, as long as another
    row adds more tokens a second than it costs all (marginal gain; TurboSpec reasons alike of
    chains of equal length).
    """
    if len(asked) == 1:
        planner.company.requests = planner.company.rows = 1
        return [asked[0].forward]
    costs, most_urgent = planner.costs, min(each.urgency for each in asked)
    urgent = _with_one_prompt(each.forward for each in asked if each.urgency == most_urgent)
    cut_guesses(urgent, costs)
    others = [each for each in asked if each.urgency > most_urgent]
    longest = LENGTHENED * _seconds(urgent, costs) if others else 0.0
    for _, forward in sorted(others, key=lambda each: each.urgency):
        least, most = forward.least, forward.rows
        while least <= most:
            # The most rows that fit, by halves.
            forward.rows = (least + most + 1) // 2
            if _seconds([*urgent, forward], costs) <= longest:
                least = forward.rows + 1
            else:
                most = forward.rows - 1
        if most >= forward.least:
            forward.rows = most
            urgent = [*urgent, forward]
    if not all(forward.may_try for _, forward in asked):
        # Somebody waits for a first token.
        for forward in urgent:
            forward.may_try = False
    texts = [forward for forward in urgent if not forward.is_prompt]
    planner.company.requests = max(len(texts), 1)
    planner.company.rows = sum(forward.rows for forward in texts)
    return urgent


def _with_one_prompt(forwards: Iterable[Forward]) -> list[Forward]:
    chosen: list[Forward] = []
    for forward in forwards:
        if not (forward.is_prompt and any(each.is_prompt for each in chosen)):
            chosen.append(forward)
    return chosen


def cut_guesses(forwards: Sequence[Forward], costs: CostTable) -> None:
    """Leave those guesses of all with which most tokens a second are expected."""
    texts = [forward for forward in forwards if not forward.is_prompt]
    guessing = [forward for forward in texts if forward.rows > forward.least]
    if len(texts) < 2 or not guessing:
        return
    chances = np.concatenate(
        [forward.chances[: forward.rows - forward.least] for forward in guessing]
    )
    likeliest = np.sort(chances)[::-1]
    certain = sum(forward.least for forward in texts)
    seconds = costs.prefill_seconds_from(certain, len(chances) + 1, _context(texts))
    expected = len(texts) + np.concatenate([[0.0], np.cumsum(likeliest, dtype=np.float64)])
    count = int(np.argmax(expected / (seconds + len(texts) * STEP_S)))
    least_chance = likeliest[count - 1] if count else np.inf
    for forward in guessing:
        own = forward.chances[: forward.rows - forward.least]
        forward.rows = forward.least + int((own >= least_chance).sum())


def _seconds(forwards: Sequence[Forward], costs: CostTable) -> float:
    return costs.prefill_seconds(sum(forward.rows for forward in forwards), _context(forwards))


def _context(forwards: Sequence[Forward]) -> int:
    """Return tokens before a row, on average."""
    rows = sum(forward.rows for forward in forwards)
    return sum(forward.rows * forward.session.length for forward in forwards) // max(rows, 1)
