"""Drafting for edits: the original code is the draft, wherever the edit has got to in it.

In place of EfficientEdit's two phases (reuse the remaining original as one chain; after a
rejection generate until seven tokens match again) every step proposes one tree: the rest of the
original from the cursor, the places where an edit is likely to join it again, the same with names
replaced as the edit has been replacing them, the edit that the instruction says where its kind is
known, repetitions of prompt and output, and what an index knows. Branches are ranked by calibrated
probability; nothing is thrown away.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.sources import copy_rows as rows_of
from accel.sources.copy_tree import expand_rows
from accel.sources.copy_weights import row_weights
from accel.sources.cursor import ANCHOR, AT, EVENT_REJOINED, OFF_TRACK, breaks_around, follow
from accel.sources.protocol import DraftRequest
from accel.sources.rewrites import (
    TextCodec,
    Version,
    learn_rename,
    rewrite,
    shown_at,
    spoken_phrases,
    spoken_renames,
    still_due,
    version_of,
)
from accel.sources.slips import PRIOR, kept, mark_places

_LOOKUP_ROWS = 48
_LOOKUP_DEPTH = 16
_LOOKUP_LIMIT = 24
_ROW_LIMIT = 64
_MIN_PROBABILITY = 1e-5
_SLOTS = (rows_of.RENAMED, rows_of.INSTRUCTED, rows_of.SHIFTED)
_SOURCES = np.array(
    [Source.ORIGINAL] * 4
    + [Source.PROMPT, Source.PROMPT, Source.REPOSITORY, Source.COMMON, Source.PROMPT],
    np.int8,
)
_SIDE = 24
"""Tokens on each side of a change that are looked at for the rest of a word."""


@cache
def warm_up() -> None:
    """Compile what drafting needs, or load it from the cache, so that no request waits for it."""
    text = np.arange(1, 9, dtype=np.int32)
    drafter = ReuseDrafter(_Letters(), (9,))
    drafter.begin(DraftRequest(text, original=text))
    tree = drafter.draft(4)
    drafter.commit(tree, [0], text[:2])
    drafter.draft(4)


class _Letters:
    """A vocabulary for warming up."""

    vocabulary_size = 10

    def encode(self, text: str) -> TokenArray:
        return np.array([ord(letter) - 96 for letter in text], np.int32)

    def bytes_of(self, token: int) -> bytes:
        return bytes([96 + token])


class ReuseDrafter:
    """The default drafter for edits. Lossless like every drafter; never sees the model.

    ``end``: tokens by which an answer is expected to end, drafted after the original's last token.
    """

    name = "redraft"

    def __init__(self, codec: TextCodec, end: tuple[int, ...] = ()) -> None:
        self._codec = codec
        self._end = np.array(end, np.int32)
        self._renames: list[tuple[str, str]] = []
        self._asked = ("", "")
        self._classes = rows_of.classes_of(codec)
        self.weights = row_weights()
        self.begin(DraftRequest(np.empty(0, np.int32)))

    def begin(self, request: DraftRequest) -> None:
        """Lay out the pool: looked-up rows, original, room for versions, prompt and output."""
        original = request.original if request.original is not None else np.empty(0, np.int32)
        self._original = np.asarray(original, np.int32)
        self._index = request.index
        self._shift = 0
        self._ending = np.concatenate([np.asarray(request.closing, np.int32), self._end])
        expected = np.concatenate([self._original, self._ending])
        room = 2 * len(expected) + 64
        scratch = _LOOKUP_ROWS * (_LOOKUP_DEPTH + 1)
        self._original_start = scratch
        first_slot = scratch + len(expected) + 2
        self._slots = {kind: first_slot + i * room for i, kind in enumerate(_SLOTS)}
        self._room = room
        prompt = np.asarray(request.prompt, np.int32)
        copy = shown_at(prompt, self._original)
        instruction = self._text(prompt[: copy[0]]) if len(self._original) else ""
        text = self._text(self._original)
        # Marks around places, which the text that is continued lacks, cut it there.
        self._is_cut = request.given is not None and len(request.given) > len(prompt)
        phrases = self._spell(spoken_phrases(instruction, text))
        self._phrases = first_slot + len(_SLOTS) * room
        self._context_start = self._phrases + len(phrases) + 1
        size = self._context_start + len(prompt) + 2 * len(expected) + 1024
        self._cover(expected, phrases, prompt)
        self._pool = np.full(size, -1, np.int32)
        self._match = np.zeros(size, np.int32)
        self._offsets = np.full(size, -1, np.int32)
        stop = scratch + len(expected)
        self._pool[scratch:stop] = expected
        self._offsets[scratch : stop + 1] = np.arange(len(expected) + 1)
        self._stop = self._context_start + len(prompt)
        self._pool[self._phrases : self._phrases + len(phrases)] = phrases
        self._pool[self._context_start : self._stop] = prompt
        self._output_start = self._stop
        self._versions: dict[int, int] = {}
        self._rules: dict[int, NDArray[np.int8]] = {}
        self._places = np.zeros(size, np.int8)
        self._slips = PRIOR.copy()
        mark_places(self._pool, self._places, scratch, stop)
        self._line_starts, self._line_ends = breaks_around(self._original, self._classes)
        self._copy = (self._context_start + copy[0], self._context_start + copy[1])
        self._measure(self._context_start, self._stop)
        self._measure(scratch, stop)
        self._cursor = np.array([scratch, 0, 0, 0], np.int32)
        self._lay_spans()
        self._write_expected((request.workspace, instruction), text, request.expected)

    def _write_expected(
        self, asked: tuple[str, str], text: str, expected: TokenArray | None
    ) -> None:
        """Versions of the original that are likely before anything is written."""
        # The same wish for another piece of code: names change as they did there.
        again = asked == self._asked and len(self._original) > 0
        self._renames = still_due(self._renames, text) if again else []
        self._asked = asked
        if self._renames:
            self._rewrite(rows_of.RENAMED, 0, self._renames, 0)
        _, instruction = asked
        if expected is not None:
            self._write_version(rows_of.INSTRUCTED, version_of(self._original, expected))
        elif spoken := spoken_renames(instruction, text):
            self._rewrite(rows_of.INSTRUCTED, 0, spoken, 0)

    def draft(self, max_nodes: int) -> DraftTree:
        """The best tree of at most ``max_nodes`` nodes."""
        if max_nodes <= 0:
            return DraftTree.empty()
        place = self._place()
        rows, kinds, _ = self._gather(place, _ROW_LIMIT)
        if self._index is not None:
            rows, kinds = self._look_up(rows, kinds)
        tokens, parents, chances, node_kinds = expand_rows(
            self._pool, self._match, self._offsets, rows, kinds, self._stop,
            *place, self._classes, self.weights, self._places, kept(self._slips), max_nodes,
            _MIN_PROBABILITY,
        )  # fmt: skip
        return DraftTree(tokens, parents, chances, _SOURCES[node_kinds])

    def votes(self, limit: int = 96) -> tuple[NDArray[np.int32], TokenArray, int, int]:
        """What ``draft`` would choose its first token from, for fitting the weights.

        Features int32 [n, 5] of every row, the token int32 [n] it votes for, the feature of the
        escape, and how many tokens the cursor is off the track.
        """
        place = self._place()
        rows, kinds, features = self._gather(place, limit)
        off_track = place[1]
        if self._index is not None:
            known = len(rows)
            rows, kinds = self._look_up(rows, kinds)
            more = [
                rows_of.features_of(
                    int(kind), int(self._match[row]), 0, 0, int(self._classes[self._pool[row]]),
                    *place[:4], rows_of.NOWHERE, rows_of.NOWHERE,
                )
                for row, kind in zip(rows[known:], kinds[known:], strict=True)
            ]  # fmt: skip
            features = np.concatenate([features, np.array(more, np.int32).reshape(-1, 5)])
        state = int(rows_of.state_bucket(off_track))
        escape = rows_of.ESCAPE_AT + state * rows_of.CLASSES + place[2]
        return features, self._pool[rows], escape, off_track

    def _place(self) -> tuple[int, int, int, int, int, int]:
        """Anchor, tokens off the track, classes of the last token and of the one at the anchor, and
        the line breaks around the anchor."""
        anchor = min(int(self._cursor[ANCHOR]), len(self._original))
        return (
            anchor,
            int(self._cursor[OFF_TRACK]),
            self._class_of(self._pool[self._context_start :], self._stop - self._context_start - 1),
            self._class_of(self._original, anchor),
            int(self._line_starts[anchor]),
            int(self._line_ends[anchor]),
        )

    def _gather(
        self, place: tuple[int, int, int, int, int, int], limit: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.int32]]:
        rows, kinds, features = rows_of.gather_rows(
            self._pool, self._match, self._offsets, self._gather_spans, self._stop,
            *place, self._classes, self.weights, limit,
        )  # fmt: skip
        return rows, kinds, features

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Move the cursor, and learn from every place where output and original differ."""
        tokens = np.asarray(tokens, np.int32)
        self._make_room(len(tokens))
        self._cover(tokens)
        events = follow(
            self._pool, self._match, self._offsets, self._spans, self._cursor, tokens, self._stop,
            self._classes, self._places, self._slips,
        )  # fmt: skip
        self._stop += len(tokens)
        self._spans[-1, 1] = self._gather_spans[-1, 1] = self._stop
        if len(self._original) and not self._as_instructed():
            self._learn(events)

    def _as_instructed(self) -> bool:
        """Whether the text follows what the instruction says: its changes are no news."""
        start, kind = self._slots[rows_of.INSTRUCTED], rows_of.INSTRUCTED
        return 0 <= int(self._cursor[AT]) - start < self._versions.get(kind, 0)

    def _learn(self, events: NDArray[np.int32]) -> None:
        before = list(self._renames), self._shift
        for event, first, second, third, fourth in events.tolist():
            if event == EVENT_REJOINED:
                self._learn_change(first, second, third, fourth)
            else:
                self._unlearn(first)
        if (self._renames, self._shift) == before:
            return
        anchor = min(int(self._cursor[ANCHOR]), len(self._original))
        start = max(int(self._line_starts[anchor]), 0)
        self._drop_version(rows_of.RENAMED)
        self._drop_version(rows_of.SHIFTED)
        if self._renames:
            self._rewrite(rows_of.RENAMED, start, self._renames, 0)
        if self._shift:
            self._rewrite(rows_of.SHIFTED, start, self._renames, self._shift)

    def _learn_change(self, left: int, joined: int, written: int, resumed: int) -> None:
        if left <= joined <= len(self._original):
            rule = learn_rename(
                self._text(self._pool[max(written - _SIDE, self._output_start) : written]),
                self._text(self._original[left:joined]),
                self._text(self._pool[written:resumed]),
                self._text(self._original[joined : joined + _SIDE]),
            )
            if rule is not None and rule not in self._renames:
                old, new = rule
                others = [rule for rule in self._renames if rule[0] != old]
                self._renames = [*others[-7:], (old, new)]
        if joined < len(self._original):
            written_indent = self._indent(self._pool[self._output_start : resumed])
            original_indent = self._indent(self._original[: max(joined, 0)])
            if written_indent is not None and original_indent is not None:
                self._shift = written_indent - original_indent

    def _unlearn(self, row: int) -> None:
        for kind in (rows_of.RENAMED, rows_of.SHIFTED):
            start = self._slots[kind]
            if kind in self._versions and start <= row < start + self._versions[kind]:
                rule = int(self._rules[kind][row - start])
                if rule >= 0 and rule < len(self._renames):
                    del self._renames[rule]
                elif rule < 0 and kind == rows_of.SHIFTED:
                    self._shift = 0

    def _rewrite(self, kind: int, start: int, renames: list[tuple[str, str]], shift: int) -> None:
        version = rewrite(self._codec, self._original, start, renames, shift, self._is_cut)
        self._write_version(kind, version)

    def _write_version(self, kind: int, version: Version) -> None:
        at = self._slots[kind]
        count = min(len(version.tokens), self._room - 2 - len(self._ending))
        whole = count == len(version.tokens)
        self._cover(version.tokens)
        self._pool[at : at + count] = version.tokens[:count]
        self._offsets[at : at + count] = version.offsets[:count]
        stop = at + count
        if whole and len(self._ending):
            self._pool[stop : stop + len(self._ending)] = self._ending
            ends = len(self._original) + np.arange(len(self._ending))
            self._offsets[stop : stop + len(self._ending)] = ends
            stop += len(self._ending)
        self._pool[stop] = -1
        self._offsets[stop] = len(self._original) + len(self._ending)
        self._versions[kind] = stop - at
        self._rules[kind] = version.rules
        self._measure(at, stop)
        mark_places(self._pool, self._places, at, stop)
        self._lay_spans()

    def _drop_version(self, kind: int) -> None:
        if self._versions.pop(kind, None) is None:
            return
        start = self._slots[kind]
        if start <= int(self._cursor[AT]) < start + self._room:
            self._cursor[AT] = self._original_start + self._cursor[ANCHOR]
        self._lay_spans()

    def _look_up(
        self, rows: NDArray[np.int32], kinds: NDArray[np.int8]
    ) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
        assert self._index is not None
        context = self._pool[max(self._stop - 16, self._context_start) : self._stop]
        found = self._index.lookup(context, max_match=16, limit=_LOOKUP_LIMIT, depth=_LOOKUP_DEPTH)
        count = min(len(found), _LOOKUP_ROWS)
        if not count:
            return rows, kinds
        self._cover(found.tokens)
        scratch = self._pool[: _LOOKUP_ROWS * (_LOOKUP_DEPTH + 1)].reshape(_LOOKUP_ROWS, -1)
        scratch[:count, :_LOOKUP_DEPTH] = found.tokens[:count]
        places = np.arange(count, dtype=np.int32) * (_LOOKUP_DEPTH + 1)
        self._match[places] = found.lengths[:count]
        common = found.sources[:count] == Source.COMMON
        looked_up = np.where(common, rows_of.COMMON, rows_of.REPOSITORY).astype(np.int8)
        return np.concatenate([rows, places]), np.concatenate([kinds, looked_up])

    def _measure(self, start: int, stop: int) -> None:
        rows_of.measure_matches(
            self._pool, self._match, start, stop, self._context_start, self._stop
        )

    def _lay_spans(self) -> None:
        """Spans of text: one list for moving the cursor, one without the prompt's own original."""
        home = self._original_start
        spans = [(home, home + len(self._original) + len(self._ending), rows_of.ORIGINAL)]
        spans += [
            (self._slots[kind], self._slots[kind] + size, kind)
            for kind, size in sorted(self._versions.items())
        ]
        spans.append((self._phrases, self._context_start - 1, rows_of.PHRASE))
        context = (self._context_start, self._stop, rows_of.PROMPT)
        self._spans = np.array([*spans, context], np.int32)
        spans.append((self._context_start, self._copy[0], rows_of.PROMPT))
        spans.append((self._copy[1], self._output_start, rows_of.PROMPT))
        spans.append((self._output_start, self._stop, rows_of.OUTPUT))
        self._gather_spans = np.array(spans, np.int32)

    def _spell(self, phrases: list[str]) -> TokenArray:
        """Every phrase at the start of a word and within a line, a -1 before each."""
        spelt = [
            np.append(np.int32(-1), self._codec.encode(lead + phrase))
            for phrase in phrases
            for lead in ("", " ")
        ]
        return np.concatenate([*spelt, np.array([-1])]).astype(np.int32)

    def _make_room(self, count: int) -> None:
        needed = self._stop + count + 2
        if needed <= len(self._pool):
            return
        grown = 2 * needed
        for name, filler in (("_pool", -1), ("_match", 0), ("_offsets", -1), ("_places", 0)):
            old = getattr(self, name)
            new = np.full(grown, filler, np.int32)
            new[: len(old)] = old
            setattr(self, name, new)

    def _cover(self, *texts: TokenArray) -> None:
        """Make the table of classes cover every token of the pool.

        A model may have more rows than its tokenizer has tokens, and compiled code
        checks no bounds.
        """
        top = max((int(text.max(initial=-1)) for text in texts), default=-1)
        if top >= len(self._classes):
            self._classes = np.append(
                self._classes, np.zeros(2 * (top + 1) - len(self._classes), np.int8)
            )

    def _class_of(self, tokens: TokenArray, place: int) -> int:
        """Class of one token; 0 where there is none, or none of the vocabulary."""
        token = int(tokens[place]) if 0 <= place < len(tokens) else -1
        return int(self._classes[token]) if 0 <= token < len(self._classes) else 0

    def _indent(self, tokens: TokenArray) -> int | None:
        """Columns before the first visible character of the last line; None within blank."""
        tail = b"".join(self._codec.bytes_of(int(token)) for token in tokens[-96:])
        line = tail[tail.rfind(b"\n") + 1 :]
        stripped = line.lstrip(b" ")
        return len(line) - len(stripped)

    def _text(self, tokens: TokenArray) -> str:
        return b"".join(map(self._codec.bytes_of, tokens.tolist())).decode("utf-8", "replace")
