"""The draw of ``sampling.choose``, compiled: sorting a vocabulary takes longer than a forward of a
small model.

Of all tokens few can be the outcome. Those that are too light for the nucleus are not sorted, and
noise is only computed where its cheap upper bound may win.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_NO_MASS = -50.0
"""Powers of e that add nothing to a sum of 1 and more, even ten thousand of them."""

_STEPS = 200
"""Into which powers of e down to that are counted."""

_MOST_NOISE = 37.5
"""Of a number below 1 with 53 bits."""

_COLDEST = 1e-30
"""A temperature that float32 holds; colder ones choose no other tokens."""


@njit(nogil=True, cache=True, inline="always")
def _mix(value: np.uint64) -> np.uint64:
    """``sampling._mix`` of one number."""
    mixed = value + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@njit(nogil=True, cache=True)
def _least_score(scores: NDArray[np.float32], top_k: int) -> np.float32:
    """What a score has to reach to be among the ``top_k`` largest."""
    above = 0
    for score in scores:
        above += score > -np.inf
    if not 0 < top_k < above:
        return np.float32(-np.inf)
    place = len(scores) - top_k
    return np.partition(scores, place)[place]


@njit(nogil=True, cache=True)
def _nucleus(
    scores: NDArray[np.float32], least: np.float32, temperature: float, top_p: float
) -> NDArray[np.int64]:
    """The fewest most probable tokens whose mass reaches ``top_p`` of those with scores from
    ``least`` on, most probable first."""
    masses = np.zeros(len(scores))
    steps = np.zeros(_STEPS)
    highest = np.float64(scores.max()) / temperature
    total = 0.0
    for token in range(len(scores)):
        power = np.float64(scores[token]) / temperature - highest
        if scores[token] >= least and power > _NO_MASS:
            masses[token] = np.exp(power)
            total += masses[token]
            steps[int(power / _NO_MASS * _STEPS)] += masses[token]
    # Only as many steps down from the highest score are sorted as hold enough, and one more.
    step, held = 0, steps[0]
    while step < _STEPS - 1 and held < top_p * total:
        step += 1
        held += steps[step]
    lightest = np.exp(_NO_MASS * (step + 2) / _STEPS)
    heavy = np.flatnonzero(masses >= lightest)
    heavy = heavy[np.argsort(-scores[heavy], kind="mergesort")]
    mass = 0.0
    for count in range(len(heavy)):
        mass += masses[heavy[count]]
        if mass - masses[heavy[count]] >= top_p * total:
            return heavy[:count]
    return heavy


@njit(nogil=True, cache=True, inline="always")
def _noisy(score: np.float32, temperature: np.float32, key: np.uint64, token: int, best: float):  # type: ignore[no-untyped-def]
    """The scaled score with its noise, minus infinity where that is clearly below ``best``."""
    scaled = score / temperature
    if scaled + _MOST_NOISE < best:
        return -np.inf
    bits = _mix(_mix(np.uint64(token) ^ key) + key) >> np.uint64(11)
    uniform = (np.float64(bits) + 0.5) * 2.0**-53
    short = best - scaled
    # Noise is at most -log(1 - uniform), and exp(short) at least the first terms of its series.
    if short > 0 and (1 - uniform) * (1 + short * (1 + short * (0.5 + short / 6))) > 1:
        return -np.inf
    return scaled - np.log(-np.log(uniform))


@njit(nogil=True, cache=True)
def draw(
    scores: NDArray[np.float32],
    temperature: float,
    top_k: int,
    top_p: float,
    seed: np.uint64,
    place: np.uint64,
) -> int:
    """The token of ``sampling.nucleus`` with the largest sum of scaled score and
    ``sampling.gumbel`` noise. scores: float32 [vocabulary], -inf for excluded tokens."""
    key = _mix(_mix(seed) ^ place)
    least = _least_score(scores, top_k)
    cooled = np.float32(max(temperature, _COLDEST))
    found, best = np.int64(scores.argmax()), -np.inf
    best = _noisy(scores[found], cooled, key, found, best)
    if top_p < 1:
        for token in _nucleus(scores, least, temperature, top_p):
            value = _noisy(scores[token], cooled, key, token, best)
            if value > best:
                found, best = token, value
        return found
    for token in range(len(scores)):
        if scores[token] >= least and scores[token] > -np.inf:
            value = _noisy(scores[token], cooled, key, token, best)
            if value > best:
                found, best = np.int64(token), value
    return found
