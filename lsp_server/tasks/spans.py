"""Cuts generated text into spans by the sources of its tokens."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from lsp_server.shared.contract.jobs import Span, TokenLogprob

if TYPE_CHECKING:
    from accel.verification.confidence import Confidence, Logprob


class SpanBuilder:
    """Turns tokens into spans of text; neighbours of one source are one span. ``skip``: bytes at
    the start of the generation that are typed already and not part of the text."""

    def __init__(self, bytes_of: Callable[[int], bytes], skip: int = 0) -> None:
        self._bytes_of = bytes_of
        self._skip = skip
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.spans: list[Span] = []

    def add(self, tokens: Iterable[int], sources: Iterable[str]) -> list[Span]:
        """Return spans that these tokens add, also kept in ``spans``."""
        added: list[Span] = []
        pieces = zip(sources, map(self._bytes_of, tokens), strict=True)
        for source, run in groupby(pieces, key=itemgetter(0)):
            spelt = b"".join([piece for _, piece in run])
            text = self._decoder.decode(spelt[self._skip :])
            self._skip = max(0, self._skip - len(spelt))
            if text:
                _append(added, text, source)
        for span in added:
            _append(self.spans, span.text, span.source)
        return added

    def add_one_by_one(self, logprobs: Sequence[Logprob], sources: Iterable[str]) -> list[Span]:
        """Return a span for each token, with how likely it was; its text may be empty."""
        added: list[Span] = []
        for scores, source in zip(logprobs, sources, strict=True):
            text = "".join(span.text for span in self.add([scores.token], [source]))
            token_logprob = TokenLogprob(
                list(self._bytes_of(scores.token)),
                scores.logprob,
                [(list(self._bytes_of(token)), logprob) for token, logprob in scores.likeliest],
            )
            added.append(Span(text, source, token_logprob=token_logprob))
        return added

    def add_likely(
        self, tokens: Sequence[int], sources: Sequence[str], confidences: Sequence[Confidence]
    ) -> list[Span]:
        """Return a span for each token, with its log probability; its text may be empty. An empty
        one more tells of the end of a text that ended by itself."""
        added: list[Span] = []
        for token, source, confidence in zip(tokens, sources, confidences, strict=False):
            text = "".join(span.text for span in self.add([token], [source]))
            added.append(Span(text, source, confidence.token, end_logprob=confidence.end))
        if len(confidences) > len(tokens):
            added.append(Span("", "model", 0.0, end_logprob=confidences[-1].end))
        return added

    def cut(self, length: int) -> list[Span]:
        """Return all spans, cut to the first ``length`` characters."""
        return first_spans(self.spans, length)


def first_spans(spans: Sequence[Span], length: int) -> list[Span]:
    """Return spans cut to the first ``length`` characters."""
    shortened: list[Span] = []
    for span in spans:
        if length <= 0:
            break
        shortened.append(Span(span.text[:length], span.source))
        length -= len(span.text)
    return shortened


def _append(spans: list[Span], text: str, source: str) -> None:
    if spans and spans[-1].source == source:
        spans[-1] = Span(spans[-1].text + text, source)
    else:
        spans.append(Span(text, source))
