"""Holes in files, as an editor meets them: rests of lines, blocks, bodies, any span."""

from __future__ import annotations

import random

from tests.benchmarks.training.samples.code import lines_of

Span = tuple[int, int]

TRIES = 20
SPAN_CHARACTERS = (3, 160)
BODY_LINES = 16


class HoleMaker:
    """Draws holes of one file."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = lines_of(text)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))

    def draw(self, rng: random.Random) -> Span | None:
        """Start and end of a hole with something in it; None where none was found."""
        filled = [n for n, line in enumerate(self._lines) if line.strip()]
        for _ in range(TRIES if filled else 0):
            line, kind = rng.choice(filled), rng.random()
            span: Span | None
            if kind < 0.45:
                span = self.rest_of_line(line, rng)
            elif kind < 0.85:
                span = self.block(line, rng)
            elif kind < 0.92:
                span = self.body_below(line, rng)
            else:
                span = self.any_span(rng)
            if span is not None and self._text[slice(*span)].strip():
                return span
        return None

    def rest_of_line(self, line: int, rng: random.Random) -> Span:
        """From the start, the indentation or within the line, mostly to its end."""
        inside = self._inside(line, rng)
        start = rng.choice([self._starts[line], self._code_start(line), inside, inside])
        end = self._end(line)
        if rng.random() < 0.15 and end > start:
            end = rng.randrange(start, end)
        return start, end

    def block(self, line: int, rng: random.Random) -> Span | None:
        """From a line to the end of the lines below that are indented as far as it, at most a few;
        seldom one line alone."""
        end = self._block_end(line, self._indent(line), line + rng.choice([2, 3, 4, 6, 8, 12]))
        if end == line + 1 and rng.random() < 0.6:
            return None
        code = self._code_start(line)
        start = rng.choice([self._starts[line], code, code, self._inside(line, rng)])
        return start, self._end(end - 1)

    def body_below(self, line: int, rng: random.Random) -> Span | None:
        """The lines below that are indented farther, where they are not too many."""
        end = self._block_end(line, self._indent(line) + 1, len(self._lines))
        if not 1 <= end - line - 1 <= BODY_LINES:
            return None
        is_indented = rng.random() < 0.8
        start = self._code_start(line + 1) if is_indented else self._starts[line + 1]
        return start, self._end(end - 1)

    def any_span(self, rng: random.Random) -> Span:
        """Characters from anywhere."""
        start = rng.randrange(len(self._text))
        return start, min(len(self._text), start + rng.randint(*SPAN_CHARACTERS))

    def _indent(self, line: int) -> int:
        return len(self._lines[line]) - len(self._lines[line].lstrip())

    def _code_start(self, line: int) -> int:
        return self._starts[line] + min(self._indent(line), len(self._lines[line].rstrip("\n")))

    def _end(self, line: int) -> int:
        return self._starts[line] + len(self._lines[line].rstrip("\n"))

    def _inside(self, line: int, rng: random.Random) -> int:
        start = self._code_start(line)
        return rng.randrange(start, max(start, self._end(line)) + 1)

    def _block_end(self, line: int, indent: int, limit: int) -> int:
        end = line + 1
        while end < min(limit, len(self._lines)) and (
            not self._lines[end].strip() or self._indent(end) >= indent
        ):
            end += 1
        while end > line + 1 and not self._lines[end - 1].strip():
            end -= 1
        return end
