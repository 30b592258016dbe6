"""Readers, their cards and what they owe."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, timedelta

MOST_LOANS = 8
FINE_PER_DAY = 20
"""Cents for each day that a copy is late."""


@dataclass
class Reader:
    """Somebody with a card."""

    name: str
    card: int
    joined: date
    loans: dict[int, date] = field(default_factory=dict)
    """By the number of a copy, the day on which it is due."""
    owes: int = 0
    """Cents."""

    def may_borrow(self) -> bool:
        """Whether another copy may be lent to this reader."""
        if self.owes > 0:
            return False
        return len(self.loans) < MOST_LOANS

    def borrow(self, number: int, today: date, days: int = 28) -> date:
        """Lend a copy to this reader; the day on which it is due."""
        if not self.may_borrow():
            raise ValueError(f"{self.name} may not borrow")
        due = today + timedelta(days=days)
        self.loans[number] = due
        return due

    def bring_back(self, number: int, today: date) -> int:
        """Take a copy back; what the reader has to pay for it in cents."""
        if number not in self.loans:
            raise KeyError(f"{self.name} has no copy {number}")
        due = self.loans.pop(number)
        fine = fine_of(due, today)
        self.owes += fine
        return fine

    def pay(self, cents: int) -> int:
        """Pay what is owed; what is given back in cents."""
        if cents < 0:
            raise ValueError("a payment is not negative")
        paid = min(cents, self.owes)
        self.owes -= paid
        return cents - paid

    def late_copies(self, today: date) -> list[int]:
        """Numbers of the copies that should be back already."""
        late = []
        for number, due in self.loans.items():
            if due < today:
                late.append(number)
        return sorted(late)


def fine_of(due: date, today: date) -> int:
    """Cents for a copy that was due on a day and comes back today."""
    if today <= due:
        return 0
    days = (today - due).days
    return days * FINE_PER_DAY


def find_by_card(readers: list[Reader], card: int) -> Reader | None:
    """The reader with that card, None when there is none."""
    for reader in readers:
        if reader.card == card:
            return reader
    return None


def find_by_name(readers: list[Reader], name: str) -> list[Reader]:
    """All readers of a name, in the order in which they joined."""
    found = []
    for reader in readers:
        if reader.name == name:
            found.append(reader)
    return sorted(found, key=lambda reader: reader.joined)


def reminders(readers: list[Reader], today: date) -> list[str]:
    """A letter for everybody who has late copies."""
    letters = []
    for reader in readers:
        late = reader.late_copies(today)
        # Nobody is reminded of nothing.
        if late:
            numbers = ", ".join(str(number) for number in late)
            letters.append("Dear %s, please bring back: %s" % (reader.name, numbers))
    return letters


def total_owed(readers: list[Reader]) -> int:
    """Cents that all readers owe together."""
    total = 0
    for reader in readers:
        total += reader.owes
    return total


def format_cents(cents: int) -> str:
    """An amount as it is printed."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole}.{rest:02d}"
