"""Ships, what they carry and how deep they lie."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Cargo:
    """Something that is carried."""

    name: str
    tonnes: float
    is_dangerous: bool = False


@dataclass
class Ship:
    """A ship with its cargo."""

    name: str
    flag: str
    length: float
    """Metres."""
    draught: float
    """Metres below the water when empty."""
    capacity: float
    """Tonnes."""
    cargo: list[Cargo] = field(default_factory=list)

    def loaded(self) -> float:
        """Tonnes on board."""
        return sum(cargo.tonnes for cargo in self.cargo)

    def free(self) -> float:
        """Tonnes that may still be loaded."""
        return self.capacity - self.loaded()

    def load(self, cargo: Cargo) -> None:
        """Take something on board. Raises ValueError when it is too heavy."""
        if cargo.tonnes > self.free():
            raise ValueError(f"{cargo.name} is too heavy for {self.name}")
        self.cargo.append(cargo)

    def unload(self, name: str) -> Cargo:
        """Bring something ashore. Raises KeyError when it is not on board."""
        for place, cargo in enumerate(self.cargo):
            if cargo.name == name:
                return self.cargo.pop(place)
        raise KeyError(f"no {name} on {self.name}")

    def depth(self) -> float:
        """Metres below the water as it is loaded now."""
        share = self.loaded() / self.capacity if self.capacity else 0.0
        return self.draught * (1 + share)

    def has_dangerous_cargo(self) -> bool:
        """Whether anything on board is dangerous."""
        return any(cargo.is_dangerous for cargo in self.cargo)

    def describe(self) -> str:
        """One line for a list."""
        text = f"{self.name} ({self.flag}), {self.length} m, {self.loaded()} t"
        if self.has_dangerous_cargo():
            text += ", dangerous"
        return text


def find_by_name(ships: list[Ship], name: str) -> Ship | None:
    """The ship of that name, None when there is none."""
    for ship in ships:
        if ship.name == name:
            return ship
    return None


def find_by_flag(ships: list[Ship], flag: str) -> list[Ship]:
    """All ships under a flag, by name."""
    found = []
    for ship in ships:
        if ship.flag == flag:
            found.append(ship)
    return sorted(found, key=lambda ship: ship.name)


def find_dangerous(ships: list[Ship]) -> list[Ship]:
    """All ships with dangerous cargo, by name."""
    found = []
    for ship in ships:
        if ship.has_dangerous_cargo():
            found.append(ship)
    return sorted(found, key=lambda ship: ship.name)


def total_loaded(ships: list[Ship]) -> float:
    """Tonnes on board of all ships together."""
    total = 0.0
    for ship in ships:
        total += ship.loaded()
    return total
