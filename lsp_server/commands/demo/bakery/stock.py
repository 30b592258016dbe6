"""What lies in the shelves, and what has to be baked."""

from __future__ import annotations

from bakery.orders import Order


class Stock:
    """How many of each product are left, by name."""

    def __init__(self, least: int = 5) -> None:
        self.counts: dict[str, int] = {}
        self.least = least

    def bake(self, name: str, count: int) -> int:
        """Put fresh ones into the shelf; how many there are then."""
        if count < 1:
            raise ValueError("at least one is baked")
        self.counts[name] = self.counts.get(name, 0) + count
        return self.counts[name]

    def take(self, name: str, count: int) -> int:
        """Take some out of the shelf; how many are left."""
        left = self.counts.get(name, 0) - count
        if left < 0:
            raise ValueError(f"not enough {name}")
        self.counts[name] = left
        return left

    def can_serve(self, order: Order) -> bool:
        """Whether there is enough for an order."""
        for line in order.lines:
            if self.counts.get(line.product.name, 0) < line.count:
                return False
        return True

    def serve(self, order: Order) -> None:
        """Take everything of an order out of the shelf."""
        if not self.can_serve(order):
            raise ValueError(f"order {order.number} cannot be served")
        for line in order.lines:
            self.take(line.product.name, line.count)

    def to_bake(self) -> list[str]:
        """Names of products of which too few are left."""
        return sorted(name for name, count in self.counts.items() if count < self.least)


def average(values: list[int]) -> float:
    """The mean of some numbers."""
    total = 0
    for value in values:
        total += value
    return total / len(values)


def report(stock: Stock, width: int = 20) -> str:
    """The shelves as text, one product a line."""
    # Long names are cut, so that the columns stay straight.
    lines = []
    for name, count in sorted(stock.counts.items()):
        mark = "!" if count < stock.least else " "
        lines.append(f"{mark} {name[:width]:<{width}} {count}")
    return "\n".join(lines)
