"""The line that fits best between the text before the cursor and what follows.

A small model that fills in the middle hardly looks at the text after the hole; reading from left
to right it tells well whether that text would have come next. So likely lines are found by beam
search, and the one is taken with which line and following text are likeliest (as InCoder, section
4.1, reranks infills).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, Source, TokenArray
from accel.execution.forwards import Forwards
from accel.models.base import Logits
from accel.models.batch import tree_batch
from accel.native.numba_cache import compiled_with
from accel.text.token_healing import rest_after

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.execution.session import Session
    from accel.text.prompts import Prompt

WIDTH = 6
"""Beams, and candidates among which is chosen."""
LONGEST = 32
"""Tokens of a candidate at most."""
READ_BEFORE, READ_STEP = 256, 128
"""Tokens before the cursor that are read at least; where that begins moves in these steps, so that
the KV cache can be reused while somebody types."""
READ_AFTER = 24
"""Tokens of what follows."""
MOST_ROWS = 255
LIKELY = 0.05
"""A line may end where ending has this probability."""
SURE = 0.5
"""How probable it has to be that the hole ends with the likeliest line."""

Floats = NDArray[np.float32]


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Line:
    """A candidate. ``tokens`` begin with what was typed after the prompt's end; ``score`` is their
    log-probability in the prompt and that of ending there; ``ends``: how probable the end of the
    whole text is among the ways in which the line ends."""

    tokens: tuple[int, ...]
    score: float
    ends: float


@dataclass(frozen=True)
class _Beam:
    node: int
    tokens: tuple[int, ...]
    score: float
    typed: bytes
    is_visible: bool


class LineSearch:
    """Finds candidates for one line with an engine, and chooses among them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.forwards = 0
        """Forwards of the last search, prompts aside."""

    @cached_property
    def _newlines(self) -> NDArray[np.int64]:
        return np.array(sorted(self._engine.tokenizer.newline_tokens), np.int64)

    @cached_property
    def _control(self) -> NDArray[np.int64]:
        return self._known(self._engine.tokenizer.special_tokens)

    def _known(self, tokens: frozenset[int]) -> NDArray[np.int64]:
        size = self._engine.model.vocabulary_size
        return np.array(sorted(token for token in tokens if token < size), np.int64)

    def seconds(self) -> float:
        """What a search takes by the machine's profile, prompts aside."""
        planner = self._engine.planner
        step_s = planner.seconds(3 * WIDTH, READ_BEFORE)
        return LONGEST // 2 * step_s + planner.seconds(MOST_ROWS, READ_BEFORE)

    def missing(
        self,
        prompt: Prompt,
        session: Session,
        reading: Session,
        cancelled: Callable[[], bool] = _never,
    ) -> Forwards[Line | None]:
        """The line that is missing at the end of a prompt; None where the text is likely to go on
        after the line, where no line is likely, or when cancelled.

        ``session`` holds the prompt, ``reading`` the same text read plainly.
        """
        lines = yield from self.candidates(prompt, session, cancelled)
        if not lines or lines[0].ends < SURE:
            return None
        return (
            yield from self.fitting(lines, prompt.text, prompt.suffix_tokens, reading, cancelled)
        )

    def candidates(
        self, prompt: Prompt, session: Session, cancelled: Callable[[], bool] = _never
    ) -> Forwards[list[Line]]:
        """Likely lines at the end of a prompt, the likeliest first; none when cancelled."""
        engine = self._engine
        ends = self._known(prompt.stop_tokens | engine.end_tokens)
        self.forwards = 0
        yield from engine.prefill_steps(prompt.tokens, session, cancelled)
        tree = _Tree()
        beams = [_Beam(-1, (), 0.0, prompt.required_prefix, False)]
        found: list[Line] = []
        for _ in range(LONGEST):
            if cancelled():
                return []
            numbers = yield from self._forward(prompt.tokens[-1:], tree, len(beams), session)
            chances = log_softmax(numbers)
            following: list[_Beam] = []
            for beam, chance in zip(beams, chances, strict=True):
                if beam.is_visible:
                    found += _ended(beam, chance, ends, self._newlines)
                following += self._continued(beam, chance, ends)
            found = sorted(found, key=lambda line: -line.score)[:WIDTH]
            least = found[-1].score if len(found) == WIDTH else -np.inf
            following = sorted(following, key=lambda beam: -beam.score)[:WIDTH]
            beams = [beam for beam in following if beam.score > least]
            if not beams:
                break
            tree, beams = tree.grown(beams)
        return found

    def fitting(
        self,
        lines: list[Line],
        before: TokenArray,
        after: TokenArray,
        session: Session,
        cancelled: Callable[[], bool] = _never,
    ) -> Forwards[Line | None]:
        """The line with which it and the beginning of ``after`` are likeliest after ``before``,
        read from left to right; None without lines or when cancelled."""
        if not lines or not len(before):
            return None
        start = max(len(before) - READ_BEFORE, 0) // READ_STEP * READ_STEP
        before = before[start:]
        if not (yield from self._engine.prefill_steps(before, session, cancelled)):
            return None
        tree, paths = _read_tree([line.tokens for line in lines], after[:READ_AFTER].tolist())
        chances = yield from self._read(before[-1:], tree, session)
        totals = [float(chances[path].sum()) for path in paths]
        return lines[int(np.argmax(totals))]

    def _read(self, pending: TokenArray, tree: DraftTree, session: Session) -> Forwards[Floats]:
        """Log-probability of every node after its parent. float32 [nodes]."""
        self.forwards += 1
        batch = tree_batch(pending, tree, wants_numbers=True)
        logits = yield from self._engine.forward_steps(batch, session)
        return _chances_of(_numbers(logits, len(tree) + 1), tree.parents, tree.tokens)

    def _forward(
        self, pending: TokenArray, tree: _Tree, wanted: int, session: Session
    ) -> Forwards[Floats]:
        self.forwards += 1
        batch = tree_batch(pending, tree.as_draft(), wants_numbers=True)
        batch = replace(batch, logits_from=len(batch) - wanted)
        return _numbers((yield from self._engine.forward_steps(batch, session)), wanted)

    def _continued(self, beam: _Beam, chance: Floats, ends: NDArray[np.int64]) -> list[_Beam]:
        chance = chance.copy()
        chance[ends] = chance[self._control] = -np.inf
        if beam.is_visible:
            chance[self._newlines] = -np.inf
        if beam.typed:
            allowed = self._engine.tokenizer.byte_index.agreeing(beam.typed)
            masked = np.full_like(chance, -np.inf)
            masked[allowed] = chance[allowed]
            chance = masked
        likely = np.argpartition(-chance, WIDTH)[:WIDTH]
        return [
            self._with_token(beam, int(token), float(chance[token]))
            for token in likely
            if np.isfinite(chance[token])
        ]

    def _with_token(self, beam: _Beam, token: int, chance: float) -> _Beam:
        spelt = self._engine.tokenizer.bytes_of(token)
        written = spelt[len(beam.typed) :]
        return _Beam(
            beam.node,
            (*beam.tokens, token),
            beam.score + chance,
            rest_after(beam.typed, spelt) or b"" if beam.typed else b"",
            beam.is_visible or bool(written.strip()),
        )


def is_between_lines(suffix: str) -> bool:
    """Whether nothing is left of the cursor's line, and there is text on the line below it."""
    rest, line_break, below = suffix.replace("\r\n", "\n").partition("\n")
    return bool(line_break) and not rest.strip() and bool(below.partition("\n")[0].strip())


def _ended(
    beam: _Beam, chance: Floats, ends: NDArray[np.int64], newlines: NDArray[np.int64]
) -> list[Line]:
    of_text, of_line = float(np.exp(chance[ends]).sum()), float(np.exp(chance[newlines]).sum())
    both = of_text + of_line
    if both < LIKELY:
        return []
    return [Line(beam.tokens, beam.score + float(np.log(both)), of_text / both)]


class _Tree:
    """The tokens of all beams, each once; those of the last step come last."""

    def __init__(self, tokens: list[int] | None = None, parents: list[int] | None = None) -> None:
        self._tokens, self._parents = tokens or [], parents or []

    def as_draft(self) -> DraftTree:
        count = len(self._tokens)
        return DraftTree(
            np.array(self._tokens, np.int32),
            np.array(self._parents, np.int32),
            np.ones(count, np.float32),
            np.full(count, Source.MODEL, np.int8),
        )

    def grown(self, beams: list[_Beam]) -> tuple[_Tree, list[_Beam]]:
        """With the last token of each beam, and without what none of them continues."""
        needed: set[int] = set()
        for beam in beams:
            node = beam.node
            while node >= 0 and node not in needed:
                needed.add(node)
                node = self._parents[node]
        needed_nodes = sorted(needed)
        places = {-1: -1} | {node: place for place, node in enumerate(needed_nodes)}
        tokens = [self._tokens[node] for node in needed_nodes] + [beam.tokens[-1] for beam in beams]
        parents = [places[self._parents[node]] for node in needed_nodes]
        parents += [places[beam.node] for beam in beams]
        first = len(needed_nodes)
        return _Tree(tokens, parents), [
            replace(beam, node=first + number) for number, beam in enumerate(beams)
        ]


def _read_tree(lines: list[tuple[int, ...]], after: list[int]) -> tuple[DraftTree, list[list[int]]]:
    """The lines, each followed by ``after``, as one tree, and the nodes of each."""
    left = (MOST_ROWS - sum(map(len, lines))) // len(lines)
    branches = [np.array([*line, *after[:left]], np.int32) for line in lines]
    tree = DraftTree.merge(branches, Source.MODEL)
    return tree, [tree.accepted_path(branch) for branch in branches]


def _numbers(logits: Logits, rows: int) -> Floats:
    return np.stack([logits.row(row) for row in range(rows)])


def log_softmax(logits: Floats) -> Floats:
    """Log-probabilities by row."""
    shifted = logits - logits.max(-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)), np.float32)


@compiled_with()
def _chances_of(logits: Floats, parents: TokenArray, tokens: TokenArray) -> Floats:
    """Log-probability of each node's token in its parent's row; row 0 is the root's."""
    totals = np.empty(len(logits), np.float32)
    for row in range(len(logits)):
        highest = logits[row].max()
        total = np.float32(0)
        for token in range(logits.shape[1]):
            total += np.exp(logits[row, token] - highest)
        totals[row] = highest + np.log(total)
    found = np.empty(len(tokens), np.float32)
    for node in range(len(tokens)):
        row = parents[node] + 1
        found[node] = logits[row, tokens[node]] - totals[row]
    return found


def warm_up() -> None:
    """Compile, or load the compiled form of, what reads candidates."""
    _chances_of(np.zeros((1, 2), np.float32), np.full(1, -1, np.int32), np.zeros(1, np.int32))
