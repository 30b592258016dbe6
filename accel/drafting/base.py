"""The two seams of drafting: an index that knows continuations, and a drafter that makes trees.

Everything here is plain token ids. A drafter never sees the KV cache or the logits and can be
tested by replay without a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import DraftTree, TokenArray
from accel.execution.forwards import Forwards, alone
from accel.verification.sampling import Sampling


@dataclass(slots=True)
class Continuations:
    """Continuations of earlier occurrences of the end of a context.

    tokens: int32 [n, depth], rows padded with -1 where a file ends; lengths: int32 [n], the number
    of tokens before the continuation that equal the end of the context; counts: float32 [n], the
    number of occurrences that a row stands for (an unbiased sample of many has counts above 1);
    sources: int8 [n], values of :class:`Source`; files: int32 [n], the index's own id of the file,
    -1 when unknown.
    """

    tokens: TokenArray
    lengths: TokenArray
    counts: NDArray[np.float32]
    sources: NDArray[np.int8]
    files: TokenArray

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def empty(cls, depth: int) -> Continuations:
        """No continuation known."""
        return cls(
            np.empty((0, depth), np.int32),
            np.empty(0, np.int32),
            np.empty(0, np.float32),
            np.empty(0, np.int8),
            np.empty(0, np.int32),
        )


class ContinuationIndex(Protocol):
    """A snapshot of a datastore. Lookups never wait, never change the snapshot, never raise."""

    def lookup(
        self, context: TokenArray, *, max_match: int = 16, limit: int = 64, depth: int = 16
    ) -> Continuations:
        """Return continuations of the longest suffixes of ``context`` (int32 [m]).

        Rows of every match length from the longest found (at most ``max_match``) down to 1 are
        given, longer matches first, at most ``limit`` rows in each source, ``depth`` tokens each.
        Where a length has more occurrences than rows, positions are sampled without
        bias and ``counts`` says how many occurrences each row stands for.
        """
        ...


@runtime_checkable
class DirectIndex(ContinuationIndex, Protocol):
    """An index that writes lookups into given memory, and that compiled code can call.

    entry: int64 [2], the address of a function and its first argument, which the index keeps. It is
    called as a function of C with seven int64 and returns what ``lookup_into`` does: that argument,
    the address of the context's tokens (int32), how many they are, the address of ``places``,
    ``max_match``, ``limit``, ``depth``.
    """

    entry: NDArray[np.int64]

    def lookup_into(
        self,
        context: TokenArray,
        positions: NDArray[np.int64],
        *,
        max_match: int,
        limit: int,
        depth: int,
    ) -> int:
        """``lookup`` without files and in no order; returns how many rows were written.

        places: int64 [6], the addresses of tokens (int32 [rows, width]), lengths (int32 [rows]),
        counts (float32 [rows]) and sources (int8 [rows]), then how many rows fit and
        ``width``. A row that is shorter than ``width`` ends by -1.
        """
        ...


@dataclass(slots=True)
class DraftRequest:
    """The input of a drafter for one request. All ids are of the target's tokenizer."""

    prompt: TokenArray
    """The text that is continued: it does not end with markers of a prompt's format."""
    suffix: TokenArray = field(default_factory=lambda: np.empty(0, np.int32))
    """Text after the cursor (fill-in-the-middle), where it is not readable from the prompt."""
    original: TokenArray | None = None
    """The code that an edit starts from."""
    closing: TokenArray = field(default_factory=lambda: np.empty(0, np.int32))
    """Tokens expected between the edited code and the end of the answer, for example a closing
    fence."""
    index: ContinuationIndex | None = None
    rewrites: tuple[tuple[str, str], ...] | None = None
    """Words and phrases that the original is likely to have replaced, old and new; None: what the
    prompt before the original says in words."""
    workspace: str = ""
    """Key of the accepted history between requests."""
    model_prompt: TokenArray | None = None
    """The target model's whole prompt, where that is more than ``prompt``: for draft models."""
    sampling: Sampling | None = None
    """The sampling of the text's tokens, for drafters that sample as well."""


class VerifyCosts(NamedTuple):
    """Costs of verification, for drafters that stop when another node does not pay.

    seconds: float64 [n + 1], a step with 0, 1, .. nodes; marginal: float64 [n + 1], the least cost
    of one more node beyond 0, 1, ..; acceptance_scale: accepted over predicted tokens.
    """

    seconds: NDArray[np.float64]
    marginal: NDArray[np.float64]
    acceptance_scale: float

    @classmethod
    def free(cls, nodes: int) -> VerifyCosts:
        """Nodes cost nothing."""
        return cls(np.ones(nodes + 1), np.zeros(nodes + 1), 1.0)


@runtime_checkable
class PlanningDrafter(Protocol):
    """A drafter with calibrated probabilities, which plans while it drafts.

    ``step_s``: what a step with a draft takes beside the forward, the draft's own time among it, by
    which trees are sized: once it is spent, a larger tree is cheap. ``saved_s``: seconds that its
    last tree is expected to save, drafting left out.
    """

    step_s: float
    saved_s: float

    def draft_within(self, max_nodes: int, costs: VerifyCosts) -> DraftTree:
        """Return the tree with the most expected tokens per second, empty when plain decoding has
        more. ``costs`` are for ``max_nodes`` or more."""
        ...


@runtime_checkable
class LookingDrafter(Protocol):
    """A drafter whose trees end with rows that no text takes (adaptive tokens): it is shown what
    the model says on them.

    ``looks``: whether its last tree has such rows.
    """

    looks: bool

    def look(
        self, tree: DraftTree, stop: int, logits_of: Callable[[int], NDArray[np.float32]]
    ) -> None:
        """After a forward, before ``commit``: what was verified of the last tree, the node where
        the text stopped, -1 for the root, and the logits of each node, float32 [vocabulary]."""
        ...


class Drafter(Protocol):
    """Makes draft trees for one line of requests. Used by one thread. Order of calls: ``begin``
    once a request, then ``draft`` and ``commit`` in turn."""

    name: str

    def begin(self, request: DraftRequest) -> None:
        """Forget the last request; the context is now ``request.prompt``."""
        ...

    def draft(self, max_nodes: int) -> DraftTree:
        """Return a tree of at most ``max_nodes`` nodes that continues the context."""
        ...

    def commit(self, tree: DraftTree, path: list[int], tokens: TokenArray) -> None:
        """The verifier walked ``path`` (node indices of ``tree``); the context grew by ``tokens``.

        ``tokens`` holds the accepted path and then the model's own next token, unless the request
        ended inside the path.
        """
        ...


class ComputingDrafter(Drafter, ABC):
    """A drafter that asks a model for forwards, which may be computed beside others'."""

    @abstractmethod
    def begin_steps(self, request: DraftRequest) -> Forwards[None]:
        """``Drafter.begin``."""

    @abstractmethod
    def draft_steps(self, max_nodes: int) -> Forwards[DraftTree]:
        """``Drafter.draft``."""

    def begin(self, request: DraftRequest) -> None:
        """``begin_steps``, computed alone."""
        alone(self.begin_steps(request))

    def draft(self, max_nodes: int) -> DraftTree:
        """``draft_steps``, computed alone."""
        return alone(self.draft_steps(max_nodes))
