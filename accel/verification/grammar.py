"""Texts that have to fit a grammar: a mask over tokens at each node of a draft tree, so that drafts
stay lossless among the texts that fit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from accel.errors import InvalidRequest

if TYPE_CHECKING:
    from accel.text.tokenizer import Tokenizer

MISSING = (
    "answers by a schema and calls that have to be made need the package llguidance at the server: "
    "pip install 'redraft[grammar]'; or leave response_format and tool_choice out"
)


class _Vocabulary:
    """A tokenizer as llguidance reads it."""

    bos_token_id = None
    special_token_ids: Sequence[int] = ()
    is_tokenizer_wrapper = True

    def __init__(self, tokenizer: Tokenizer, ends: Sequence[int]) -> None:
        self.eos_token_id = ends[0]
        self.tokens = tokenizer.byte_table
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text).tolist())


@lru_cache(maxsize=2)
def _vocabulary(tokenizer: Tokenizer, ends: tuple[int, ...]) -> Any:
    try:
        from llguidance import LLTokenizer
    except ImportError:
        raise InvalidRequest(MISSING) from None
    return LLTokenizer(_Vocabulary(tokenizer, ends), eos_token=list(ends))


class Grammar:
    """The state of one text. Told the text as it grows."""

    def __init__(self, tokenizer: Tokenizer, ends: frozenset[int], grammar: str) -> None:
        """``ends``: tokens that end the text; ``grammar``: in the form of Lark. Raises
        InvalidRequest."""
        vocabulary = _vocabulary(tokenizer, tuple(sorted(ends)))
        from llguidance import LLMatcher

        try:
            self._matcher = LLMatcher(vocabulary, LLMatcher.grammar_from_lark(grammar))
        except ValueError as error:
            raise InvalidRequest(f"the schema cannot be followed: {_short(error)}") from None
        if self._matcher.is_error():
            reason = _short(self._matcher.get_error())
            raise InvalidRequest(f"the schema cannot be followed: {reason}")
        self._length = 0

    def masked(
        self, logits: NDArray[np.float32], text: Sequence[int], above: Sequence[int]
    ) -> NDArray[np.float32]:
        """Return ``logits`` of the tokens that may come after ``text`` and ``above``, the path to a
        node; minus infinity of all others."""
        matcher = self._matcher
        matcher.consume_tokens(list(text[self._length :]))
        self._length = len(text)
        matcher.consume_tokens(list(above))
        bits = np.frombuffer(matcher.compute_bitmask(), np.uint8)
        allowed = np.unpackbits(bits, bitorder="little")[: len(logits)].astype(bool)
        matcher.rollback(len(above))
        masked = np.full_like(logits, -np.inf)
        masked[: len(allowed)][allowed] = logits[: len(allowed)][allowed]
        return masked


def _short(reason: object) -> str:
    return " ".join(str(reason).split())[:200]
