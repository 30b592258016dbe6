"""Copy rows: places in known text from which the next tokens may be copied, and their scores.

All text that an edit can copy from lies in one ``pool`` of token ids; -1 ends a text. A row is a
position in it, and ``match`` holds how many tokens before a row equal the end of the context. A
row's score is a sum of entries of one weight vector (``copy_weights``); ``exp(score)`` is its vote.
"""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from accel.native.numba_cache import compiled
from accel.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from accel.drafting.copy.rewrites import TextCodec

ORIGINAL = 0
RENAMED = 1
INSTRUCTED = 2
SHIFTED = 3
PROMPT = 4
OUTPUT = 5
REPOSITORY = 6
COMMON = 7
PHRASE = 8
KINDS = 9

MATCH_LIMITS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 48)
"""The tables have a weight for matched tokens up to each of these, and one for more."""
COARSE_LIMITS = (0, 1, 2, 3, 7)
"""As ``MATCH_LIMITS``, where the relation to the anchor counts, too."""
OFF_TRACK_LIMITS = (0, 1, 2, 4, 8, 16, 32)
"""Tokens since the cursor lost the original."""
AGE_LIMITS = (16, 64, 256, 1024)
"""Tokens from a row of the context to its end."""
MATCH_BUCKETS = len(MATCH_LIMITS) + 1
STATES = len(OFF_TRACK_LIMITS) + 1
ON_TRACK = 0
INSERTED = 1
SUBSTITUTED = 2
LINE_REPLACED = 3
LINE_INSERTED = 4
AHEAD = 5
BEHIND = 13
RELATIONS = 17
COARSE_MATCHES = len(COARSE_LIMITS) + 1
AGES = len(AGE_LIMITS) + 1
CLASSES = 10
SYNTAX_MATCHES = 4

MATCH_AT = 0
RELATION_AT = MATCH_AT + KINDS * MATCH_BUCKETS
PAIR_AT = RELATION_AT + RELATIONS * STATES * 2
AGE_AT = PAIR_AT + RELATIONS * COARSE_MATCHES
PHRASE_AT = AGE_AT + AGES * STATES
SYNTAX_AT = PHRASE_AT + STATES * 2
CHANGE_AT = SYNTAX_AT + 2 * SYNTAX_MATCHES * CLASSES * CLASSES
ESCAPE_AT = CHANGE_AT + RELATIONS * CLASSES * CLASSES
NOTHING_AT = ESCAPE_AT + STATES * CLASSES
WEIGHTS = NOTHING_AT + 1

BREAK = 1
WORD = 2
NUMBER = 4
"""Some classes of tokens; ``token_classes`` has them all, words from WORD to NUMBER."""

# Measure with `python -m tests.benchmarks edit --cases CASES/edit_canitedit.jsonl`.
REANCHOR_MATCH = 2
NOWHERE = -9
LOOK_AHEAD = 6


@cache
def row_weights() -> NDArray[np.float64]:
    """Return weights of the rows' features, fitted by ``tests.benchmarks train copy-weights`` on
    public commit histories and made-up edits: how often text of a kind, at a position, after such a
    match, is what comes next."""
    weights = np.load(Path(__file__).with_name("copy_weights.npy")).astype(np.float64)
    assert len(weights) == WEIGHTS, "copy_weights.npy is of another version; fit it anew"
    return weights


@lru_cache(maxsize=4)
def classes_of(codec: TextCodec) -> NDArray[np.int8]:
    """``token_classes`` of a vocabulary, made once: that takes as long as decoding an edit."""
    if isinstance(codec, Tokenizer):
        table = codec.kept("classes", lambda: {"classes": token_classes(codec.byte_table)})
        return table["classes"]
    return token_classes([codec.bytes_of(token) for token in range(codec.vocabulary_size)])


def token_classes(spelling: list[bytes]) -> NDArray[np.int8]:
    """Return the class of each token of a vocabulary, int8 [vocabulary], below ``CLASSES``: 0
    other, 1 line break, 2 word after a space, 3 word, 4 number, 5 opening bracket, 6 closing
    bracket, 7 dot, 8 comma, colon or equals sign, 9 quote."""
    classes = np.zeros(max(len(spelling), 1), np.int8)
    for token, text in enumerate(spelling):
        bare = text.strip(b" ")
        if b"\n" in text:
            classes[token] = BREAK
        elif not bare:
            continue
        elif bare[:1].isdigit():
            classes[token] = 4
        elif bare[:1].isalnum() or bare[:1] == b"_" or bare[0] > 127:
            classes[token] = 2 if text[:1] == b" " else 3
        elif bare[-1:] in b"([{":
            classes[token] = 5
        elif bare[:1] in b")]}":
            classes[token] = 6
        elif bare[:1] == b".":
            classes[token] = 7
        elif bare[:1] in b",:=":
            classes[token] = 8
        elif bare[:1] in b"'\"":
            classes[token] = 9
    return classes


@compiled(borrows=True)
def catch_up(
    pool: NDArray[np.int32],
    match: NDArray[np.int32],
    start: int,
    stop: int,
    context_stop: int,
    count: int,
) -> None:
    """Bring ``match[start:stop]`` up to date after the last ``count`` tokens before
    ``context_stop`` were added to the context. Most rows are looked at once."""
    for row in range(stop - 1, start - 1, -1):
        most = min(count, row - start)
        length = 0
        while length < most and pool[row - 1 - length] == pool[context_stop - 1 - length]:
            length += 1
        match[row] = length + match[row - count] if length == count else length


@compiled(borrows=True)
def measure_matches(
    pool: NDArray[np.int32],
    match: NDArray[np.int32],
    start: int,
    stop: int,
    context_start: int,
    context_stop: int,
) -> None:
    """Compute ``match[start:stop]`` from nothing, for text that joined the pool just now."""
    for row in range(start, stop):
        length = 0
        while (
            row - length > start
            and context_stop - length > context_start
            and pool[row - 1 - length] == pool[context_stop - 1 - length]
        ):
            length += 1
        match[row] = length


@compiled(borrows=True)
def bucket_of(value: int, limits: tuple[int, ...]) -> int:
    """Return the index of the first of some ascending limits that ``value`` is not above; their
    number where it is above all."""
    for index in range(len(limits)):
        if value <= limits[index]:
            return index
    return len(limits)


class Standing(NamedTuple):
    """State of the text: at ``anchor`` in the original, ``off_track`` tokens after it left it,
    after a token of ``last_class``, before one of ``lost_class``, in the line of the original from
    ``line_start`` to ``line_end``."""

    anchor: int
    off_track: int
    last_class: int
    lost_class: int
    line_start: int
    line_end: int


@compiled(borrows=True)
def relation_of(offset: int, length: int, here: Standing) -> int:
    """Return the relation to the anchor of a row at ``offset`` of the original that matches
    ``length`` tokens."""
    anchor, off_track = here.anchor, here.off_track
    line_start, line_end = here.line_start, here.line_end
    if off_track == 0 and offset == anchor:
        return ON_TRACK
    begin = offset - length
    ahead = begin - anchor
    if ahead == 0:
        return INSERTED
    if off_track > 0:
        if ahead > 0 and ahead == off_track - length:
            return SUBSTITUTED
        if begin == line_end or (length == 0 and begin == line_end + 1):
            return LINE_REPLACED
        if begin == line_start or (length == 0 and begin == line_start + 1):
            return LINE_INSERTED
    if ahead > 0:
        step = 0
        while ahead > 1 and step < 7:
            ahead >>= 1
            step += 1
        return AHEAD + step
    return BEHIND + (ahead < -3) + (ahead < -15) + (ahead < -63)


@compiled(borrows=True)
def features_of(
    kind: int, length: int, offset: int, age: int, next_class: int, here: Standing
) -> tuple[int, int, int, int, int]:
    """Return indices of the five weights that make up a row's score."""
    off_track, last_class = here.off_track, here.last_class
    state = bucket_of(off_track, OFF_TRACK_LIMITS)
    at_line = 1 if last_class == BREAK else 0
    first = MATCH_AT + kind * MATCH_BUCKETS + bucket_of(length, MATCH_LIMITS)
    group = 0 if kind <= SHIFTED else 1
    matched = min(length, SYNTAX_MATCHES - 1)
    syntax = SYNTAX_AT + (
        ((group * SYNTAX_MATCHES + matched) * CLASSES + last_class) * CLASSES + next_class
    )
    if kind <= SHIFTED:
        relation = relation_of(offset, length, here)
        second = RELATION_AT + (relation * STATES + state) * 2 + at_line
        third = PAIR_AT + relation * COARSE_MATCHES + bucket_of(length, COARSE_LIMITS)
        change = NOTHING_AT
        if off_track == 1:
            change = CHANGE_AT + (relation * CLASSES + last_class) * CLASSES + here.lost_class
        return first, second, third, syntax, change
    if kind <= OUTPUT:
        second = AGE_AT + bucket_of(age, AGE_LIMITS) * STATES + state
        return first, second, NOTHING_AT, syntax, NOTHING_AT
    if kind == PHRASE:
        return first, PHRASE_AT + state * 2 + at_line, NOTHING_AT, syntax, NOTHING_AT
    return first, NOTHING_AT, NOTHING_AT, syntax, NOTHING_AT


@compiled(borrows=True)
def may_begin(kind: int, length: int, offset: int, begins_phrase: bool, here: Standing) -> bool:
    """Return whether a row gets a vote: it matches, or an edit is likely to go on there."""
    if length > 0:
        return True
    if kind == PHRASE:
        return begins_phrase
    if kind > SHIFTED:
        return False
    anchor, off_track = here.anchor, here.off_track
    if 0 <= offset - anchor <= LOOK_AHEAD:
        return True
    if off_track == 0:
        return False
    line_start, line_end = here.line_start, here.line_end
    if offset in (anchor + off_track, line_start, line_end):
        return True
    return here.last_class == BREAK and offset in (line_start + 1, line_end + 1)
