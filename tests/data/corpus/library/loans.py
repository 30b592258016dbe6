"""Loans: who has what, since when, and what became of it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date

from library.books import LOAN_DAYS, Copy
from library.readers import Reader, fine_of

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loan:
    """A copy in the hands of a reader."""

    copy: Copy
    reader: Reader
    since: date
    due: date

    def is_late(self, today: date) -> bool:
        """Whether the copy should be back already."""
        return self.due < today

    def days_left(self, today: date) -> int:
        """Days until the copy is due; below nothing when it is late."""
        return (self.due - today).days


class Desk:
    """Lends copies and takes them back."""

    def __init__(self, days: int = LOAN_DAYS) -> None:
        self.days = days
        self.loans: dict[int, Loan] = {}
        self.history: list[tuple[int, str, date]] = []

    def lend(self, copy: Copy, reader: Reader, today: date) -> Loan:
        """Lend a copy to a reader."""
        if copy.number in self.loans:
            raise ValueError(f"copy {copy.number} is lent already")
        copy.lend()
        try:
            due = reader.borrow(copy.number, today, self.days)
        except ValueError:
            copy.take_back()
            raise
        loan = Loan(copy, reader, today, due)
        self.loans[copy.number] = loan
        self.history.append((copy.number, "lent", today))
        log.info("copy %s lent to %s until %s", copy.number, reader.name, due)
        return loan

    def take_back(self, number: int, today: date) -> int:
        """Take a copy back; the fine in cents."""
        if number not in self.loans:
            raise KeyError(f"copy {number} is not lent")
        loan = self.loans.pop(number)
        loan.copy.take_back()
        fine = loan.reader.bring_back(number, today)
        self.history.append((number, "returned", today))
        log.info("copy %s came back from %s", number, loan.reader.name)
        return fine

    def renew(self, number: int, today: date) -> Loan:
        """Begin the loan of a copy again, unless it is late."""
        loan = self.loans[number]
        if loan.is_late(today):
            raise ValueError(f"copy {number} is late")
        loan.reader.bring_back(number, today)
        due = loan.reader.borrow(number, today, self.days)
        renewed = Loan(loan.copy, loan.reader, today, due)
        self.loans[number] = renewed
        self.history.append((number, "renewed", today))
        return renewed

    def late(self, today: date) -> list[Loan]:
        """All loans that are late, the latest first."""
        found = [loan for loan in self.loans.values() if loan.is_late(today)]
        return sorted(found, key=lambda loan: loan.due)

    def expected_fines(self, today: date) -> int:
        """Cents that would be paid if all came back today."""
        total = 0
        for loan in self.loans.values():
            total += fine_of(loan.due, today)
        return total

    def events_of(self, number: int) -> list[tuple[str, date]]:
        """What happened to a copy, in order."""
        return [(what, when) for copy, what, when in self.history if copy == number]
