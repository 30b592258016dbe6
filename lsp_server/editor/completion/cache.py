"""A cache of suggestions: typing into one, or coming back to it, costs no model time. An entry is
found by the text around its position, up to :data:`LOOKBACK` typed characters back."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from lsp_server.tasks.completion.confidence_gate import (
    LikelyPiece,
    gated,
    least_joint,
    rest_of,
    sure_length,
)

LOOKBACK = 128
"""Typed characters between where a suggestion was made and the cursor."""
TAIL = 256
HEAD = 128
ENTRIES_PER_DOCUMENT = 64
DOCUMENTS = 64
LIFETIME_S = 600.0

_CLOSERS = ")]}>\"'`"


@dataclass(slots=True)
class Entry:
    """Text that the model wrote between ``tail`` and ``head``."""

    tail: str
    head: str
    text: str
    complete: bool
    """Generation ended by itself. Of an unfinished text only whole lines are used."""
    pieces: Sequence[LikelyPiece] = ()
    """How likely the model found its tokens. Where that is known there is more to ask for by
    hand."""
    is_cut: bool = False
    """More may come into sight at its end."""
    made: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class CacheHit:
    """The rest of a cached suggestion after the text typed since."""

    text: str
    complete: bool
    pieces: Sequence[LikelyPiece] = ()


class SuggestionCache:
    """Suggestions of several documents, newest first in each."""

    def __init__(self) -> None:
        self._documents: OrderedDict[str, list[Entry]] = OrderedDict()

    def add(
        self,
        document: str,
        prefix: str,
        suffix: str,
        text: str,
        complete: bool,
        pieces: Sequence[LikelyPiece] = (),
        is_cut: bool = False,
    ) -> None:
        """Remember what was written between ``prefix`` and ``suffix``."""
        entry = Entry(prefix[-TAIL:], suffix[:HEAD], text, complete, pieces, is_cut)
        entries = self._documents.setdefault(document, [])
        self._documents.move_to_end(document)
        entries[:] = [old for old in entries if (old.tail, old.head) != (entry.tail, entry.head)][
            : ENTRIES_PER_DOCUMENT - 1
        ]
        entries.insert(0, entry)
        while len(self._documents) > DOCUMENTS:
            self._documents.popitem(last=False)

    def find(
        self,
        document: str,
        prefix: str,
        suffix: str,
        *,
        invoked: bool = False,
        threshold: float = 0.0,
    ) -> CacheHit | None:
        """Return the rest of a cached suggestion that fits here. None without one, or if the model
        can say more: for requests by hand (``invoked``), and if it was unsure (by ``threshold``) of
        a token that is now typed in part, or of what comes after all that is written."""
        now = time.monotonic()
        window = prefix[-(TAIL + LOOKBACK) :]
        for entry in self._documents.get(document, ()):
            if now - entry.made < LIFETIME_S and _same_suffix(entry.head, suffix):
                hit = _rest(entry, window, len(window) == len(prefix))
                if hit is not None:
                    asks = invoked or (threshold > 0 and _has_more(entry, hit, threshold))
                    return None if entry.pieces and asks else hit
        return None

    def forget(self, document: str) -> None:
        """A document was closed, or its suggestions were turned down."""
        self._documents.pop(document, None)


def _rest(entry: Entry, window: str, is_whole: bool) -> CacheHit | None:
    """Return the rest of ``entry`` at the end of ``window``; shortest typed text first."""
    for typed in range(min(LOOKBACK, len(entry.text), len(window)) + 1):
        if not window.endswith(entry.text[:typed]):
            continue
        before = window[: len(window) - typed]
        if not before.endswith(entry.tail):
            continue
        if len(entry.tail) < TAIL and not (is_whole and before == entry.tail):
            # A short tail is the beginning of a document: nothing may come before it.
            continue
        rest, pieces = entry.text[typed:], rest_of(entry.pieces, typed)
        if entry.complete:
            return CacheHit(rest, True, pieces) if rest or not typed else None
        lines = rest[: max(0, rest.rfind("\n"))]
        return CacheHit(lines, False, pieces) if lines.strip() else None
    return None


def _has_more(entry: Entry, hit: CacheHit, threshold: float) -> bool:
    """Return True if the model may say more than ``hit``, as text was typed since: all of it is
    sure up to where it was cut, or would be shown if a token that is typed in part were certain."""
    pieces = list(hit.pieces)
    if pieces and pieces[0] != entry.pieces[-len(pieces)]:
        pieces[0] = pieces[0]._replace(logprob=0.0)
    is_sure = sure_length(pieces, least_joint(threshold)) >= len(hit.text)
    if entry.is_cut and is_sure and hit.text != entry.text:
        return True
    is_hidden = not gated(hit.text, hit.pieces, threshold)
    return is_hidden and bool(gated(hit.text, pieces, threshold))


def _same_suffix(head: str, suffix: str) -> bool:
    """Return True if the same text follows, but for what the editor closed by itself."""
    if _continues(head, suffix):
        return True
    for closed in range(1, 4):
        if suffix[closed - 1 : closed] not in _CLOSERS or len(suffix) < closed:
            return False
        if _continues(head, suffix[closed:]):
            return True
    return False


def _continues(head: str, suffix: str) -> bool:
    return suffix.startswith(head) if len(head) == HEAD else suffix == head
