"""Changes in the middle of an ordered stream, without sorting it again."""

from __future__ import annotations

import numpy as np

from repo_index.compiled import compiled
from repo_index.ordering import (
    DEPTH,
    Order,
    Tokens,
    frozen,
    merge_orders,
    separator_of,
    sort_buckets,
)


@compiled()
def _moved(order: Order, start: int, stop: int, shift: int) -> Order:
    """``order`` without the positions from ``start`` to ``stop``, later ones moved by ``shift``."""
    moved = np.empty(len(order), np.uint32)
    n = 0
    for i in range(len(order)):
        p = np.int64(order[i])
        if p < start:
            moved[n] = p
            n += 1
        elif p >= stop:
            moved[n] = p + shift
            n += 1
    return moved[:n]


@compiled()
def _end_of_reach(tokens: Tokens, separator: int, stop: int) -> int:
    """Return the first position from ``stop`` whose context has nothing from before it."""
    p = stop
    while p < len(tokens) and p < stop + DEPTH and tokens[p] != separator:
        p += 1
    return p


def splice(
    tokens: Tokens, order: Order, start: int, stop: int, inserted: Tokens
) -> tuple[Tokens, Order]:
    """Stream and order after ``tokens[start:stop]`` was replaced by ``inserted``, equal to sorting
    afresh at the cost of two copies. Both ends lie after the first separator."""
    separator = separator_of(tokens)
    new = np.concatenate([tokens[:start], inserted.astype(tokens.dtype), tokens[stop:]])
    new_stop = start + len(inserted)
    reach = _end_of_reach(new, separator, new_stop)
    moved = _moved(frozen(order), start, stop + reach - new_stop, len(new) - len(tokens))
    piece = np.arange(max(start, 1), reach, dtype=np.uint32)
    piece = piece[(new[piece] != separator) & (new[piece - 1] != separator)]
    out = np.empty(len(moved) + len(piece), np.uint32)
    merge_orders(
        frozen(new),
        separator,
        frozen(moved),
        frozen(_sorted_piece(new, separator, piece)),
        out,
        np.zeros(2, np.int64),
        len(out),
    )
    return new, out


def _sorted_piece(tokens: Tokens, separator: int, piece: Order) -> Order:
    order = piece[np.argsort(tokens[piece - 1], kind="stable")]
    last = tokens[order - 1]
    cuts = np.flatnonzero(last[1:] != last[:-1]) + 1
    bounds = np.concatenate([[0], cuts, [len(order)]]).astype(np.int64)
    keys = np.empty(len(order), np.uint64)
    sort_buckets(frozen(tokens), separator, order, keys, bounds, 0, len(bounds) - 1)
    return order
