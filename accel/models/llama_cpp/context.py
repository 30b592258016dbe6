"""One line of text in llama.cpp, and its forwards."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from accel.files.model_options import ModelOptions
from accel.models.llama_cpp.library import Library, last_complaints

MOST_ROWS = 320
"""Rows of a forward, and of logits, at most."""
SLACK = 512
"""Rows that may be rejected before the text has to be moved together."""
_FLASH_ATTENTION = {"auto": -1, "off": 0, "on": 1}
_KV_TYPES = {"f16": 1, "int8": 8}
"""The library's numbers of F16 and Q8_0."""
KV_BYTES = {"f16": 2.0, "int8": 34 / 32}
"""Of a number of keys and values: blocks of 32 have a scale of two bytes."""

Placed = tuple[Sequence[int], int]
"""The sequences that a row belongs to, ascending, and its position in them."""


class LibraryFailed(Exception):
    """The library refused a call, with its code."""


class Context(ABC):
    """A ``llama_context`` of a model. Used by one thread at a time."""

    sequences: ClassVar[int]
    """Those of the text, and others, at most."""
    earlier_states: ClassVar[int] = 0
    """How many states before the last one are stored, of those that run over the text."""

    def __init__(self, library: Library, model: int, capacity: int, options: ModelOptions) -> None:
        """Raise MemoryError where ``capacity`` tokens do not fit."""
        self._library, self._model, self._options = library, model, options
        self._vocabulary: int = library.llama_vocab_n_tokens(library.llama_model_get_vocab(model))
        self.length = 0
        """Committed tokens."""
        self._whole_from = 0
        """Text that is trimmed to less than that lacks rows."""
        self._outputs = 0
        self._open(capacity)

    def _open(self, capacity: int) -> None:
        library = self._library
        params = library.context_params()
        params.n_ctx = capacity + SLACK
        params.n_batch = params.n_ubatch = MOST_ROWS
        params.n_outputs_max = params.n_outputs_max_per_seq = MOST_ROWS
        params.n_seq_max = self.sequences
        params.n_rs_seq = self.earlier_states
        params.kv_unified = True
        params.swa_full = True
        params.flash_attn_type = _FLASH_ATTENTION[self._options.flash_attention]
        params.type_k = params.type_v = _KV_TYPES[self._options.kv_type]
        params.n_threads = params.n_threads_batch = self._options.threads
        params.no_perf = True
        context = library.llama_init_from_model(self._model, params)
        if not context:
            why = last_complaints()
            raise MemoryError(f"llama.cpp has no room for {capacity} tokens: {why}")
        read = library.llama_n_batch(context), library.llama_n_seq_max(context)
        fits = library.llama_n_ctx(context) >= capacity + SLACK
        if read != (MOST_ROWS, self.sequences) or not fits:
            raise LibraryFailed("llama.cpp reads other numbers than it is given; use another one")
        self._context = context
        self.capacity = capacity
        """Tokens that fit."""
        self._memory = library.llama_get_memory(context)
        self._batch = library.llama_batch_init(MOST_ROWS, 0, self.sequences)

    def close(self) -> None:
        """Free it."""
        self._library.llama_batch_free(self._batch)
        self._library.llama_free(self._context)

    @property
    def nbytes(self) -> int:
        """Bytes of keys and values in all layers; an upper bound where layers have no heads."""
        library, model = self._library, self._model
        heads, heads_kv = library.llama_model_n_head(model), library.llama_model_n_head_kv(model)
        width = library.llama_model_n_embd(model) // max(heads, 1) * max(heads_kv, 1)
        row = 2 * width * library.llama_model_n_layer(model) * KV_BYTES[self._options.kv_type]
        return int(row * (self.capacity + SLACK))

    @property
    def rewinds(self) -> int:
        """Rows of a forward that can be taken back of a state that runs over the text."""
        count: int = self._library.llama_n_rs_seq(self._context)
        return count

    def reserve(self, rows: int) -> None:
        """Reserve ``rows`` more after the committed ones. Raises MemoryError."""
        if self.length + rows <= self.capacity:
            return
        library, old, old_batch = self._library, self._context, self._batch
        state = self._text()
        self._open(max(self.length + rows, self.capacity + self.capacity // 2))
        library.llama_batch_free(old_batch)
        library.llama_free(old)
        self._hold(state)

    def _text(self) -> Any:
        """Return the library's state of the committed text, as bytes of its own format."""
        size = self._library.llama_state_seq_get_size(self._context, 0)
        state = (ctypes.c_uint8 * size)()
        self._library.llama_state_seq_get_data(self._context, state, size, 0)
        return state

    def _hold(self, state: Any) -> None:
        """Keep ``_text`` in an empty context, its rows one after the other."""
        size = len(state)
        if self._library.llama_model_n_swa(self._model):
            # Of layers with a sliding window only its last rows are among the bytes.
            self._whole_from = self.length
        if self.length and not self._library.llama_state_seq_set_data(
            self._context, state, size, 0
        ):
            raise LibraryFailed("llama.cpp did not take its own state back")

    def forward(
        self, tokens: NDArray[np.int32], parents: NDArray[np.int32], first: int, meant: int
    ) -> list[int]:
        """Compute rows after the committed ones; the likeliest token of each from ``first`` on.

        tokens, parents: int32 [rows], see ``accel.models.batch.ForwardBatch``; rows from ``meant``
        on only make their number one that is asked for.
        """
        count = len(tokens)
        placed = self._place(parents, meant)
        assert count <= MOST_ROWS or first >= count - MOST_ROWS, "logits of too many rows"
        for start in range(0, count, MOST_ROWS):
            rows = range(start, min(start + MOST_ROWS, count))
            if code := self._decode(tokens, placed, rows, first):
                why = f"llama_decode ended with {code}: {last_complaints()}"
                self._forget_forward()
                raise LibraryFailed(why)
        self._outputs = max(0, count - first)
        return self._logits()[: meant - first].argmax(-1).tolist() if self._outputs else []

    @abstractmethod
    def _place(self, parents: NDArray[np.int32], meant: int) -> list[Placed]:
        """Return the sequences of the rows of a new forward; forget the last forward, if it is not
        committed."""

    @abstractmethod
    def _forget_forward(self) -> None:
        """Take back the last forward, of which nothing is committed."""

    def _decode(
        self, tokens: NDArray[np.int32], placed: list[Placed], rows: range, first: int
    ) -> int:
        """Have the library compute some rows; its code, 0 where all is well."""
        batch = self._batch
        batch.n_tokens = len(rows)
        for slot, row in enumerate(rows):
            sequences, position = placed[row]
            batch.token[slot] = int(tokens[row])
            batch.pos[slot] = position
            batch.n_seq_id[slot] = len(sequences)
            for number, sequence in enumerate(sequences):
                batch.seq_id[slot][number] = sequence
            # Rows without meaning, too: the head's kernels, like all others, go by their number.
            batch.logits[slot] = row >= first
        code: int = self._library.llama_decode(self._context, batch)
        return code

    def row(self, index: int) -> bytes:
        """Return the numbers of a row of the last forward, float32 [vocabulary]."""
        data: bytes = self._logits()[index].tobytes()
        return data

    def _logits(self) -> NDArray[np.float32]:
        """Return float32 [outputs, vocabulary], valid until the next forward."""
        start = self._library.llama_get_logits(self._context)
        return np.ctypeslib.as_array(start, (self._outputs, self._vocabulary))

    @abstractmethod
    def commit(self, path: Sequence[int]) -> None:
        """See ``base.Cache.commit``."""

    def trim(self, length: int) -> int:
        """Forget what is after ``length`` tokens; what is left: less where it cannot be had."""
        if length < self._whole_from or not self._trim(length):
            self._forget_all()
        else:
            self.length = length
        return self.length

    @abstractmethod
    def _trim(self, length: int) -> bool:
        """Take back all that is after ``length`` tokens; whether that can be."""

    def _remove(self, sequence: int, first: int) -> bool:
        removed: bool = self._library.llama_memory_seq_rm(self._memory, sequence, first, -1)
        return removed

    def _forget_all(self) -> None:
        self._library.llama_memory_clear(self._memory, True)
        self.length = self._whole_from = 0
