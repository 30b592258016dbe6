"""Open buffers in one segment: the text that an editor shows, instead of what is on the disk.
Snapshots that are in use keep their arrays. Used by one thread at a time."""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from repo_index.edited_text import EditedText, TokenChange
from repo_index.ordering import frozen, separator_of, stream_type
from repo_index.reading import long_lines, unix_lines
from repo_index.secret_paths import secret_path
from repo_index.secrets import secret_content
from repo_index.segment import Segment
from repo_index.splicing import splice
from repo_index.tokens import TextTokenizer

MAX_BUFFER_CHARACTERS = 2_000_000
_BACK_OFF = 3


class Overlay:
    """The buffers of one workspace. ``version`` grows with every change."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        """``tokenizer``: that of the datastore above which the buffers lie."""
        self.version = 0
        self._tokenizer = tokenizer
        self._texts: dict[str, EditedText] = {}
        self._paths: set[str] = set()
        self._order_of_paths: list[str] = []
        self.dtype = stream_type(tokenizer.vocabulary_size)
        """Of its tokens, and of all in the datastore."""
        self._tokens = np.full(1, np.iinfo(self.dtype).max, self.dtype)
        self._order = np.empty(0, np.uint32)
        self._starts: list[int] = []
        self._segment: Segment | None = None

    @property
    def paths(self) -> frozenset[str]:
        """Paths of all buffers, those left out too: none of them is looked up on the disk."""
        return frozenset(self._paths)

    def segment(self) -> Segment:
        """The buffers as they are now."""
        if self._segment is None:
            self._segment = Segment(
                frozen(self._tokens),
                frozen(self._order),
                frozen(np.array(self._starts, np.uint32)),
                tuple(self._order_of_paths),
            )
        return self._segment

    def set_buffer(self, path: str, text: str) -> None:
        """``path`` (as the datastore names it) shows ``text``: opened, or changed in any way. A
        text with credentials, or too long for one, stays out but hides what is on the disk."""
        text = unix_lines(text)
        former = self._texts.get(path)
        if former is not None and former.text == text:
            return
        self.version += 1
        self._paths.add(path)
        if self._reason(path, text, former):
            if former is not None:
                self._remove(path)
            return
        if former is not None:
            self._apply(path, former.set_text(text))
            return
        edited = EditedText(self._tokenizer, text)
        self._texts[path] = edited
        index = bisect.bisect(self._order_of_paths, path)
        self._order_of_paths.insert(index, path)
        start = self._starts[index] if index < len(self._starts) else len(self._tokens)
        separator = np.array([separator_of(self._tokens)], self._tokens.dtype)
        self._splice(start, start, np.concatenate([edited.ids.astype(separator.dtype), separator]))
        self._starts.insert(index, start)
        self._move(index + 1, len(edited.ids) + 1)

    def close_buffer(self, path: str) -> None:
        """Let the file on the disk count again. Nothing happens when ``path`` is not open."""
        if path not in self._paths:
            return
        self.version += 1
        self._paths.remove(path)
        if path in self._texts:
            self._remove(path)

    def positions_at(self, path: str, character: int) -> tuple[int, int]:
        """Return positions of the segment around a character of a buffer, first and after the last,
        where a prompt that ends there may end; (0, 0) when the buffer is not indexed."""
        text = self._texts.get(path)
        if text is None:
            return 0, 0
        start = self._starts[bisect.bisect_left(self._order_of_paths, path)]
        token = int(np.searchsorted(text.starts, character, "left"))
        return start + max(0, token - _BACK_OFF), start + token + 1

    def _reason(self, path: str, text: str, former: EditedText | None) -> str:
        if reason := secret_path(path):
            return reason
        if len(text) > MAX_BUFFER_CHARACTERS:
            return "too long"
        if reason := long_lines(text):
            return reason
        if former is None:
            return secret_content(text)
        # What was there was clean, so a credential must lie in the lines that changed.
        start, stop = former.difference(text)
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", min(len(text), stop + 600))
        return secret_content(text[max(0, first - 600) : last if last >= 0 else len(text)])

    def _apply(self, path: str, change: TokenChange) -> None:
        index = bisect.bisect_left(self._order_of_paths, path)
        start = self._starts[index]
        self._splice(start + change.start, start + change.stop, change.inserted)
        self._move(index + 1, len(change.inserted) - (change.stop - change.start))

    def _remove(self, path: str) -> None:
        index = bisect.bisect_left(self._order_of_paths, path)
        length = len(self._texts.pop(path).ids) + 1
        start = self._starts[index]
        self._splice(start, start + length, self._tokens[:0])
        del self._order_of_paths[index]
        del self._starts[index]
        self._move(index, -length)

    def _move(self, index: int, shift: int) -> None:
        for i in range(index, len(self._starts)):
            self._starts[i] += shift

    def _splice(self, start: int, stop: int, inserted: NDArray[Any]) -> None:
        self._tokens, self._order = splice(self._tokens, self._order, start, stop, inserted)
        self._segment = None
