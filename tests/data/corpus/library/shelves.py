"""Shelves, and where a book belongs."""

from __future__ import annotations

from library.books import Book, Copy


class Shelf:
    """A row of copies, sorted by their labels."""

    def __init__(self, name: str, width: int = 40) -> None:
        self.name = name
        self.width = width
        self.copies: list[Copy] = []

    def __len__(self) -> int:
        return len(self.copies)

    def has_room(self) -> bool:
        """Whether one more copy fits."""
        return len(self.copies) < self.width

    def add(self, copy: Copy) -> int:
        """Put a copy where it belongs; its place, counted from the left."""
        if not self.has_room():
            raise ValueError(f"shelf {self.name} is full")
        place = self.place_of(copy.book)
        self.copies.insert(place, copy)
        copy.shelf = self.name
        return place

    def remove(self, number: int) -> Copy:
        """Take the copy of that number."""
        for place, copy in enumerate(self.copies):
            if copy.number == number:
                copy.shelf = ""
                return self.copies.pop(place)
        raise KeyError(f"no copy {number} on shelf {self.name}")

    def place_of(self, book: Book) -> int:
        """Where a book belongs, counted from the left."""
        label = book.label()
        place = 0
        while place < len(self.copies) and self.copies[place].book.label() <= label:
            place += 1
        return place

    def titles(self) -> list[str]:
        """What can be read on the spines, from left to right."""
        return [copy.book.title for copy in self.copies]

    def gaps(self) -> list[int]:
        """Places of the copies that are lent."""
        found = []
        for place, copy in enumerate(self.copies):
            if copy.is_lent:
                found.append(place)
        return found


class Room:
    """Shelves by their names."""

    def __init__(self, names: list[str], width: int = 40) -> None:
        self.shelves = {name: Shelf(name, width) for name in names}

    def shelf(self, name: str) -> Shelf:
        """The shelf of that name."""
        if name not in self.shelves:
            raise KeyError(f"no shelf {name}")
        return self.shelves[name]

    def add(self, copy: Copy) -> str:
        """Put a copy on the first shelf that has room; the name of that shelf."""
        for name, shelf in self.shelves.items():
            if shelf.has_room():
                shelf.add(copy)
                return name
        raise ValueError("all shelves are full")

    def find(self, isbn: str) -> list[Copy]:
        """All copies of a book that stand here."""
        found = []
        for shelf in self.shelves.values():
            for copy in shelf.copies:
                if copy.book.isbn == isbn:
                    found.append(copy)
        return found

    def free_places(self) -> int:
        """How many more copies fit."""
        total = 0
        for shelf in self.shelves.values():
            total += shelf.width - len(shelf)
        return total

    def report(self, verbose: bool = False) -> str:
        """How full the shelves are."""
        lines = []
        for name, shelf in self.shelves.items():
            lines.append("{}: {} of {}".format(name, len(shelf), shelf.width))
            if verbose:
                for title in shelf.titles():
                    lines.append("  {}".format(title))
        return "\n".join(lines)
