"""The output of a generation: its tokens, their text, and the end."""

from __future__ import annotations

import codecs

from accel.decoding.request import GenerationRequest, StoppedBy
from accel.text.token_healing import rest_after
from accel.text.tokenizer import Tokenizer


class OutputBuffer:
    """The tokens of one request until it ends. Text is decoded when it is read: without a stop rule
    only the end needs it."""

    def __init__(
        self, request: GenerationRequest, tokenizer: Tokenizer, ends: frozenset[int]
    ) -> None:
        """``ends``: tokens that end the text and are no part of it."""
        self.tokens: list[int] = []
        self.rest = request.required_prefix
        """Bytes typed already that the tokens have still to spell."""
        self.is_finished = False
        self.stopped_by: StoppedBy = "cancelled"
        self._tokenizer = tokenizer
        self._ends = ends
        self._stop_rule = request.stop_rule
        self._max_tokens = request.max_tokens
        self._text = ""
        self._spelt = 0
        self._skip = len(request.required_prefix)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def text(self) -> str:
        """Text so far, without the required prefix, cut by the stop rule."""
        spelt = self._tokenizer.decode_bytes(self.tokens[self._spelt :])
        self._spelt = len(self.tokens)
        self._text += self._decoder.decode(spelt[self._skip :])
        self._skip = max(self._skip - len(spelt), 0)
        return self._text

    def take(self, tokens: list[int]) -> int:
        """Append tokens until the request ends; returns how many belong to the text."""
        if self._stop_rule is None and not self.rest:
            return self._take_at_once(tokens)
        for count, token in enumerate(tokens):
            if token in self._ends:
                self.finish("end")
                return count
            self.tokens.append(token)
            if self.rest:
                self.rest = rest_after(self.rest, self._tokenizer.bytes_of(token)) or b""
            cut = self._stop_rule(self.text) if self._stop_rule else None
            if cut is not None:
                self._text = self._text[:cut]
                self.finish("stop")
                return count + 1
            if len(self.tokens) >= self._max_tokens:
                self.finish("length")
                return count + 1
        return len(tokens)

    def rest_after(self, tokens: list[int]) -> bytes:
        """Return the rest of the required prefix after ``tokens`` are appended to the text."""
        rest = self.rest
        for token in tokens:
            if not rest:
                break
            rest = rest_after(rest, self._tokenizer.byte_index.bytes_of(token)) or b""
        return rest

    def finish(self, reason: StoppedBy) -> None:
        """The text is complete; the first reason counts."""
        if not self.is_finished:
            self.is_finished = True
            self.stopped_by = reason

    def _take_at_once(self, tokens: list[int]) -> int:
        room = self._max_tokens - len(self.tokens)
        ended = len(tokens)
        if not self._ends.isdisjoint(tokens):
            ended = next(offset for offset, token in enumerate(tokens) if token in self._ends)
        count = min(ended, room)
        self.tokens += tokens[:count]
        if room <= ended:
            self.finish("length")
        elif ended < len(tokens):
            self.finish("end")
        return count
