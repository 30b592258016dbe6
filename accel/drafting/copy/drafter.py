"""Drafting for edits: the original code is the draft, wherever the edit has got to in it.

Where EfficientEdit reuses one chain, every step here proposes one tree: the rest of the original,
places where an edit is likely to join it again, what it has been replacing or was told to,
repetitions, and what an index knows. Branches are ranked by calibrated probability.
"""

from __future__ import annotations

from functools import cache
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.drafting.base import DraftRequest, VerifyCosts
from accel.drafting.copy import candidates as rows_of
from accel.drafting.copy.alignment import AT, EVENT_REJOINED
from accel.drafting.copy.kernels import (
    ROW_LIMIT,
    CopyState,
    copy_state_of,
    draft_in,
    follow_in,
    goes_as_instructed,
)
from accel.drafting.copy.pool import LOOKUP_DEPTH, LOOKUP_ROWS, CopyPool
from accel.drafting.copy.rewrites import (
    TextCodec,
    learn_rename,
    rewrite,
    shown_at,
    spoken_phrases,
    spoken_renames,
    still_due,
)
from accel.drafting.copy.tree_search import CopyTree
from accel.models.costs.step_overheads import DRAFTED_STEP_S, STEP_S
from accel.native.numba_cache import State
from accel.text.tokenizer import Tokenizer

# Measure with `python -m tests.benchmarks edit --cases CASES/edit_canitedit.jsonl`.
_LOOKUP_LIMIT = 24
_BEGUN = 32
"""Tokens that count as copied already where an answer is known to begin as the original."""
_SIDE = 24
"""Tokens on each side of a change that are looked at for the rest of a word."""

HOPED_SPEEDUP = 6.5
HOPED_TOKENS = 200
"""Tokens that count as written, ``HOPED_SPEEDUP`` times as fast as plainly, when an edit begins."""

_NO_ROWS, _NO_SOURCES = np.empty(0, np.int32), np.empty(0, np.int8)


@cache
def warm_up() -> None:
    """Compile what drafting needs, or load it from the cache, so that no request waits for it."""
    text = np.arange(1, 9, dtype=np.int32)
    drafter = CopyDrafter(Tokenizer.empty(), (9,))
    drafter.begin(DraftRequest(text, original=text))
    tree = drafter.draft(4)
    drafter.commit(tree, [0], text[:2])
    drafter._as_instructed()
    drafter.draft(4)


class CopyDrafter:
    """The default drafter for edits. Lossless like every drafter; never sees the model. ``end``:
    tokens by which an answer is expected to end, drafted after the original's last token."""

    name = "redraft"
    step_s = STEP_S

    def __init__(self, codec: TextCodec, end: tuple[int, ...] = ()) -> None:
        self._codec = codec
        self._end = np.array(end, np.int32)
        self._renames: list[tuple[str, str]] = []
        self._last_instruction = ("", "")
        self._classes = rows_of.classes_of(codec)
        self.weights = rows_of.row_weights()
        self.saved_s = 0.0
        self._free = VerifyCosts.free(0)
        self.begin(DraftRequest(np.empty(0, np.int32)))

    def begin(self, request: DraftRequest) -> None:
        """Lay out the pool, and the versions of the original that are likely."""
        original = request.original if request.original is not None else np.empty(0, np.int32)
        self._original = np.asarray(original, np.int32)
        self._index = request.index
        self._shift = 0
        self._step_s = self._spent_s = 0.0
        self._written = 0
        prompt = np.asarray(request.prompt, np.int32)
        span = shown_at(prompt, self._original)
        instruction = self._text(prompt[: span[0]]) if len(self._original) else ""
        if request.rewrites is not None:
            instruction = repr(request.rewrites)
        text = self._text(self._original)
        ending = np.concatenate([np.asarray(request.closing, np.int32), self._end])
        quoted = spoken_phrases(instruction, text) if request.rewrites is None else []
        phrases = self._spell(quoted)
        self._pool = CopyPool(self._original, ending, phrases, prompt, span, self._classes)
        self._classes = self._pool.classes
        self._state: State | None = None
        self._laid, self._nodes = self._pool.spans, 0
        self._write_expected((request.workspace, instruction), text, request.rewrites)

    def _write_expected(
        self,
        instruction_key: tuple[str, str],
        text: str,
        rewrites: tuple[tuple[str, str], ...] | None,
    ) -> None:
        """Versions of the original that are likely before anything is written."""
        # The same wish for another piece of code: names change as they did there.
        again = instruction_key == self._last_instruction and len(self._original) > 0
        self._renames = still_due(self._renames, text) if again else []
        self._last_instruction = instruction_key
        if self._renames:
            self._rewrite(rows_of.RENAMED, 0, self._renames, 0)
        _, instruction = instruction_key
        spoken = spoken_renames(instruction, text)
        if rewrites is not None:
            spoken = still_due(list(rewrites), text)
        if spoken:
            self._rewrite(rows_of.INSTRUCTED, 0, spoken, 0)
        first, last = self._pool.version_at(rows_of.INSTRUCTED)
        if first < last:
            self._pool.cursor[AT] = first
        if rewrites is not None:
            # An answer of this kind begins as the original does, whatever comes before both.
            self._pool.match[[self._pool.home, first]] = _BEGUN

    def draft(self, max_nodes: int) -> DraftTree:
        """Return the best tree of at most ``max_nodes`` nodes."""
        self._step_s = 0.0
        if len(self._free.seconds) < max_nodes + 1:
            self._free = VerifyCosts.free(max_nodes)
        return self._grow(max_nodes, self._free, 0.0)

    def draft_within(self, max_nodes: int, costs: VerifyCosts) -> DraftTree:
        """Return the tree that gains most for its time, empty when plain decoding gains more."""
        hoped_s = HOPED_TOKENS * float(costs.seconds[0]) / HOPED_SPEEDUP
        rate = (HOPED_TOKENS + self._written) / (hoped_s + self._spent_s)
        tree = self._grow(max_nodes, costs, rate)
        self._step_s = float(costs.seconds[len(tree)]) + DRAFTED_STEP_S
        return tree

    def _grow(self, max_nodes: int, costs: VerifyCosts, rate: float) -> DraftTree:
        if max_nodes <= 0:
            return DraftTree.empty()
        looked_up, sources = self._look_up() if self._index is not None else (_NO_ROWS, _NO_SOURCES)
        state, pool = self._state_for(max_nodes), self._pool
        count, self.saved_s = draft_in(
            state, pool.home, pool.context_start, pool.stop, max_nodes,
            looked_up, sources, costs.seconds, costs.marginal, costs.acceptance_scale, rate,
        )  # fmt: skip
        return DraftTree(*(array[:count].copy() for array in self._tree))

    def _state_for(self, nodes: int) -> State:
        """Return the state that lasts from step to step, with room for trees of ``nodes`` nodes."""
        pool = self._pool
        if self._state is None or nodes > self._nodes or self._laid is not pool.spans:
            self._nodes = max(nodes, self._nodes)
            self._laid = pool.spans
            self._tree = CopyTree.allocate(self._nodes)
            count = ROW_LIMIT + LOOKUP_ROWS
            self._state = copy_state_of(
                CopyState(
                    *(pool.tokens, pool.match, pool.offsets, pool.places, pool.cursor, pool.slips),
                    *(pool.classes, self.weights, pool.line_starts, pool.line_ends, pool.spans),
                    *(pool.gather_spans, np.empty(count, np.int32), np.empty(count, np.int8)),
                    *(np.empty(ROW_LIMIT), self._tree),
                )
            )
        return self._state

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """Move the cursor, and learn from every place where output and original differ."""
        tokens = np.asarray(tokens, np.int32)
        pool = self._pool
        done, events = follow_in(self._state_for(1), tokens, pool.stop)
        if not done:
            pool.reserve(len(tokens))
            pool.cover(tokens)
            self._classes, self._state = pool.classes, None
            _, events = follow_in(self._state_for(1), tokens, pool.stop)
        pool.stop += len(tokens)
        if self._step_s:
            self._written += len(tokens)
            self._spent_s += self._step_s
        if len(events) and len(self._original) and not self._as_instructed():
            self._learn(events)

    def _as_instructed(self) -> bool:
        """Return whether the text follows the instruction: its changes teach nothing then."""
        return goes_as_instructed(self._pool.spans, self._pool.cursor, self._pool.slips)

    def _learn(self, events: NDArray[np.int32]) -> None:
        before = list(self._renames), self._shift
        for event, group in groupby(events.tolist(), key=itemgetter(0)):
            if event == EVENT_REJOINED:
                self._learn_changes([change for _, *change in group])
            else:
                for _, row, *_ in group:
                    self._unlearn(row)
        if (self._renames, self._shift) == before:
            return
        pool = self._pool
        start = max(int(pool.line_starts[pool.anchor]), 0)
        pool.drop_version(rows_of.RENAMED)
        pool.drop_version(rows_of.SHIFTED)
        if self._renames:
            self._rewrite(rows_of.RENAMED, start, self._renames, 0)
        if self._shift:
            self._rewrite(rows_of.SHIFTED, start, self._renames, self._shift)

    def _learn_changes(self, changes: list[list[int]]) -> None:
        """Learn the replacements among ``changes``, and the indentation since the last of them."""
        text, output_start = self._pool.tokens, self._pool.output_start
        for left_at, joined, written, resumed in changes:
            if left_at <= joined <= len(self._original) and (left_at < joined or written < resumed):
                self._learn_rename(
                    self._text(text[max(written - _SIDE, output_start) : written]),
                    self._text(self._original[left_at:joined]),
                    self._text(text[written:resumed]),
                    self._text(self._original[joined : joined + _SIDE]),
                )
        inside = [
            (joined, resumed) for _, joined, _, resumed in changes if joined < len(self._original)
        ]
        if inside:
            joined, resumed = inside[-1]
            written_indent = self._indent(text[output_start:resumed])
            self._shift = written_indent - self._indent(self._original[: max(joined, 0)])

    def _learn_rename(self, before: str, old: str, new: str, after: str) -> None:
        rule = learn_rename(before, old, new, after)
        if rule is not None and rule not in self._renames:
            others = [rename for rename in self._renames if rename[0] != rule[0]]
            self._renames = [*others[-7:], rule]

    def _unlearn(self, row: int) -> None:
        for kind in (rows_of.RENAMED, rows_of.SHIFTED):
            start, stop = self._pool.version_at(kind)
            if start <= row < stop:
                rule = int(self._pool.rules[kind][row - start])
                if rule >= 0 and rule < len(self._renames):
                    del self._renames[rule]
                elif rule < 0 and kind == rows_of.SHIFTED:
                    self._shift = 0

    def _rewrite(self, kind: int, start: int, renames: list[tuple[str, str]], shift: int) -> None:
        version = rewrite(self._codec, self._original, start, renames, shift)
        self._pool.write_version(kind, version)

    def _look_up(self) -> tuple[TokenArray, NDArray[np.int8]]:
        assert self._index is not None
        pool = self._pool
        context = pool.tokens[max(pool.stop - 16, pool.context_start) : pool.stop]
        continuations = self._index.lookup(
            context, max_match=16, limit=_LOOKUP_LIMIT, depth=LOOKUP_DEPTH
        )
        count = min(len(continuations), LOOKUP_ROWS)
        if pool.cover(continuations.tokens):
            self._classes, self._state = pool.classes, None
        scratch = pool.tokens[: LOOKUP_ROWS * (LOOKUP_DEPTH + 1)].reshape(LOOKUP_ROWS, -1)
        scratch[:count, :LOOKUP_DEPTH] = continuations.tokens[:count]
        rows = np.arange(count, dtype=np.int32) * (LOOKUP_DEPTH + 1)
        pool.match[rows] = continuations.lengths[:count]
        return rows, np.ascontiguousarray(continuations.sources[:count], np.int8)

    def _spell(self, phrases: list[str]) -> TokenArray:
        """Return every phrase at the start of a word and within a line, a -1 before each."""
        spelt = [
            np.append(np.int32(-1), self._codec.encode(lead + phrase))
            for phrase in phrases
            for lead in ("", " ")
        ]
        return np.concatenate([*spelt, np.array([-1])]).astype(np.int32)

    def _indent(self, tokens: TokenArray) -> int:
        tail = b"".join(self._codec.bytes_of(int(token)) for token in tokens[-96:])
        line = tail[tail.rfind(b"\n") + 1 :]
        stripped = line.lstrip(b" ")
        return len(line) - len(stripped)

    def _text(self, tokens: TokenArray) -> str:
        return b"".join(map(self._codec.bytes_of, tokens.tolist())).decode("utf-8", "replace")
