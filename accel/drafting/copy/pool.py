"""The pool of an edit: looked-up rows, the original, its rewritten versions, phrases of the
instruction, prompt and output, in one row of tokens. A -1 ends a text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.drafting.copy import candidates as rows_of
from accel.drafting.copy.alignment import ANCHOR, AT, breaks_around
from accel.drafting.copy.deviation_rate import PRIOR, mark_places
from accel.drafting.copy.rewrites import Version

# Measure with `python -m tests.benchmarks edit --cases CASES/edit_canitedit.jsonl`.
LOOKUP_ROWS = 48
LOOKUP_DEPTH = 16
SLOTS = (rows_of.RENAMED, rows_of.INSTRUCTED, rows_of.SHIFTED)


class CopyPool:
    """Arrays of one edit, see ``copy_rows`` for ``match`` and ``offsets``.

    tokens, match, offsets: int32 [places]; places: int8 [places], ``slips``; cursor: int32 [4],
    ``cursor``; slips: float64 [4, 2], ``slips``; spans: int32 [k, 3], texts that the cursor may
    move in; gather_spans: the same without the prompt's own original, and the output apart.
    """

    def __init__(
        self,
        original: TokenArray,
        ending: TokenArray,
        phrases: TokenArray,
        prompt: TokenArray,
        span: tuple[int, int],
        classes: NDArray[np.int8],
    ) -> None:
        """All tokens int32. ``ending``: what is expected after the original; ``span``: where the
        prompt shows the original; ``classes``: ``candidates.token_classes``."""
        expected = np.concatenate([original, ending])
        self.original, self.ending = original, ending
        self.version_size = 2 * len(expected) + 64
        self.home = LOOKUP_ROWS * (LOOKUP_DEPTH + 1)
        first_slot = self.home + len(expected) + 2
        self._slots = {kind: first_slot + i * self.version_size for i, kind in enumerate(SLOTS)}
        self._phrases = first_slot + len(SLOTS) * self.version_size
        self.context_start = self._phrases + len(phrases) + 1
        size = self.context_start + len(prompt) + 2 * len(expected) + 1024
        self.classes = classes
        self.cover(expected, phrases, prompt)
        self.tokens = np.full(size, -1, np.int32)
        self.match = np.zeros(size, np.int32)
        self.offsets = np.full(size, -1, np.int32)
        self.places = np.zeros(size, np.int8)
        self.slips = PRIOR.copy()
        stop = self.home + len(expected)
        self.tokens[self.home : stop] = expected
        self.offsets[self.home : stop + 1] = np.arange(len(expected) + 1)
        self.stop = self.output_start = self.context_start + len(prompt)
        self.tokens[self._phrases : self._phrases + len(phrases)] = phrases
        self.tokens[self.context_start : self.stop] = prompt
        self.versions: dict[int, int] = {}
        self.rules: dict[int, NDArray[np.int8]] = {}
        mark_places(self.tokens, self.places, self.home, stop)
        self.line_starts, self.line_ends = breaks_around(original, self.classes)
        self._shown = (self.context_start + span[0], self.context_start + span[1])
        self._measure(self.context_start, self.stop)
        self._measure(self.home, stop)
        self.cursor = np.array([self.home, 0, 0, 0], np.int32)
        self._lay_spans()

    @property
    def anchor(self) -> int:
        """The position in the original that the output is believed to have reached."""
        return min(int(self.cursor[ANCHOR]), len(self.original))

    def version_at(self, kind: int) -> tuple[int, int]:
        """Return first position of a version and the one after its last; empty where there is
        none."""
        start = self._slots[kind]
        return start, start + self.versions.get(kind, 0)

    def write_version(self, kind: int, version: Version) -> None:
        """Put a version of the original, with its ending, in place of the one before."""
        slot = self._slots[kind]
        count = min(len(version.tokens), self.version_size - 2 - len(self.ending))
        is_complete = count == len(version.tokens)
        self.cover(version.tokens)
        self.tokens[slot : slot + count] = version.tokens[:count]
        self.offsets[slot : slot + count] = version.offsets[:count]
        stop = slot + count
        if is_complete and len(self.ending):
            self.tokens[stop : stop + len(self.ending)] = self.ending
            ends = len(self.original) + np.arange(len(self.ending))
            self.offsets[stop : stop + len(self.ending)] = ends
            stop += len(self.ending)
        self.tokens[stop] = -1
        self.offsets[stop] = len(self.original) + len(self.ending)
        self.versions[kind] = stop - slot
        self.rules[kind] = version.rules
        self._measure(slot, stop)
        mark_places(self.tokens, self.places, slot, stop)
        self._lay_spans()

    def drop_version(self, kind: int) -> None:
        """Forget a version; a cursor in it goes to the same position in the original."""
        if self.versions.pop(kind, None) is None:
            return
        start = self._slots[kind]
        if start <= int(self.cursor[AT]) < start + self.version_size:
            self.cursor[AT] = self.home + self.cursor[ANCHOR]
        self._lay_spans()

    def reserve(self, count: int) -> None:
        """Room for ``count`` more tokens of context."""
        needed = self.stop + count + 2
        if needed <= len(self.tokens):
            return
        for name, filler in (("tokens", -1), ("match", 0), ("offsets", -1), ("places", 0)):
            old = getattr(self, name)
            new = np.full(2 * needed, filler, old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def cover(self, *texts: TokenArray) -> bool:
        """Make the table of classes cover every token of ``texts``, of which a model may have more
        than its tokenizer; whether it is another now."""
        top = max((int(text.max(initial=-1)) for text in texts), default=-1)
        if top < len(self.classes):
            return False
        more = np.zeros(2 * (top + 1) - len(self.classes), np.int8)
        self.classes = np.append(self.classes, more)
        return True

    def _measure(self, start: int, stop: int) -> None:
        rows_of.measure_matches(self.tokens, self.match, start, stop, self.context_start, self.stop)

    def _lay_spans(self) -> None:
        home = self.home
        spans = [(home, home + len(self.original) + len(self.ending), rows_of.ORIGINAL)]
        spans += [(*self.version_at(kind), kind) for kind in sorted(self.versions)]
        spans.append((self._phrases, self.context_start - 1, rows_of.PHRASE))
        context = (self.context_start, self.stop, rows_of.PROMPT)
        self.spans = np.array([*spans, context], np.int32)
        spans.append((self.context_start, self._shown[0], rows_of.PROMPT))
        spans.append((self._shown[1], self.output_start, rows_of.PROMPT))
        spans.append((self.output_start, self.stop, rows_of.OUTPUT))
        self.gather_spans = np.array(spans, np.int32)
