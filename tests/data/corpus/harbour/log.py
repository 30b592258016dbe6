"""The log of the harbour: what happened, read and written line by line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LINE = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d) (\w+) (.+)")
KINDS = ("arrival", "departure", "loading", "unloading", "warning")


@dataclass(frozen=True)
class Event:
    """One line of the log."""

    day: str
    time: str
    kind: str
    text: str

    def to_line(self) -> str:
        """The line that is written."""
        return f"{self.day} {self.time} {self.kind} {self.text}"


def parse_line(line: str) -> Event:
    """The event of a line. Raises ValueError for what is none."""
    match = LINE.fullmatch(line.strip())
    if match is None:
        raise ValueError(f"not a line of the log: {line!r}")
    day, time, kind, text = match.groups()
    if kind not in KINDS:
        raise ValueError(f"unknown kind: {kind}")
    return Event(day, time, kind, text)


def read_events(path: Path) -> Iterator[Event]:
    """All events of a file; lines that are none are left out."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.strip():
                continue
            try:
                yield parse_line(line)
            except ValueError:
                continue


def write_events(events: list[Event], path: Path) -> int:
    """Add events to a file; how many were written."""
    with open(path, "a", encoding="utf-8") as file:
        for event in events:
            file.write(event.to_line() + "\n")
    return len(events)


def count_kinds(events: list[Event]) -> Counter[str]:
    """How often each kind happened."""
    counts: Counter[str] = Counter()
    for event in events:
        counts[event.kind] += 1
    return counts


def events_of_day(events: list[Event], day: str) -> list[Event]:
    """All events of a day, in order."""
    found = []
    for event in events:
        if event.day == day:
            found.append(event)
    return sorted(found, key=lambda event: event.time)


def busiest_day(events: list[Event]) -> str | None:
    """The day with the most events, None when there are none."""
    counts: dict[str, int] = {}
    for event in events:
        counts[event.day] = counts.get(event.day, 0) + 1
    if not counts:
        return None
    return max(counts, key=lambda day: counts[day])


def print_summary(events: list[Event], verbose: bool = False) -> None:
    """Print what happened."""
    for kind, count in sorted(count_kinds(events).items()):
        print(f"{kind}: {count}")
    if verbose:
        for event in events:
            print(event.to_line())
