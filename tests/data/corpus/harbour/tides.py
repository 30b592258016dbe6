"""Tides: how deep the water is, and when a ship can come in."""

from __future__ import annotations

import math
from dataclasses import dataclass

PERIOD_HOURS = 12.42
"""Hours from one high water to the next."""


@dataclass(frozen=True)
class Tide:
    """A tide with one period."""

    mean_depth: float
    """Metres."""
    amplitude: float
    """Metres above and below the mean."""
    high_at: float = 0.0
    """Hours after midnight of the first high water."""

    def depth_at(self, hour: float) -> float:
        """Metres of water at an hour."""
        angle = 2 * math.pi * (hour - self.high_at) / PERIOD_HOURS
        return self.mean_depth + self.amplitude * math.cos(angle)

    def is_rising(self, hour: float) -> bool:
        """Whether the water rises at an hour."""
        return self.depth_at(hour + 0.01) > self.depth_at(hour)

    def next_high(self, hour: float) -> float:
        """Hour of the next high water."""
        passed = math.ceil((hour - self.high_at) / PERIOD_HOURS)
        return self.high_at + passed * PERIOD_HOURS

    def next_low(self, hour: float) -> float:
        """Hour of the next low water."""
        low_at = self.high_at + PERIOD_HOURS / 2
        passed = math.ceil((hour - low_at) / PERIOD_HOURS)
        return low_at + passed * PERIOD_HOURS

    def first_hour_with(self, depth: float, hour: float, step: float = 0.1) -> float | None:
        """The first hour from ``hour`` on at which the water is that deep, None when it never is."""
        if depth > self.mean_depth + self.amplitude:
            return None
        while self.depth_at(hour) < depth:
            hour += step
        return hour


def windows(tide: Tide, depth: float, start: float, end: float) -> list[tuple[float, float]]:
    """From when to when the water is deep enough, between two hours."""
    found = []
    opened = None
    hour = start
    while hour <= end:
        deep = tide.depth_at(hour) >= depth
        if deep and opened is None:
            opened = hour
        if not deep and opened is not None:
            found.append((opened, hour))
            opened = None
        hour += 0.1
    if opened is not None:
        found.append((opened, end))
    return found


def table(tide: Tide, hours: int = 24) -> list[str]:
    """A line for every hour."""
    lines = []
    for hour in range(hours):
        depth = tide.depth_at(hour)
        word = "rising" if tide.is_rising(hour) else "falling"
        lines.append(f"{hour:02d}:00 {depth:.2f} m {word}")
    return lines


def format_hour(hour: float) -> str:
    """An hour as a clock shows it."""
    minutes = round(hour * 60)
    whole, rest = divmod(minutes, 60)
    return f"{whole % 24:02d}:{rest:02d}"
