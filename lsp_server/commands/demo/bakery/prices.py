"""What things cost, in cents."""

from __future__ import annotations

from dataclasses import dataclass

VAT_PERCENT = 7
BULK_COUNT = 10
BULK_PERCENT = 5


@dataclass(frozen=True)
class Product:
    """Something that the bakery sells."""

    name: str
    cents: int
    grams: int = 500
    is_vegan: bool = True


@dataclass
class Line:
    """A line of an order: a product and how many of it."""

    product: Product
    count: int

    def total(self) -> int:
        """Cents for the whole line, with the discount for many."""
        cents = self.product.cents * self.count
        if self.count >= BULK_COUNT:
            cents -= discount(cents, BULK_PERCENT)
        return cents

    def grams(self) -> int:
        """The weight of the whole line."""
        return self.product.grams * self.count


def discount(cents: int, percent: int = 10) -> int:
    """The part of an amount that is not paid."""
    return cents * percent // 100


def with_vat(cents: int) -> int:
    """An amount with the tax added."""
    return cents + cents * VAT_PERCENT // 100


def format_cents(cents: int) -> str:
    """An amount as it is printed on a bill."""
    return f"{cents // 100}.{cents % 100:02d}"


def parse_cents(text: str) -> int:
    """The amount of a text such as ``3.50``."""
    whole, _, rest = text.partition(".")
    return int(whole) * 100 + int(rest)
