"""The cursor of an edit: which position of the original the output has reached. On track, the next
token is expected at the anchor; off it, the longest match that is near enough sets it again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.drafting.copy.candidates import (
    BREAK,
    INSTRUCTED,
    NOWHERE,
    NUMBER,
    ORIGINAL,
    REANCHOR_MATCH,
    SHIFTED,
    WORD,
    catch_up,
)
from accel.drafting.copy.deviation_rate import FOLLOWING
from accel.native.numba_cache import compiled

AT, ANCHOR, OFF_TRACK, LOST_AT = 0, 1, 2, 3
EVENT_REJOINED = 0
"""The output left the original at token 1 of the event and joined it again at 2; what is there
instead is in the context from 3 to 4."""
EVENT_LEFT_VERSION = 1
"""The token at position 1 of the pool, where the cursor was, was not taken, but the one that
another version has there."""


class CursorTexts(NamedTuple):
    """Texts of a pool that the cursor may move in, see ``CopyPool``: the last span is the context.

    cursor: int32 [4] of position in the pool, anchor, tokens off the track, position where it was
    lost; changed. marks, slips: as in ``deviation_rate``; slips is counted on.
    """

    pool: TokenArray
    match: TokenArray
    offsets: TokenArray
    spans: TokenArray
    cursor: TokenArray
    classes: NDArray[np.int8]
    marks: NDArray[np.int8]
    slips: NDArray[np.float64]


@compiled()
def follow(texts: CursorTexts, tokens: TokenArray, context_stop: int) -> TokenArray:
    """Move the cursor over ``tokens``, which join the context at ``context_stop``; it must be long
    enough. Returns the events int32 [e, 5]."""
    pool, match, offsets, _, cursor, _, marks, slips = texts
    events = np.empty((len(tokens), 5), np.int32)
    count = 0
    suffix = 0
    was_due = False
    for token in tokens:
        pool[context_stop] = token
        context_stop += 1
        suffix += 1
        cursor_at = cursor[AT]
        if cursor[OFF_TRACK] == 0:
            is_due = _is_change_due(texts)
            if is_due and not was_due:
                slips[FOLLOWING, 1] += 1.0
                slips[FOLLOWING, 0] += pool[cursor_at] != token
            was_due = is_due
            if pool[cursor_at] == token:
                slips[marks[cursor_at], 1] += 1.0
                cursor[AT] = cursor_at + 1
                cursor[ANCHOR] = offsets[cursor_at + 1]
                continue
            other = _same_place(texts, token)
            if other >= 0:
                events[count, 0] = EVENT_LEFT_VERSION
                events[count, 1] = cursor_at
                count += 1
                cursor[AT] = other + 1
                cursor[ANCHOR] = offsets[other + 1]
                continue
            slips[marks[cursor_at], 0] += 1.0
            slips[marks[cursor_at], 1] += 1.0
            cursor[LOST_AT] = context_stop - 1
        _catch_up(texts, context_stop, suffix)
        suffix = 0
        cursor[OFF_TRACK] += 1
        row = _best_return(texts)
        if row >= 0:
            events[count, 0] = EVENT_REJOINED
            events[count, 1] = cursor[ANCHOR]
            events[count, 2] = offsets[row] - match[row]
            events[count, 3] = cursor[LOST_AT]
            events[count, 4] = context_stop - match[row]
            count += 1
            cursor[AT] = row
            cursor[ANCHOR] = offsets[row]
            cursor[OFF_TRACK] = 0
    _catch_up(texts, context_stop, suffix)
    if cursor[OFF_TRACK] == 0:
        _go_as_instructed(texts)
    return events[:count]


@compiled(borrows=True)
def _is_change_due(texts: CursorTexts) -> bool:
    """Return whether the instruction asks for another token at the cursor than the original has."""
    pool, spans, cursor = texts.pool, texts.spans, texts.cursor
    is_same = in_version = False
    row, anchor = cursor[AT], cursor[ANCHOR]
    for span in range(len(spans)):
        if spans[span, 2] == ORIGINAL:
            is_same = anchor < spans[span, 1] - spans[span, 0]
            is_same = is_same and pool[spans[span, 0] + anchor] == pool[row]
        elif spans[span, 2] == INSTRUCTED:
            in_version = spans[span, 0] <= row < spans[span, 1]
    return in_version and not is_same


@compiled(borrows=True)
def _go_as_instructed(texts: CursorTexts) -> None:
    """Move the cursor to the same position of the version that the instruction makes likely, where
    the last token is there, too."""
    _, match, offsets, spans, cursor, _, _, _ = texts
    for span in range(len(spans)):
        if spans[span, 2] != INSTRUCTED or spans[span, 0] <= cursor[AT] < spans[span, 1]:
            continue
        longest = 0
        for row in range(spans[span, 0], spans[span, 1]):
            if offsets[row] == cursor[ANCHOR] and match[row] > longest:
                longest = match[row]
                cursor[AT] = row


@compiled(borrows=True)
def _catch_up(texts: CursorTexts, context_stop: int, count: int) -> None:
    """Matches of all spans after the last ``count`` tokens; the last span is the context."""
    pool, match, spans = texts.pool, texts.match, texts.spans
    if count == 0:
        return
    own = len(spans) - 1
    for span in range(own):
        catch_up(pool, match, spans[span, 0], spans[span, 1], context_stop, count)
    catch_up(pool, match, spans[own, 0], context_stop, context_stop, count)


@compiled(borrows=True)
def _same_place(texts: CursorTexts, token: int) -> int:
    """Return a row at the anchor, in any version, that continues with ``token``; else -1."""
    pool, offsets, spans, anchor = texts.pool, texts.offsets, texts.spans, texts.cursor[ANCHOR]
    for span in range(len(spans)):
        if spans[span, 2] > SHIFTED:
            continue
        for row in range(spans[span, 0], spans[span, 1]):
            if offsets[row] == anchor and pool[row] == token:
                return row
    return -1


@compiled(borrows=True)
def _best_return(texts: CursorTexts) -> int:
    """Return the row to join the original at, -1 if none: long matches first, near ones, forward
    ones (a token of match outweighs twelve of distance forward, four backward, by replay)."""
    pool, match, offsets, spans, cursor, classes, _, _ = texts
    anchor = cursor[ANCHOR]
    best = -1
    best_score = 0.0
    for span in range(len(spans)):
        if spans[span, 2] > SHIFTED:
            continue
        for row in range(spans[span, 0], spans[span, 1]):
            length = match[row]
            if length < REANCHOR_MATCH or not _says_something(pool, classes, row, length):
                continue
            ahead = offsets[row] - length - anchor
            distance = ahead if ahead >= 0 else -3 * ahead
            score = 3.0 * min(length, 12) - 0.25 * min(distance, 60)
            if score > best_score:
                best_score = score
                best = row
    return best


@compiled(borrows=True)
def _says_something(
    pool: NDArray[np.int32], classes: NDArray[np.int8], row: int, length: int
) -> bool:
    """Return whether the match before ``row`` is long or holds a word."""
    if length >= 4:
        return True
    words = 0
    for back in range(1, length + 1):
        words += WORD <= classes[pool[row - back]] <= NUMBER
    return words > 0


def breaks_around(
    original: TokenArray, classes: NDArray[np.int8]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """For every position of the original, and the one after it, the line break before it and the
    one at or after it."""
    count = len(original)
    marks = classes[original] == BREAK
    positions = np.arange(count, dtype=np.int32)
    before = np.append(np.int32(NOWHERE), np.where(marks, positions, NOWHERE))
    after = np.append(np.where(marks, positions, count), np.int32(count))
    return (
        np.maximum.accumulate(before).astype(np.int32),
        np.minimum.accumulate(after[::-1])[::-1].astype(np.int32),
    )
