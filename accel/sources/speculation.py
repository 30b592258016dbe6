"""Trees of a speculator, grown in one call of compiled code.

A node is one step of a small network (``speculated_step``), or what stands behind its parent's
token where that was copied from the text: the network tells well whether a match goes on, and from
there its run is right in most cases. Nodes are taken best first while their paths are probable
enough to be worth their time in the forward.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.experimental import structref
from numpy.typing import NDArray

from accel import choice, compiled_parts, ending, int8, lanes, matmul, meeting, speculator
from accel.choice import LEAST_CHANCE, MOST_NODES, NODE_S, Chains, note_speculated, run_of, worth_of
from accel.draft_tree import Source, TokenArray
from accel.ending import Ended, nothing_ended
from accel.rows import BLOCKED
from accel.sources import prompt, speculated_head, speculated_step
from accel.sources.compiled import FieldsType, compiled_with
from accel.sources.prompt import match_from
from accel.sources.speculated_head import Head, cover, forget
from accel.sources.speculated_step import CHILDREN, MOST_SEEN, Work, go_on, guess, likeliest, start
from accel.speculator import LENGTHS, Floats, Speculator

LEAST_SEEN = 0.2
"""Chance of a path from which it is worth to look behind its end, if what is likeliest there, with
the chance of ``_LIKELIEST``, is worth its time."""
_LIKELIEST = 0.7

ONWARD = (0.0, 0.3, 0.61, 0.72, 0.81, 0.86, 0.87, 0.88, 0.91, 0.91, 0.93, 0.93, 0.95)
"""Chance of what followed a match of so many tokens, where what followed the one before it was
right: of the embedded model's own text in files held out from the speculator's training."""
_SURE = 5
"""Tokens of a match from which on a copied run is not looked behind: to take it as it is costs less
than to be sure."""

_SPECULATED, _PROMPT, _SUFFIX = map(int, (Source.SPECULATED, Source.PROMPT, Source.SUFFIX))


class Nodes(NamedTuple):
    """Nodes of a tree.

    tokens, parents, chances, sources: as in ``DraftTree``; places, lengths: int32, where stands
    what followed the match that a node goes on, 0 for none, and how long that is with the node.
    """

    tokens: TokenArray
    parents: TokenArray
    chances: Floats
    sources: NDArray[np.int8]
    places: TokenArray
    lengths: TokenArray

    @classmethod
    def room(cls, count: int) -> Nodes:
        """Room for so many."""
        return cls(
            np.zeros(count, np.int32),
            np.zeros(count, np.int32),
            np.zeros(count, np.float32),
            np.zeros(count, np.int8),
            np.zeros(count, np.int32),
            np.zeros(count, np.int32),
        )


class Grown(NamedTuple):
    """A tree, and its rows.

    nodes: those that were taken; kept: those that may be, with chance 0 where one was; seen: int32
    [nodes], which of ``Work.sums`` has what follows a node, -1 for none; tokens, offsets: int32
    [nodes + 1], mask: float32 [(nodes + 1) ** 2], see ``rows.Rows``.
    """

    nodes: Nodes
    kept: Nodes
    seen: TokenArray
    tokens: TokenArray
    offsets: TokenArray
    mask: Floats

    @classmethod
    def room(cls) -> Grown:
        """Room for one tree."""
        rows = MOST_NODES + 1
        return cls(
            Nodes.room(MOST_NODES),
            Nodes.room(MOST_SEEN * CHILDREN),
            np.zeros(MOST_NODES, np.int32),
            np.zeros(rows, np.int32),
            np.zeros(rows, np.int32),
            np.zeros(rows * rows, np.float32),
        )


@structref.register
class _DeskType(FieldsType):
    """Compiled form of ``Desk``."""


class Desk(structref.StructRefProxy):
    """All that growing reads and writes, as one argument, see ``mixture_room.Room``."""


structref.define_proxy(
    Desk, _DeskType, ["tables", "head", "work", "grown", "text", "previous", "newest"]
)


@compiled_with()
def desk_of(
    tables: Speculator,
    head: Head,
    work: Work,
    grown: Grown,
    text: TokenArray,
    previous: TokenArray,
    newest: TokenArray,
) -> Desk:
    """A desk that holds these; the last three are those of ``prompt.PromptIndex``."""
    return Desk(tables, head, work, grown, text, previous, newest)


class Open(NamedTuple):
    """What a desk holds: taken out once, it is not counted again whenever it is read."""

    tables: Speculator
    head: Head
    work: Work
    grown: Grown
    text: TokenArray
    previous: TokenArray
    newest: TokenArray


@compiled_with(forceinline=True, inner=True)
def opened(desk: Any) -> Open:
    """What it holds."""
    return Open(
        *(desk.tables, desk.head, desk.work, desk.grown),
        *(desk.text, desk.previous, desk.newest),
    )


@compiled_with(borrows=True)
def lay_out(grown: Grown, count: int, last: int) -> None:
    """Write the rows of the text's ``last`` token and of ``count`` nodes behind it."""
    rows, nodes, mask = count + 1, grown.nodes, grown.mask
    grown.tokens[0], grown.offsets[0] = last, 0
    for place in range(rows):
        mask[place] = BLOCKED
    mask[0] = 0
    for node in range(count):
        above, begin = nodes.parents[node] + 1, (node + 1) * rows
        grown.tokens[node + 1] = nodes.tokens[node]
        grown.offsets[node + 1] = grown.offsets[above] + 1
        for place in range(rows):
            mask[begin + place] = mask[above * rows + place]
        mask[begin + node + 1] = 0


@compiled_with(speculated_head)
def begin_in(desk: Any, stop: int) -> None:
    """Begin another text, which ends at ``stop``."""
    forget(desk.tables, desk.head)
    cover(desk.tables, desk.head, desk.text, stop)


@compiled_with(borrows=True)
def _write_path(nodes: Nodes, node: int, text: TokenArray, stop: int) -> int:
    """Write the tokens of the path to ``node`` behind the text; returns where they end."""
    depth, above = 0, node
    while above >= 0:
        depth, above = depth + 1, nodes.parents[above]
    above = node
    for place in range(stop + depth - 1, stop - 1, -1):
        text[place] = nodes.tokens[above]
        above = nodes.parents[above]
    return stop + depth


@compiled_with(
    *(compiled_parts, int8, lanes, matmul, prompt, speculated_step, speculator),
    borrows=True,
    forceinline=True,
    inner=True,
)
def _look_behind(
    desk: Open, node: int, seen: int, stop: int, length: int, place: int
) -> tuple[int, int, int, float]:
    """Write the logits of what follows a node, -1 for the root, whose match is given. ``seen``:
    nodes that were looked behind before it. Returns the match of its path, of length 0 where
    nothing followed one, and what ``guess`` returns."""
    work, grown, text = desk.work, desk.grown, desk.text
    end = stop
    if node >= 0:
        end = _write_path(grown.nodes, node, text, stop)
        length, place = match_from(text, desk.previous, desk.newest[text[end - 1]], end)
        above = grown.nodes.parents[node]
        begin = grown.seen[above] if above >= 0 else 0
        go_on(desk.tables, work, begin)
        for i in range(work.sums.shape[1]):
            work.sums[seen, i] = work.sums[begin, i]
        grown.seen[node] = seen
    candidate = text[place] if length > 0 and place < end else -1
    known = min(length, LENGTHS - 1) if candidate >= 0 else 0
    column, copied = guess(desk.tables, desk.head, work, seen, text[end - 1], known, candidate)
    return (length if candidate >= 0 else 0), place, column, copied


@compiled_with(borrows=True, inner=True)
def _keep_children(
    kept: Nodes,
    first: int,
    node: int,
    chance: float,
    tokens: TokenArray,
    chances: Floats,
    candidate: int,
    length: int,
    place: int,
) -> None:
    """Keep the likeliest tokens behind a node of some ``chance``, from ``first`` on; the
    ``candidate`` among them goes on a match of ``length`` tokens, from ``place``."""
    for child in range(len(tokens)):
        at = first + child
        kept.tokens[at], kept.parents[at] = tokens[child], node
        kept.chances[at], kept.sources[at] = chance * chances[child], _SPECULATED
        goes_on = length > 0 and tokens[child] == candidate
        kept.places[at] = place + 1 if goes_on else 0
        kept.lengths[at] = length + 1 if goes_on else 0


@compiled_with(borrows=True)
def _keep_onward(
    grown: Grown, at: int, node: int, text: TokenArray, begin: int, ends: Any, run: float
) -> None:
    """Keep what stands behind the token that a node copied, at ``at``, if anything does.

    begin: tokens of the text's longest match; ends: where the text's own part begins and where it
    stops, and where stands what followed that match, to which a run that reaches the end returns.
    """
    nodes, kept = grown.nodes, grown.kept
    start_of_text, stop, period = ends
    place, length = nodes.places[node], nodes.lengths[node]
    if place == stop:
        place = period
    if place <= 0 or place >= stop or text[place] < 0:
        return
    chance = ONWARD[min(length, len(ONWARD) - 1)]
    if run > 0 and length > begin:
        # As many more are right then as the match has grown by.
        further = run + length - begin
        chance = max(chance, further / (further + 1))
    kept.tokens[at], kept.parents[at] = text[place], node
    kept.chances[at] = nodes.chances[node] * np.float32(chance)
    kept.sources[at] = _PROMPT if place >= start_of_text else _SUFFIX
    kept.places[at], kept.lengths[at] = place + 1, length + 1


_GROWING = (
    *(choice, compiled_parts, ending, int8, lanes, matmul, meeting, prompt),
    *(speculated_head, speculated_step, speculator),
)


@compiled_with(*_GROWING, borrows=True, forceinline=True)
def _grow(
    desk: Open,
    start_of_text: int,
    stop: int,
    length: int,
    place: int,
    most: int,
    numbers: NDArray[np.float64],
    chains: Chains,
    ended: Ended,
) -> int:
    """Grow the tree behind the text, which ends at ``stop``, from the model's state.

    Returns how many nodes it has, ``most`` and ``MOST_NODES`` at most, so many that they save most
    by the odds, see ``choice.odds_of``. length, place: ``prompt.ending_match``; ended: see
    ``speculated_step.start``.
    """
    text, work, grown, head = desk.text, desk.work, desk.grown, desk.head
    nodes, kept = grown.nodes, grown.kept
    cover(desk.tables, head, text, stop)
    start(desk.tables, work, ended)
    kept.chances[:] = 0
    columns, chances = work.columns, work.chances
    run = run_of(numbers, length)
    ends = start_of_text, stop, place
    seconds, slopes = chains.seconds, chains.slopes
    most = min(most, MOST_NODES, len(seconds) - 1)
    worth_s = worth_of(numbers, chains)
    seen = count = taken = best = 0
    saved_s = expected = 0.0
    node, chance, is_looked = -1, np.float32(1), True
    while True:
        if is_looked:
            found, behind, column, copied = _look_behind(desk, node, seen, stop, length, place)
            candidate = text[behind] if found > 0 else -1
            likeliest(work.logits, head.counts[0], column, copied, work.tops, columns, chances)
            for child in range(CHILDREN):
                columns[child] = head.tokens[columns[child]]
            first = CHILDREN * seen
            _keep_children(kept, first, node, chance, columns, chances, candidate, found, behind)
            seen += 1
        elif nodes.places[node] > 0:
            _keep_onward(grown, best, node, text, length, ends, run)
        best = int(np.argmax(kept.chances))
        chance = kept.chances[best]
        if taken == most or chance * worth_s <= slopes[taken] + NODE_S or chance < LEAST_CHANCE:
            return count
        node = taken
        nodes.tokens[node], nodes.parents[node] = kept.tokens[best], kept.parents[best]
        nodes.chances[node], nodes.sources[node] = chance, kept.sources[best]
        nodes.places[node], nodes.lengths[node] = kept.places[best], kept.lengths[best]
        grown.seen[node] = -1
        kept.chances[best] = 0
        taken += 1
        expected += chance
        saves_s = expected * worth_s - (seconds[taken] - seconds[0] + taken * NODE_S)
        if saves_s > saved_s:
            saved_s, count = saves_s, taken
        above = nodes.parents[node]
        is_looked = (
            seen < MOST_SEEN
            and chance >= LEAST_SEEN
            and chance * _LIKELIEST * worth_s > slopes[taken] + NODE_S
            and nodes.lengths[node] <= _SURE
            and (above < 0 or grown.seen[above] >= 0)
            and nodes.tokens[node] < len(desk.newest)
        )


@compiled_with(*_GROWING, borrows=True, inner=True)
def speculate_at(
    desk: Open,
    start_of_text: int,
    stop: int,
    length: int,
    place: int,
    most: int,
    numbers: NDArray[np.float64],
    chains: Chains,
    ended: Ended,
) -> int:
    """``_grow`` a tree, lay its rows out, and note what is hoped for from it; returns how many
    nodes it has."""
    count = _grow(desk, start_of_text, stop, length, place, most, numbers, chains, ended)
    grown = desk.grown
    lay_out(grown, count, desk.text[stop - 1])
    hoped, depth = 0.0, 0
    for node in range(count):
        hoped += grown.nodes.chances[node]
        depth = max(depth, grown.offsets[node + 1])
    note_speculated(numbers, hoped, depth)
    return count


@compiled_with(*_GROWING)
def speculate_in(
    desk: Any, start_of_text: int, stop: int, length: int, place: int, most: int, odds: Any
) -> int:
    """``speculate_at``, by fewer arguments."""
    where = start_of_text, stop, length, place, most
    count: int = speculate_at(opened(desk), *where, odds.numbers, odds.chains, nothing_ended())
    return count


__all__ = [
    "LEAST_SEEN",
    "Desk",
    "Grown",
    "Open",
    "begin_in",
    "desk_of",
    "lay_out",
    "opened",
    "speculate_at",
    "speculate_in",
]
