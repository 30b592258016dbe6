"""The contract of a backend: a model, its cache, and what a forward gives.

A backend is two classes, a ``Model`` and a ``Cache``; ``tests/decoding/conformance.py`` says what
they have to do, and ``accel.models.backends`` opens one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from accel.files.model_options import KvType
from accel.models.batch import ForwardBatch

if TYPE_CHECKING:
    from accel.models.costs.learnt_costs import LearntCosts


class BatchKind(IntEnum):
    """The largest batch that a model takes, found by a probe."""

    PLAIN = 0
    """One token after another; the state cannot be trimmed."""
    CHAIN = 1
    """Several tokens, each following the one before."""
    TREE = 2
    """Several branches at once."""


@dataclass(frozen=True, slots=True)
class Capability:
    """The batches that a model's forward takes.

    ``leaves``: of a tree at most, None for any number; ``widths``: numbers of rows that it computes
    fast, in ascending order, to one of which others are padded, None if every number is as good;
    ``requests``: the number of requests whose rows ``forward_all`` computes together, 1 if it
    computes them one by one; ``fixed_batch``: numbers depend on the number of a forward's rows, so
    all forwards of a request, with drafts or without, have the same.
    """

    kind: BatchKind
    leaves: int | None = None
    widths: tuple[int, ...] | None = None
    requests: int = 1
    fixed_batch: bool = False


class Logits(Protocol):
    """Logits of a batch's rows. Valid until the model's next forward.

    Rows are counted from the batch's ``logits_from``.
    """

    def argmax(self) -> Sequence[int]:
        """Return the likeliest token of every row, which may be computed when it is read."""
        ...

    def row(self, index: int) -> NDArray[np.float32]:
        """Return the numbers of a row, float32 [vocabulary]. Quick only where the batch
        ``wants_numbers``."""
        ...


class Cache(ABC):
    """Keys and values, or another state, of one line of text.

    A forward writes its rows after the committed ones; ``commit`` makes some of them text.
    """

    is_cut: ClassVar[bool] = False
    """True if ``rows`` of it can be read and appended to another cache."""
    length: int = 0
    """Committed tokens."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the cache."""

    @abstractmethod
    def reserve(self, rows: int) -> None:
        """Make sure that ``rows`` more rows fit after the committed ones. Raises MemoryError."""

    @abstractmethod
    def commit(self, path: Sequence[int]) -> None:
        """Commit rows of the last forward, counted from its first, in ascending order, each
        following the one before."""

    @abstractmethod
    def trim(self, length: int) -> None:
        """Forget what is after ``length`` tokens. A cache that cannot forget a part may forget
        all: ``length`` says what is left."""

    def state(self) -> list[NDArray[Any]] | None:
        """Return the committed rows as they are, for ``restore`` of a cache of the same model on
        the same machine; views that hold until the next call. None for a cache that cannot be
        stored."""
        return None

    def restore(self, state: list[NDArray[Any]], length: int) -> None:
        """Hold the ``length`` tokens of which another cache gave ``state``, in place of its own
        tokens. Raises ValueError for a state of another shape."""
        raise ValueError(f"{type(self).__name__} holds no state that can be stored")

    def rows(self, start: int, end: int) -> list[NDArray[Any]]:
        """Return views of the committed rows from ``start`` to ``end``, multiples of a block."""
        raise NotImplementedError

    def append_rows(self, rows: list[NDArray[Any]]) -> None:
        """Commit ``rows`` of another cache behind its own; there is room for them."""
        raise NotImplementedError

    def copy(self, other: Cache) -> bool:
        """Hold the tokens that ``other`` holds, a cache of the same model, in place of its own.
        Whether that can be. Raises MemoryError, and holds nothing of either then."""
        state = other.state()
        if state is not None:
            self.restore(state, other.length)
        return state is not None


class RowCache(Cache):
    """Rows of committed text, after which a forward writes its own; ``commit`` moves the accepted
    ones into place."""

    def commit(self, path: Sequence[int]) -> None:
        start, count = self.length, len(path)
        prefix = count
        if count and path[-1] != count - 1:
            prefix = next(i for i, row in enumerate(path) if row != i)
        if prefix < count:
            self._move([start + row for row in path[prefix:]], start + prefix)
        self.length = start + count

    def trim(self, length: int) -> None:
        assert length <= self.length, "a cache cannot be trimmed to more than it holds"
        self.length = length

    @abstractmethod
    def _move(self, rows: list[int], start: int) -> None:
        """Copy rows, in ascending order, to those from ``start`` on."""


class Model(ABC):
    """A causal language model on one device in one number format. Used by one thread at a time."""

    capability: Capability
    vocabulary_size: int
    max_positions: int
    dtype: str
    """``fp32``, ``bf16`` or the name of another format of its weights."""
    kv_type: KvType = "f16"
    """The format of keys and values in its caches."""
    device: str
    end_tokens: frozenset[int] = frozenset()
    """Tokens that end its texts."""
    fingerprint: str = ""
    """Names model, machine and library versions, as the key of its profile."""
    computed_by: str = ""
    """The kind of its computation, in words, if it names one."""
    notices: tuple[str, ...] = ()
    """Parts of ``notice``, found when it was opened."""
    threads: int = 1
    """Threads of its next forward, where it is computed by as many as are named here."""
    learnt: LearntCosts | None = None
    """The costs of its forwards, where they are learnt from those that are run."""
    adaptive_tokens: tuple[int, ...] = ()
    """Tokens after the vocabulary that stand for text to come (SDSAT), where it learnt such."""

    @property
    def notice(self) -> str:
        """Return what the user should know about its computation, in words; empty for nothing."""
        return "; ".join(self.notices)

    @abstractmethod
    def new_cache(self, capacity: int) -> Cache:
        """Return an empty cache of ``capacity`` rows, after which it grows."""

    @abstractmethod
    def forward(self, batch: ForwardBatch, caches: Sequence[Cache]) -> Logits:
        """Compute the rows of one request after what its cache holds.

        Rows attend everything committed and each other as the batch says. Raises MemoryError, or
        what ``is_out_of_memory`` of the backend's library knows, where memory does not suffice, and
        Interrupted where ``interrupt`` ended it: then the caches are as before.
        """

    def forward_all(
        self, batches: Sequence[ForwardBatch], caches: Sequence[Cache]
    ) -> Iterable[Logits]:
        """Compute the rows of several requests, ``capability.requests`` of them at most, each after
        the tokens of its own cache; no cache is given twice.

        Rows attend their own request alone, and a request's numbers are to the last bit those of
        ``forward`` with its batch alone, with any other requests beside it. Logits come in the
        order of the requests, each valid until the next one is taken. Errors are raised before
        logits are given, for all requests whose logits were not.
        """
        for batch, cache in zip(batches, caches, strict=True):
            yield self.forward(batch, [cache])

    def wait(self) -> None:  # noqa: B027
        """Return once the last forward is computed: on some devices that goes on after it."""

    def interrupt(self) -> None:  # noqa: B027
        """End the forward that is computed now, or else the next one, as soon as that can be. For
        other threads; a model that cannot goes on."""
