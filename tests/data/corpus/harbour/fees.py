"""What ships pay."""

from __future__ import annotations

from harbour.ships import Ship

PER_METRE = 350
PER_TONNE = 12
PER_HOUR = 4000
DANGER_FACTOR = 1.5


def mooring_fee(ship: Ship, hours: int) -> int:
    """Cents for lying at the quay."""
    if hours < 0:
        raise ValueError("hours are not negative")
    return round(ship.length * PER_METRE) + hours * PER_HOUR


def loading_fee(ship: Ship) -> int:
    """Cents for what is on board."""
    total = 0.0
    for cargo in ship.cargo:
        price = cargo.tonnes * PER_TONNE
        if cargo.is_dangerous:
            price *= DANGER_FACTOR
        total += price
    return round(total)


def total_fee(ship: Ship, hours: int, discount: float = 0.0) -> int:
    """Cents for everything, less a discount."""
    if not 0 <= discount <= 1:
        raise ValueError(f"{discount} is no discount")
    full = mooring_fee(ship, hours) + loading_fee(ship)
    return round(full * (1 - discount))


def invoice(ship: Ship, hours: int, discount: float = 0.0) -> str:
    """The bill of a ship as text."""
    lines = [
        "Invoice for %s" % ship.name,
        "Mooring: %s" % format_cents(mooring_fee(ship, hours)),
        "Loading: %s" % format_cents(loading_fee(ship)),
    ]
    if discount:
        lines.append("Discount: %d percent" % round(100 * discount))
    lines.append("Total: %s" % format_cents(total_fee(ship, hours, discount)))
    return "\n".join(lines)


def format_cents(cents: int) -> str:
    """An amount as it is printed."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole}.{rest:02d}"


class Account:
    """What a shipping company has paid and has to pay."""

    def __init__(self, company: str) -> None:
        self.company = company
        self.entries: list[tuple[str, int]] = []

    def charge(self, text: str, cents: int) -> None:
        """Add what has to be paid."""
        if cents < 0:
            raise ValueError("a charge is not negative")
        self.entries.append((text, -cents))

    def pay(self, text: str, cents: int) -> None:
        """Add what was paid."""
        if cents < 0:
            raise ValueError("a payment is not negative")
        self.entries.append((text, cents))

    def balance(self) -> int:
        """Cents: below nothing while something has to be paid."""
        total = 0
        for _text, cents in self.entries:
            total += cents
        return total

    def statement(self) -> str:
        """All entries and the balance as text."""
        lines = [f"Account of {self.company}"]
        for text, cents in self.entries:
            lines.append(f"{text}: {format_cents(cents)}")
        lines.append(f"Balance: {format_cents(self.balance())}")
        return "\n".join(lines)
