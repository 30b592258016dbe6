"""A text under edit and its token ids: an edit encodes again what it touched, no more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from repo_index.common_ends import common_ends
from repo_index.tokens import Encoding, TextTokenizer

_FIRST_REACH = 240
"""Characters after an edit that are encoded at first; more when the pieces do not fall in step."""


@dataclass(frozen=True, slots=True)
class TokenChange:
    """Tokens ``start`` to ``stop`` of the former encoding became ``inserted`` (int32)."""

    start: int
    stop: int
    inserted: NDArray[np.int32]


class EditedText:
    """A text and its encoding, kept equal to encoding the whole text afresh: from two lines before
    an edit until a piece of the pre-tokenizer begins where one began before. Tokenizers without
    pieces encode the whole text."""

    def __init__(self, tokenizer: TextTokenizer, text: str) -> None:
        """Encodes ``text`` as a whole."""
        self._tokenizer = tokenizer
        self.text = text
        self._encoding = tokenizer.encode_with_starts(text)

    @property
    def ids(self) -> NDArray[np.int32]:
        """Token ids of the text."""
        return self._encoding.ids

    @property
    def starts(self) -> NDArray[np.int32]:
        """Character at which each token begins."""
        return self._encoding.starts

    def set_text(self, text: str) -> TokenChange:
        """Become ``text``, taken as one edit of what differs."""
        start, stop = self.difference(text)
        return self.change(start, stop + len(self.text) - len(text), text[start:stop])

    def difference(self, text: str) -> tuple[int, int]:
        """Return a change of a text: from its character ``start`` to ``stop``."""
        start, end = common_ends(self.text, text)
        return start, len(text) - end

    def change(self, start: int, stop: int, inserted: str) -> TokenChange:
        """Replace the characters from ``start`` to ``stop``."""
        old = self._encoding
        text = self.text[:start] + inserted + self.text[stop:]
        shift = len(inserted) - (stop - start)
        edit_end = start + len(inserted)
        first = self._token_to_begin_at(start)
        begin = int(old.starts[first]) if first else 0
        reach = _FIRST_REACH
        while True:
            end = _line_end(text, edit_end + reach)
            new = self._tokenizer.encode_with_starts(text[begin:end])
            if end == len(text):
                last_new, last_old = len(new.ids), len(old.ids)
                break
            step = self._first_in_step(new, begin, shift, _line_end(text, edit_end), end)
            if step is not None:
                last_new, last_old = step
                break
            reach *= 4
        self._encoding = Encoding(
            np.concatenate([old.ids[:first], new.ids[:last_new], old.ids[last_old:]]),
            np.concatenate(
                [
                    old.starts[:first],
                    new.starts[:last_new] + np.int32(begin),
                    old.starts[last_old:] + np.int32(shift),
                ]
            ),
            np.concatenate([old.borders[:first], new.borders[:last_new], old.borders[last_old:]]),
        )
        self.text = text
        return TokenChange(first, last_old, new.ids[:last_new])

    def _token_to_begin_at(self, start: int) -> int:
        """Return the last piece that begins two lines before the edit, or the first token."""
        if not self._tokenizer.splits:
            return 0
        line = self.text.rfind("\n", 0, max(0, self.text.rfind("\n", 0, start)))
        if line <= 0:
            return 0
        token = int(np.searchsorted(self._encoding.starts, line, "right")) - 1
        while token > 0 and not self._encoding.borders[token]:
            token -= 1
        # A character may be several tokens, all of which begin at it.
        while token > 0 and self._encoding.starts[token - 1] == self._encoding.starts[token]:
            token -= 1
        return token if self._encoding.borders[token] else 0

    def _first_in_step(
        self, new: Encoding, begin: int, shift: int, low: int, end: int
    ) -> tuple[int, int] | None:
        """Return first pieces, new and old, that begin at the same position after character
        ``low``. Not the last pieces of what was encoded, which a longer text might have cut
        otherwise."""
        if not self._tokenizer.splits:
            return None
        old = self._encoding
        safe = end - _FIRST_REACH // 2
        fitting = np.flatnonzero(
            new.borders & (new.starts + begin > low) & (new.starts + begin < safe)
        )
        for index in fitting:
            expected = int(new.starts[index]) + begin - shift
            match = int(np.searchsorted(old.starts, expected, "left"))
            if match < len(old.ids) and old.starts[match] == expected and old.borders[match]:
                return int(index), match
        return None


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 or position >= len(text) else end
