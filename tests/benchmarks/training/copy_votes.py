"""What an edit's drafter would choose its first token from, for fitting the weights of its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import Source, TokenArray
from accel.drafting.copy import candidates as rows_of
from accel.drafting.copy.alignment import OFF_TRACK
from accel.drafting.copy.drafter import CopyDrafter
from accel.drafting.copy.kernels import class_of
from accel.native.numba_cache import compiled


@compiled()
def gather_rows(
    pool: NDArray[np.int32],
    match: NDArray[np.int32],
    offsets: NDArray[np.int32],
    spans: NDArray[np.int32],
    context_stop: int,
    here: rows_of.Standing,
    classes: NDArray[np.int8],
    weights: NDArray[np.float64],
    limit: int,
) -> tuple[NDArray[np.int32], NDArray[np.int8], NDArray[np.int32]]:
    """The ``limit`` rows of highest score: positions, kinds, features [n, 5]. spans: int32 [k, 3]
    of start, stop and kind. Rows that match a token count, and places where an edit is likely to
    join the original again; phrases may begin anywhere."""
    size = 0
    for span in range(len(spans)):
        size += spans[span, 1] - spans[span, 0]
    chosen = np.empty(size, np.int32)
    kinds = np.empty(size, np.int8)
    count = 0
    for span in range(len(spans)):
        kind = spans[span, 2]
        for row in range(spans[span, 0], spans[span, 1]):
            begins_phrase = row > 0 and pool[row - 1] < 0
            if pool[row] >= 0 and rows_of.may_begin(
                kind, match[row], offsets[row], begins_phrase, here
            ):
                chosen[count] = row
                kinds[count] = kind
                count += 1
    features = np.empty((count, 5), np.int32)
    scores = np.empty(count, np.float64)
    for number in range(count):
        row = chosen[number]
        first, second, third, fourth, fifth = rows_of.features_of(
            np.int64(kinds[number]), np.int64(match[row]), offsets[row], context_stop - row,
            classes[pool[row]], here,
        )  # fmt: skip
        features[number, 0] = first
        features[number, 1] = second
        features[number, 2] = third
        features[number, 3] = fourth
        features[number, 4] = fifth
        score = weights[first] + weights[second] + weights[third]
        scores[number] = score + weights[fourth] + weights[fifth]
    order = np.argsort(-scores)[:limit]
    return chosen[order], kinds[order], features[order]


def votes_of(
    drafter: CopyDrafter, limit: int = 96
) -> tuple[NDArray[np.int32], TokenArray, int, int]:
    """What ``draft`` would choose its first token from, for fitting the weights.

    Features int32 [n, 5] of every row, the token int32 [n] it votes for, the feature of the
    escape, and how many tokens the cursor is off the track.
    """
    pool, classes = drafter._pool, drafter._pool.classes
    off_track = int(pool.cursor[OFF_TRACK])
    last = class_of(classes, pool.tokens, pool.stop - 1, pool.context_start)
    lost = class_of(classes, np.append(drafter._original, np.int32(-1)), pool.anchor, 0)
    breaks = int(pool.line_starts[pool.anchor]), int(pool.line_ends[pool.anchor])
    here = rows_of.Standing(pool.anchor, off_track, last, lost, *breaks)
    elsewhere = here._replace(line_start=rows_of.NOWHERE, line_end=rows_of.NOWHERE)
    rows, _, features = gather_rows(
        pool.tokens, pool.match, pool.offsets, pool.gather_spans, pool.stop,
        here, classes, drafter.weights, limit,
    )  # fmt: skip
    if drafter._index is not None:
        looked_up, sources = drafter._look_up()
        more = [
            rows_of.features_of(
                rows_of.COMMON if source == Source.COMMON else rows_of.REPOSITORY,
                int(pool.match[row]), 0, 0, int(classes[pool.tokens[row]]), elsewhere,
            )
            for row, source in zip(looked_up, sources, strict=True)
        ]  # fmt: skip
        rows = np.concatenate([rows, looked_up])
        features = np.concatenate([features, np.array(more, np.int32).reshape(-1, 5)])
    state = int(rows_of.bucket_of(off_track, rows_of.OFF_TRACK_LIMITS))
    escape = rows_of.ESCAPE_AT + state * rows_of.CLASSES + last
    return features, pool.tokens[rows], escape, off_track
