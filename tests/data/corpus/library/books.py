"""Books and the copies of them that stand on a shelf."""

from __future__ import annotations

from dataclasses import dataclass, field

LOAN_DAYS = 28
"""Days for which a copy is lent."""


@dataclass
class Book:
    """A title, whatever number of copies there is of it."""

    isbn: str
    title: str
    author: str
    year: int
    subjects: list[str] = field(default_factory=list)

    def is_about(self, subject: str) -> bool:
        """Whether the book treats a subject, in upper or lower case."""
        wanted = subject.lower()
        for known in self.subjects:
            if known.lower() == wanted:
                return True
        return False

    def label(self) -> str:
        """What is printed on the spine."""
        surname = self.author.split()[-1]
        return f"{surname[:3].upper()} {self.year}"

    def describe(self) -> str:
        """One line for a list."""
        subjects = ", ".join(self.subjects)
        if not subjects:
            return f"{self.title} by {self.author} ({self.year})"
        return f"{self.title} by {self.author} ({self.year}): {subjects}"


@dataclass
class Copy:
    """One copy of a book."""

    book: Book
    number: int
    shelf: str = ""
    is_lent: bool = False
    is_damaged: bool = False

    def can_be_lent(self) -> bool:
        """Whether somebody may take it home."""
        return not self.is_lent and not self.is_damaged

    def lend(self) -> None:
        """Note that somebody took it."""
        if not self.can_be_lent():
            raise ValueError(f"copy {self.number} of {self.book.title} cannot be lent")
        self.is_lent = True

    def take_back(self) -> None:
        """Note that somebody brought it back."""
        if not self.is_lent:
            raise ValueError(f"copy {self.number} of {self.book.title} was not lent")
        self.is_lent = False


def find_by_isbn(books: list[Book], isbn: str) -> Book | None:
    """The book of that number, None when there is none."""
    for book in books:
        if book.isbn == isbn:
            return book
    return None


def find_by_author(books: list[Book], author: str) -> list[Book]:
    """All books of an author, the oldest first."""
    found = []
    for book in books:
        if book.author == author:
            found.append(book)
    return sorted(found, key=lambda book: book.year)


def find_by_subject(books: list[Book], subject: str) -> list[Book]:
    """All books about a subject, by title."""
    found = []
    for book in books:
        if book.is_about(subject):
            found.append(book)
    return sorted(found, key=lambda book: book.title)


def count_by_year(books: list[Book]) -> dict[int, int]:
    """How many books appeared in each year."""
    counts: dict[int, int] = {}
    for book in books:
        counts[book.year] = counts.get(book.year, 0) + 1
    return counts


def is_valid_isbn(isbn: str) -> bool:
    """Whether the check digit of a number of thirteen digits is right."""
    digits = [int(letter) for letter in isbn if letter.isdigit()]
    if len(digits) != 13:
        return False
    total = 0
    for place, digit in enumerate(digits):
        if place % 2 == 0:
            total += digit
        else:
            total += 3 * digit
    return total % 10 == 0
