"""Text to token ids for the index: the ids that the model's own side gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer


@dataclass(frozen=True, slots=True)
class Encoding:
    """Token ids of a text and where they lie in it. ids: int32 [n]; starts: int32 [n], the
    character at which each begins; borders: bool [n], whether it begins a piece of the
    pre-tokenizer."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int32]
    borders: NDArray[np.bool_]


class TextTokenizer:
    """A model's tokenizer, made by its own side, as the index uses it."""

    def __init__(self, tokenizer: Tokenizer, sha256: str, vocabulary_size: int) -> None:
        """``tokenizer``: adds nothing, and takes text that looks like a special token as the
        characters that it is; ``sha256``: of its ``tokenizer.json``."""
        self._tokenizer: Any = tokenizer
        self.sha256, self.vocabulary_size = sha256, vocabulary_size
        self.splits = tokenizer.pre_tokenizer is not None
        """Whether texts are cut into pieces that are encoded each for itself."""

    def encode(self, texts: list[str]) -> list[NDArray[np.int32]]:
        """Return token ids of every text. The library uses all cores, and other threads run
        meanwhile."""
        encodings = self._tokenizer.encode_batch_fast(
            [well_formed(text) for text in texts], add_special_tokens=False
        )
        return [np.array(encoding.ids, np.int32) for encoding in encodings]

    def decode(self, tokens: NDArray[np.int32]) -> str:
        """Return the text of token ids, int32 [n]."""
        return str(self._tokenizer.decode(tokens.tolist(), skip_special_tokens=False))

    def encode_with_starts(self, text: str) -> Encoding:
        """Return token ids of one text and where they lie in it."""
        encoding = self._tokenizer.encode(well_formed(text), add_special_tokens=False)
        count = len(encoding.ids)
        words = np.array([-1 if word is None else word for word in encoding.word_ids], np.int32)
        borders = np.ones(count, np.bool_)
        borders[1:] = words[1:] != words[:-1]
        starts = np.fromiter((start for start, _ in encoding.offsets), np.int32, count)
        return Encoding(np.array(encoding.ids, np.int32), starts, borders)


def well_formed(text: str) -> str:
    """``text`` with lone surrogates, which no encoding has, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text
