"""The catalogue: read, written and searched."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from library.books import Book, find_by_isbn, is_valid_isbn

COLUMNS = ["isbn", "title", "author", "year", "subjects"]


class Catalogue:
    """All books by their numbers."""

    def __init__(self, books: list[Book] | None = None) -> None:
        self.books: list[Book] = []
        for book in books or []:
            self.add(book)

    def __len__(self) -> int:
        return len(self.books)

    def add(self, book: Book) -> None:
        """Take a book in. Raises ValueError for a wrong number or one that is there already."""
        if not is_valid_isbn(book.isbn):
            raise ValueError(f"{book.isbn} is not a valid number")
        if find_by_isbn(self.books, book.isbn) is not None:
            raise ValueError(f"{book.isbn} is there already")
        self.books.append(book)

    def remove(self, isbn: str) -> Book:
        """Take a book out. Raises KeyError when it is not there."""
        book = find_by_isbn(self.books, isbn)
        if book is None:
            raise KeyError(isbn)
        self.books.remove(book)
        return book

    def search(self, words: str, limit: int = 20) -> list[Book]:
        """Books whose titles or authors hold all of the words."""
        wanted = words.lower().split()
        found = []
        for book in self.books:
            text = f"{book.title} {book.author}".lower()
            if all(word in text for word in wanted):
                found.append(book)
            if len(found) == limit:
                break
        return found

    def subjects(self) -> list[str]:
        """All subjects, each once, sorted."""
        found = set()
        for book in self.books:
            for subject in book.subjects:
                found.add(subject)
        return sorted(found)


def read_json(path: Path) -> Catalogue:
    """A catalogue from a JSON file."""
    with open(path, encoding="utf-8") as file:
        rows = json.load(file)
    return Catalogue([book_of(row) for row in rows])


def write_json(catalogue: Catalogue, path: Path) -> None:
    """Write a catalogue as a JSON file."""
    rows = [row_of(book) for book in catalogue.books]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=2)


def read_csv(path: Path, delimiter: str = ",") -> Catalogue:
    """A catalogue from a table."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    for row in rows:
        row["subjects"] = row["subjects"].split(";")
    return Catalogue([book_of(row) for row in rows])


def write_csv(catalogue: Catalogue, path: Path, delimiter: str = ",") -> None:
    """Write a catalogue as a table."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, delimiter=delimiter)
        writer.writeheader()
        for book in catalogue.books:
            row = row_of(book)
            row["subjects"] = ";".join(row["subjects"])
            writer.writerow(row)


def book_of(row: dict) -> Book:
    """A book from a row."""
    return Book(
        isbn=row["isbn"],
        title=row["title"],
        author=row["author"],
        year=int(row["year"]),
        subjects=list(row["subjects"]),
    )


def row_of(book: Book) -> dict:
    """A row from a book."""
    return {
        "isbn": book.isbn,
        "title": book.title,
        "author": book.author,
        "year": book.year,
        "subjects": list(book.subjects),
    }
