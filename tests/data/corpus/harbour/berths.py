"""Berths, and which ship lies where."""

from __future__ import annotations

import heapq

from harbour.ships import Ship


class Berth:
    """A place at the quay."""

    def __init__(self, name: str, length: float, depth: float, takes_danger: bool = False) -> None:
        self.name = name
        self.length = length
        self.depth = depth
        self.takes_danger = takes_danger
        self.ship: Ship | None = None

    def is_free(self) -> bool:
        """Whether no ship lies here."""
        return self.ship is None

    def fits(self, ship: Ship) -> bool:
        """Whether a ship could lie here."""
        if ship.length > self.length:
            return False
        if ship.depth() > self.depth:
            return False
        return self.takes_danger or not ship.has_dangerous_cargo()

    def moor(self, ship: Ship) -> None:
        """Have a ship lie here."""
        if not self.is_free():
            raise ValueError(f"berth {self.name} is taken")
        if not self.fits(ship):
            raise ValueError(f"{ship.name} does not fit berth {self.name}")
        self.ship = ship

    def cast_off(self) -> Ship:
        """Have the ship leave."""
        if self.ship is None:
            raise ValueError(f"berth {self.name} is free")
        ship = self.ship
        self.ship = None
        return ship


class Quay:
    """Berths in a row, and ships that wait for one."""

    def __init__(self, berths: list[Berth]) -> None:
        self.berths = berths
        self.waiting: list[tuple[int, int, Ship]] = []
        self._arrivals = 0

    def arrive(self, ship: Ship, priority: int = 0) -> Berth | None:
        """A ship comes: its berth, None when it has to wait."""
        berth = self.best_berth(ship)
        if berth is None:
            self._arrivals += 1
            heapq.heappush(self.waiting, (-priority, self._arrivals, ship))
            return None
        berth.moor(ship)
        return berth

    def leave(self, name: str) -> list[Berth]:
        """A ship leaves: the berths that ships took which had waited."""
        for berth in self.berths:
            if berth.ship is not None and berth.ship.name == name:
                berth.cast_off()
                return self.call_waiting()
        raise KeyError(f"no ship {name} at the quay")

    def best_berth(self, ship: Ship) -> Berth | None:
        """The shortest free berth that a ship fits, None when there is none."""
        free = [berth for berth in self.berths if berth.is_free() and berth.fits(ship)]
        if not free:
            return None
        return min(free, key=lambda berth: berth.length)

    def call_waiting(self) -> list[Berth]:
        """Let ships in that wait, as long as there is a berth for them."""
        taken = []
        left = []
        while self.waiting:
            entry = heapq.heappop(self.waiting)
            berth = self.best_berth(entry[2])
            if berth is None:
                left.append(entry)
            else:
                berth.moor(entry[2])
                taken.append(berth)
        for entry in left:
            heapq.heappush(self.waiting, entry)
        return taken

    def names(self) -> dict[str, str]:
        """By berth, the name of the ship that lies there."""
        return {berth.name: berth.ship.name for berth in self.berths if berth.ship is not None}
