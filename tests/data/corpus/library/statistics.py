"""Figures for the yearly report."""

from __future__ import annotations

import math


def mean(values: list[float]) -> float:
    """The arithmetic mean. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values")
    return sum(values) / len(values)


def median(values: list[float]) -> float:
    """The value in the middle. Raises ValueError for no values."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def variance(values: list[float]) -> float:
    """The mean of the squared distances from the mean."""
    center = mean(values)
    return sum((value - center) ** 2 for value in values) / len(values)


def deviation(values: list[float]) -> float:
    """The root of the variance."""
    return math.sqrt(variance(values))


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of all values lies."""
    if not 0 <= share <= 1:
        raise ValueError(f"{share} is no share")
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = math.ceil(place)
    if low == high:
        return ordered[low]
    return ordered[low] * (high - place) + ordered[high] * (place - low)


def histogram(values: list[float], width: float) -> dict[int, int]:
    """How many values fall into each box of a width."""
    if width <= 0:
        raise ValueError("a box has a width")
    counts: dict[int, int] = {}
    for value in values:
        box = int(value // width)
        counts[box] = counts.get(box, 0) + 1
    return counts


def running_mean(values: list[float], length: int) -> list[float]:
    """Means of as many values as ``length`` that follow each other."""
    if length < 1:
        raise ValueError("a length is at least one")
    means = []
    for start in range(len(values) - length + 1):
        means.append(mean(values[start : start + length]))
    return means


def correlation(first: list[float], second: list[float]) -> float:
    """How two rows of values go together, from -1 to 1."""
    if len(first) != len(second):
        raise ValueError("rows of different lengths")
    center_first = mean(first)
    center_second = mean(second)
    total = 0.0
    for one, other in zip(first, second):
        total += (one - center_first) * (other - center_second)
    scale = deviation(first) * deviation(second) * len(first)
    if scale == 0:
        return 0.0
    return total / scale


def table(rows: dict[str, list[float]], digits: int = 2) -> str:
    """Mean, median and deviation of several rows as text."""
    lines = ["name mean median deviation"]
    for name, values in rows.items():
        numbers = [mean(values), median(values), deviation(values)]
        cells = [f"{number:.{digits}f}" for number in numbers]
        lines.append(" ".join([name, *cells]))
    return "\n".join(lines)
