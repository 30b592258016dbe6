"""The draw of ``sampling.choose``, compiled: noise is computed only where its cheap upper bound may
win. Where the outcome is not in the nucleus the draw is made again among likelier tokens."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from accel.native.deterministic_sum import add_to, no_sums, sum_of
from accel.native.numba_cache import compiled
from accel.native.simd import LANES, exp, load, maximum, reduce_max, select_greater, splat

_MOST_NOISE = 37.5
"""Of a number below 1 with 53 bits."""

_COLDEST = 1e-30
"""A temperature that float32 holds; colder ones choose no other tokens."""

_LOOKED_AT = 64
"""Tokens whose bounds are computed together."""

_UNIT = np.float32(1 << 24)
"""Of the highest bits of a number, which bound it."""

_ALL = np.float32(-np.inf)
"""A bound below all scores that count."""


@njit(nogil=True, inline="always")
def _mix(value: np.uint64) -> np.uint64:
    """Return the SplitMix64 finaliser (Steele et al. 2014) of value plus its increment."""
    mixed = value + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@njit(nogil=True, inline="always")
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


@compiled(error_model="numpy", borrows=True)
def _may_win(
    scores: NDArray[np.float32],
    first: int,
    last: int,
    temperature: np.float32,
    key: np.uint64,
    best: np.float32,
) -> bool:
    """Return whether one of the tokens from ``first`` to ``last`` may score more than ``best``.
    There are no branches, so that the loop vectorises, and a margin for the rounding of fp32; NaN
    may win."""
    inverse = np.float32(1) / temperature
    hits = 0
    for token in range(first, last):
        bits = _mix(_mix(np.uint64(token) ^ key) + key) >> np.uint64(40)
        scaled = scores[token] * inverse
        margin = np.float32(1e-3) + np.float32(1e-6) * (abs(best) + abs(scaled))
        short = best - scaled - margin
        # As in ``_noisy``, where (1 + x / 64) ** 64 is below exp(x), too.
        power = np.float32(1) + short * np.float32(1 / 64)
        power *= power
        power *= power
        power *= power
        power *= power
        power *= power
        power *= power
        above = (_UNIT - np.float32(1) - np.float32(np.int32(bits))) * power
        hits += 1 - ((short > 0) & (above > np.float32(1.001) * _UNIT))
    return hits > 0


@compiled(borrows=True)
def _key_of(seed: int | np.uint64, position: int | np.uint64) -> np.uint64:
    """Return the part of the noise's key that is the same for all tokens."""
    return _mix(_mix(np.uint64(seed)) ^ np.uint64(position))


@compiled(borrows=True)
def _draw_among(
    scores: NDArray[np.float32], above: np.float32, before: int, temperature: float, key: np.uint64
) -> tuple[int, float]:
    """Return the token with the largest sum of scaled score and noise, and
    that sum. Of scores larger than ``above``, or as large where they come ``before`` one."""
    cooled = np.float32(max(temperature, _COLDEST))
    winner, best, count = 0, -np.inf, len(scores)
    for start in range(0, count, _LOOKED_AT):
        stop = min(start + _LOOKED_AT, count)
        if not _may_win(scores, start, stop, cooled, key, np.float32(best)):
            continue
        for token in range(start, stop):
            score = scores[token]
            if score > above or (score == above and token < before):
                value = _noisy(score, cooled, key, token, best)
                if value > best:
                    winner, best = token, value
    return winner, best


@compiled(borrows=True)
def _power(score: np.float32, scale: np.float32) -> float:
    """exp of the product, to the last bit as sixteen at once."""
    return np.float64(reduce_max(exp(splat(score) * splat(scale))))


@compiled(borrows=True)
def _is_in_nucleus(
    scores: NDArray[np.float32], token: int, above: np.float32, temperature: float, top_p: float
) -> bool:
    """Return whether the likelier tokens, of those with scores larger than ``above``,
    have less than ``top_p`` of the mass. Of equals the first is the likelier."""
    count, own, equals = len(scores), scores[token], 0
    full_lanes = count // LANES * LANES
    for other in range(token):
        equals += scores[other] == own
    top, least, limit = splat(own), splat(above), splat(own)
    for start in range(0, full_lanes, LANES):
        top = maximum(top, load(scores, start))
    highest = reduce_max(top)
    for other in range(full_lanes, count):
        highest = max(highest, scores[other])
    inverse = np.float32(1) / np.float32(max(temperature, _COLDEST))
    top, scale = splat(highest), splat(inverse)
    masses, likelier = no_sums(), no_sums()
    for start in range(0, full_lanes, LANES):
        score = load(scores, start)
        mass = select_greater(score, least, exp((score - top) * scale))
        masses = add_to(masses, mass)
        likelier = add_to(likelier, select_greater(score, limit, mass))
    all_mass, more = sum_of(masses), sum_of(likelier)
    for other in range(full_lanes, count):
        mass = _power(scores[other] - highest, inverse)
        all_mass += mass if scores[other] > above else 0.0
        more += mass if scores[other] > own else 0.0
    more += equals * _power(own - highest, inverse)
    return more < top_p * all_mass


@compiled(borrows=True)
def _from_nucleus(
    scores: NDArray[np.float32],
    token: int,
    above: np.float32,
    temperature: float,
    top_p: float,
    key: np.uint64,
) -> int:
    """Draw from the nucleus of tokens with scores larger than ``above``;
    ``token`` is drawn from all of them."""
    while top_p < 1 and not _is_in_nucleus(scores, token, above, temperature, top_p):
        # Neither are those that are less likely.
        likelier, best = _draw_among(scores, scores[token], token, temperature, key)
        if best == -np.inf:
            # Nothing is: all tokens are excluded, or scores are no numbers.
            return token
        token = likelier
    return token


@compiled()
def _below(scores: NDArray[np.float32], top_k: int) -> np.float32:
    """Return the number that ``top_k`` scores are larger than, or as large."""
    if top_k <= 0 or top_k >= len(np.flatnonzero(scores > _ALL)):
        return _ALL
    index = len(scores) - top_k
    return np.nextafter(np.partition(scores, index)[index], _ALL)


@compiled()
def draw(
    scores: NDArray[np.float32],
    temperature: float,
    top_k: int,
    top_p: float,
    seed: np.uint64,
    position: np.uint64,
) -> int:
    """Return the token with the largest sum of scaled score and Gumbel noise, of those that stay
    after top-k and then top-p: a pure function of seed, position and token. scores: float32
    [vocabulary], -inf for excluded."""
    key, above = _key_of(seed, position), _below(scores, top_k)
    token, _ = _draw_among(scores, above, 0, temperature, key)
    return _from_nucleus(scores, token, above, temperature, top_p, key)
