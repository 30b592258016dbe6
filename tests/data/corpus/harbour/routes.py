"""Routes between harbours."""

from __future__ import annotations

import heapq
import math


class Chart:
    """Harbours and the sea miles between them."""

    def __init__(self) -> None:
        self.miles: dict[str, dict[str, float]] = {}
        self.places: dict[str, tuple[float, float]] = {}

    def add_harbour(self, name: str, latitude: float, longitude: float) -> None:
        """Put a harbour on the chart."""
        if name in self.places:
            raise ValueError(f"{name} is on the chart already")
        self.places[name] = (latitude, longitude)
        self.miles[name] = {}

    def connect(self, first: str, second: str, miles: float | None = None) -> None:
        """Ships go from one harbour to another and back."""
        if miles is None:
            miles = distance(self.places[first], self.places[second])
        self.miles[first][second] = miles
        self.miles[second][first] = miles

    def neighbours(self, name: str) -> list[str]:
        """Harbours that can be reached directly, by name."""
        return sorted(self.miles[name])

    def shortest(self, start: str, end: str) -> list[str]:
        """The shortest way. Raises ValueError when there is none."""
        queue = [(0.0, start, [start])]
        seen = set()
        while queue:
            miles, name, way = heapq.heappop(queue)
            if name == end:
                return way
            if name in seen:
                continue
            seen.add(name)
            for other, more in self.miles[name].items():
                if other not in seen:
                    heapq.heappush(queue, (miles + more, other, [*way, other]))
        raise ValueError(f"no way from {start} to {end}")

    def length(self, way: list[str]) -> float:
        """Sea miles of a way."""
        total = 0.0
        for first, second in zip(way, way[1:]):
            total += self.miles[first][second]
        return total

    def reachable(self, start: str, miles: float) -> list[str]:
        """Harbours that are no farther away than that, by name."""
        found = []
        for name in self.places:
            try:
                way = self.shortest(start, name)
            except ValueError:
                continue
            if self.length(way) <= miles:
                found.append(name)
        return sorted(found)


def distance(first: tuple[float, float], second: tuple[float, float]) -> float:
    """Sea miles between two places, by the great circle."""
    latitude_first, longitude_first = (math.radians(angle) for angle in first)
    latitude_second, longitude_second = (math.radians(angle) for angle in second)
    sines = math.sin(latitude_first) * math.sin(latitude_second)
    cosines = math.cos(latitude_first) * math.cos(latitude_second)
    cosine = sines + cosines * math.cos(longitude_first - longitude_second)
    return 60 * math.degrees(math.acos(min(max(cosine, -1.0), 1.0)))


def hours(miles: float, knots: float) -> float:
    """Hours for so many miles at a speed."""
    if knots <= 0:
        raise ValueError("a ship has to move")
    return miles / knots


def fuel(miles: float, knots: float, tonnes_per_day: float = 25.0) -> float:
    """Tonnes of fuel for so many miles at a speed."""
    days = hours(miles, knots) / 24
    return days * tonnes_per_day
