"""One line of text in llama.cpp: its context, whose sequences are the leaves of a draft tree.

Every row of committed text belongs to all leaves; a node belongs to the leaves below it, so that a
row attends what stands on its own path. Accepting a path moves no row: sequences are renamed. Rows
that were rejected go to a sequence of their own: were they freed, later rows
would fill their places, attention would add values in another order, and the same text would not
get the same numbers to the last bit. Where their places are needed, the text is moved together in
its order.

A model with a state that runs over the text (recurrent, or a hybrid of that and attention) has one
line of text. Of some families the library keeps the states behind the last rows of a forward, so
that a few rows can be taken back, once, before the next forward: enough to verify a chain, whose
rejected rows, and those that only bring the number of rows to a wanted one, come last. What rows
were rejected leave no gaps there. Of other families nothing can be taken back, and to bring it back
costs more than a chain saves: a copy of the state for each forward, and after each rejection a
second forward, of another number of rows, whose kernels round otherwise.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.models.llama_cpp.library import Library, last_complaints
from accel.models.llama_cpp.options import LlamaCppOptions

LEAVES = 8
PIECE = 64
"""Rows of a prefill that are computed at once: a cancel is looked for between them."""
MOST_ROWS = 320
"""Rows of a forward, and of logits, at most."""
SLACK = 512
"""Rows that may be rejected before the text has to be moved together."""
REWOUND = 7
"""Rows that can be taken back of a state that runs over the text: each takes a copy of it."""
_FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
_KV_TYPES = {"f16": 1, "int8": 8}
"""The library's numbers of F16 and Q8_0."""
KV_BYTES = {"f16": 2.0, "int8": 34 / 32}
"""Of a number of keys and values: blocks of 32 have a scale of two bytes."""


class LibraryFailed(Exception):
    """The library refused a call, with its code."""


class StateLost(Exception):
    """A state that ran on over rows that cannot be taken back: the text is to be computed anew."""


class Context:
    """A ``llama_context`` of a model."""

    def __init__(
        self,
        library: Library,
        model: int,
        capacity: int,
        options: LlamaCppOptions,
        leaves: int = LEAVES,
    ) -> None:
        """``leaves``: of a tree at most. Raises MemoryError where there is no room for ``capacity``
        tokens."""
        self._leaves = leaves
        """Sequences of the text; of several, the next one has the rejected rows, the one behind it
        padding."""
        self._sequences = leaves + 2 if leaves > 1 else 1
        self._library, self._model, self._options = library, model, options
        self._vocabulary: int = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))
        self.length = 0
        """Committed tokens."""
        self._rejected = self._first_rejected = 0
        """Rows that hold places, and the length of the text that the first of them stood behind."""
        self._last: list[list[int]] = []
        """Of every row of the last forward that means something: its leaves."""
        self._outputs = 0
        self._open(capacity)

    def _open(self, capacity: int) -> None:
        library = self._library
        params = library.context_params()
        params.n_ctx = capacity + SLACK
        params.n_batch = params.n_ubatch = MOST_ROWS
        params.n_outputs_max = params.n_outputs_max_per_seq = MOST_ROWS
        params.n_seq_max = self._sequences
        params.n_rs_seq = 0 if self._leaves > 1 else REWOUND
        params.kv_unified = True
        params.swa_full = True
        params.flash_attn_type = _FLASH_ATTENTION[self._options.flash_attention]
        params.type_k = params.type_v = _KV_TYPES[self._options.kv_type]
        params.n_threads = params.n_threads_batch = self._options.threads
        params.no_perf = True
        self._context = library.llama_init_from_model(self._model, params)
        if not self._context:
            why = last_complaints()
            raise MemoryError(f"llama.cpp has no room for {capacity} tokens: {why}")
        read = library.llama_n_batch(self._context), library.llama_n_seq_max(self._context)
        if read != (MOST_ROWS, self._sequences):
            raise LibraryFailed("llama.cpp reads other numbers than it is given; use another one")
        self._memory = library.llama_get_memory(self._context)
        self._batch = library.llama_batch_init(MOST_ROWS, 0, self._leaves)
        self._capacity = capacity
        self.rewinds: int = library.llama_n_rs_seq(self._context)
        """Rows of a forward that can be taken back of a state that runs over the text."""
        self._rewinds_now = 0
        """Rows that can be taken back before the next forward."""

    def close(self) -> None:
        """Free it."""
        self._library.llama_batch_free(self._batch)
        self._library.llama_free(self._context)

    @property
    def capacity(self) -> int:
        """Tokens for which there is room."""
        return self._capacity

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values in all layers; at most so many where layers have no heads."""
        library, model = self._library, self._model
        heads, heads_kv = library.llama_model_n_head(model), library.llama_model_n_head_kv(model)
        width = library.llama_model_n_embd(model) // max(heads, 1) * max(heads_kv, 1)
        row = 2 * width * library.llama_model_n_layer(model) * KV_BYTES[self._options.kv_type]
        return int(row * (self._capacity + SLACK))

    def reserve(self, rows: int) -> None:
        """Make room for ``rows`` more behind the committed ones. Raises MemoryError."""
        if self.length + rows <= self._capacity:
            return
        library, old, old_batch = self._library, self._context, self._batch
        state = self._text()
        self._open(max(self.length + rows, self._capacity + self._capacity // 2))
        library.llama_batch_free(old_batch)
        library.llama_free(old)
        self._hold(state)

    def _text(self) -> Any:
        """What the library keeps of the committed text, as bytes of its own form."""
        self._rewinds_now = 0
        size = self._library.llama_state_seq_get_size(self._context, 0)
        state = (ctypes.c_uint8 * size)()
        self._library.llama_state_seq_get_data(self._context, state, size, 0)
        return state

    def _hold(self, state: Any) -> None:
        """Keep ``_text`` in an empty context, its rows one behind the other."""
        library, size = self._library, len(state)
        self._rejected = 0
        if self.length and not library.llama_state_seq_set_data(self._context, state, size, 0):
            raise LibraryFailed("llama.cpp did not take its own state back")
        for leaf in range(1, self._leaves):
            library.llama_memory_seq_cp(self._memory, 0, leaf, -1, -1)

    def forward(
        self, tokens: NDArray[np.int32], parents: NDArray[np.int32], first: int, meant: int
    ) -> list[int]:
        """Compute rows behind the committed ones; the likeliest token of each from ``first`` on.

        tokens, parents: int32 [rows], see ``accel.batch.ForwardBatch``; rows from ``meant`` on only
        bring their number to a wanted one.
        """
        count = len(tokens)
        if self._last:
            self._remove_behind()
        if self.length + self._rejected + count > self._capacity + SLACK:
            self._move_together()
        if self._leaves == 1:
            # Rows without meaning go on behind the others, and are taken back with rejected ones.
            parents, meant_rows = np.arange(-1, count - 1, dtype=np.int32), count
        else:
            meant_rows = meant
        leaves, depths = _leaves(parents[:meant_rows], self._leaves), _depths(parents[:meant_rows])
        assert count <= MOST_ROWS or first >= count - MOST_ROWS, "logits of too many rows"
        for start in range(0, count, MOST_ROWS):
            rows = range(start, min(start + MOST_ROWS, count))
            if code := self._decode(tokens, leaves, depths, rows, first, meant_rows):
                self._remove_behind()
                raise LibraryFailed(f"llama_decode ended with {code}: {last_complaints()}")
            self._rewinds_now = min(len(rows) - 1, self.rewinds)
        self._last, self._outputs = leaves, max(0, count - first)
        return self._logits()[: meant - first].argmax(-1).tolist() if self._outputs else []

    def _decode(
        self,
        tokens: NDArray[np.int32],
        leaves: list[list[int]],
        depths: list[int],
        rows: range,
        first: int,
        meant: int,
    ) -> int:
        """Have the library compute some rows; its code, 0 where all is well."""
        batch = self._batch
        batch.n_tokens = len(rows)
        for place, row in enumerate(rows):
            is_meant = row < meant
            ids = leaves[row] if is_meant else [self._leaves + 1]
            batch.token[place] = int(tokens[row])
            batch.pos[place] = self.length + depths[row] if is_meant else row - meant
            batch.n_seq_id[place] = len(ids)
            for number, leaf in enumerate(ids):
                batch.seq_id[place][number] = leaf
            # Rows without meaning, too: the head's kernels, like all others, go by their number.
            batch.logits[place] = row >= first
        code: int = self._library.llama_decode(self._context, batch)
        if rows[-1] >= meant:
            self._remove(self._leaves + 1, 0)
        return code

    def row(self, index: int) -> bytes:
        """The numbers of a row of the last forward, float32 [vocabulary]."""
        found: bytes = self._logits()[index].tobytes()
        return found

    def _logits(self) -> NDArray[np.float32]:
        """float32 [outputs, vocabulary], valid until the next forward."""
        start = self._library.llama_get_logits(self._context)
        return np.ctypeslib.as_array(start, (self._outputs, self._vocabulary))

    def commit(self, path: Sequence[int]) -> None:
        """See ``base.Cache.commit``."""
        past, rows = self.length, self._last
        keep = past + len(path)
        if self._leaves == 1:
            if not self._rewind(keep):
                raise self._lost()
        elif len(path) < len(rows):
            shared = [sum(leaf in rows[row] for row in path) for leaf in range(self._leaves)]
            for leaf in range(self._leaves):
                self._reject(leaf, past + shared[leaf])
            kept = shared.index(len(path))
            for leaf in range(self._leaves):
                if shared[leaf] < len(path):
                    behind = past + shared[leaf]
                    self._library.llama_memory_seq_cp(self._memory, kept, leaf, behind, keep)
            if not self._rejected:
                self._first_rejected = past
            self._rejected += len(rows) - len(path)
        self.length, self._last = keep, []

    def _reject(self, leaf: int, first: int) -> None:
        """Take rows from a leaf, which keep their places."""
        self._library.llama_memory_seq_cp(self._memory, leaf, self._leaves, first, -1)
        self._remove(leaf, first)

    def _rewind(self, length: int) -> bool:
        """Take back what is behind ``length`` tokens in the only line of text; whether that can
        be."""
        behind = self.length + len(self._last) - length
        if not behind:
            return True
        if behind > self._rewinds_now or not self._remove(0, length):
            return False
        # The library takes back once between two forwards.
        self._rewinds_now = 0
        return True

    def _lost(self) -> StateLost:
        self._forget_all()
        return StateLost("llama.cpp cannot take back what it computed; the text is computed anew")

    def _forget_all(self) -> None:
        self._library.llama_memory_clear(self._memory, True)
        self.length = self._rejected = self._rewinds_now = 0
        self._last = []

    def trim(self, length: int) -> int:
        """Forget what is behind ``length`` tokens; what is left."""
        if self._leaves == 1:
            if self._rewind(length):
                self.length, self._last = length, []
            else:
                self._forget_all()
            return self.length
        self._last = []
        if self._rejected and length <= self._first_rejected:
            # All of the text that is left stands before them.
            self._remove(self._leaves, -1)
            self._rejected = 0
        for leaf in range(self._leaves):
            if not self._remove(leaf, length):
                self._forget_all()
                return 0
        self.length = length
        return length

    def _remove_behind(self) -> None:
        """Forget the last forward: nobody committed any of it."""
        if self._leaves == 1:
            raise self._lost()
        for leaf in range(self._leaves):
            self._remove(leaf, self.length)
        self._last = []

    def _remove(self, sequence: int, first: int) -> bool:
        removed: bool = self._library.llama_memory_seq_rm(self._memory, sequence, first, -1)
        return removed

    def _move_together(self) -> None:
        """Free the places of rejected rows, without a change of the order of the others."""
        if self._rejected:
            state = self._text()
            self._library.llama_memory_clear(self._memory, False)
            self._hold(state)


def _leaves(parents: NDArray[np.int32], most: int = LEAVES) -> list[list[int]]:
    """The leaves below every row, ascending. The first leaf has the numbers that are left."""
    count = len(parents)
    found: list[list[int]] = [[] for _ in range(count)]
    inner = set(parents.tolist())
    ends = [row for row in range(count) if row not in inner]
    assert len(ends) <= most, "a tree with more leaves than there are sequences"
    for number, end in enumerate(ends):
        own = [number, *(range(len(ends), most) if not number else ())]
        row = end
        while row >= 0:
            found[row] += own
            row = int(parents[row])
    return [sorted(each) for each in found]


def _depths(parents: NDArray[np.int32]) -> list[int]:
    """Rows above every row."""
    found: list[int] = []
    for parent in parents.tolist():
        found.append(found[parent] + 1 if parent >= 0 else 0)
    return found
