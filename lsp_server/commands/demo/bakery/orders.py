"""Orders: what customers want, and what becomes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bakery.prices import Line, Product, format_cents, with_vat


@dataclass
class Order:
    """What one customer wants."""

    number: int
    customer: str
    lines: list[Line] = field(default_factory=list)
    is_paid: bool = False

    def add(self, product: Product, count: int = 1) -> None:
        """Add some of a product."""
        if count < 1:
            raise ValueError("at least one is ordered")
        self.lines.append(Line(product, count))

    def total(self) -> int:
        """Cents for all lines, without tax."""
        return sum(line.total() for line in self.lines)

    def grams(self) -> int:
        """The weight of all lines."""
        return sum(line.grams() for line in self.lines)

    def pay(self) -> int:
        """Mark the order as paid; cents with tax."""
        if self.is_paid:
            raise ValueError(f"order {self.number} is paid already")
        self.is_paid = True
        return with_vat(self.total())

    def describe(self) -> str:
        """One line for a list."""
        state = "paid" if self.is_paid else "open"
        return f"{self.number} {self.customer}: {format_cents(self.total())} ({state})"


class OrderBook:
    """All orders of a day."""

    def __init__(self) -> None:
        self.orders: dict[int, Order] = {}
        self.last_number = 0

    def open(self, customer: str) -> Order:
        """A new order without lines."""
        self.last_number += 1
        order = Order(self.last_number, customer)
        self.orders[order.number] = order
        return order

    def find(self, number: int) -> Order:
        """The order of that number. Raises KeyError."""
        if number not in self.orders:
            raise KeyError(f"no order {number}")
        return self.orders[number]

    def unpaid(self) -> list[Order]:
        """Orders that are still open, by number."""
        found = []
        for order in self.orders.values():
            if not order.is_paid:
                found.append(order)
        return sorted(found, key=lambda order: order.number)

    def by_customer(self, customer: str) -> list[Order]:
        """Orders of one customer, by number."""
        found = []
        for order in self.orders.values():
            if order.customer == customer:
                found.append(order)
        return sorted(found, key=lambda order: order.number)

    def revenue(self) -> int:
        """Cents of all orders that are paid."""
        total = 0
        for order in self.orders.values():
            if order.is_paid:
                total += order.total()
        return total

    def sold(self) -> Counter[str]:
        """How many of each product were ordered, by name."""
        counts: Counter[str] = Counter()
        for order in self.orders.values():
            for line in order.lines:
                counts[line.product.name] += line.count
        return counts
