"""Forwards that work under way asks for, so that whoever runs it computes those of many together.

Work that needs a model is a generator: it yields each ``Forward`` and is sent its logits, or the
error that ended it. Work of a kind that tells something on the way yields that, too, and is sent
nothing for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from accel.errors import OutOfMemory
from accel.models.base import Logits, Model
from accel.models.batch import ForwardBatch

if TYPE_CHECKING:
    from accel.execution.session import Session

Result = TypeVar("Result")
Told = TypeVar("Told")
Relayed = TypeVar("Relayed")

Forwards = Generator["Forward", Any, Result]
"""Work that asks for forwards alone."""
Steps = Generator["Forward | Told", Any, Result]
"""Work that tells something on the way, too."""

_NOTHING = np.empty(0, np.float32)


@dataclass(slots=True, eq=False)
class Forward:
    """Rows that a model is to compute after a session's text.

    Not all of them need be: the first ``rows`` are computed, which whoever runs it may lower to
    ``least``, and whoever asked for it goes by.
    """

    model: Model
    session: Session
    rows: int
    batch_of: Callable[[int], ForwardBatch]
    """Makes the batch of the first rows, so many."""
    least: int
    chances: NDArray[np.float32] = field(default_factory=lambda: _NOTHING)
    """How likely each row beyond ``least`` becomes text, where rows are guesses. float32 [n]."""
    all_rows: int = 0
    """Rows of the whole forward, others' among them, once it was computed."""
    seconds: float = 0.0
    """How long that took."""

    @classmethod
    def of(cls, model: Model, session: Session, batch: ForwardBatch) -> Forward:
        """All rows of a batch."""
        return cls(model, session, len(batch), lambda _: batch, len(batch))

    @property
    def is_prompt(self) -> bool:
        """Whether it computes a part of a prompt, any of whose rows have to be computed once."""
        return self.least < self.rows and not len(self.chances)


def compute_all(forwards: Sequence[Forward]) -> Iterator[tuple[Forward, Logits | Exception]]:
    """Compute forwards of one model, together where it does that. Each comes with its logits, which
    are valid until the next one is taken, or with why there are none."""
    model = forwards[0].model
    most, started = max(model.capability.requests, 1), time.perf_counter()
    for first in range(0, len(forwards), most):
        group = forwards[first : first + most]
        rows, elapsed = sum(forward.rows for forward in group), 0.0
        try:
            batches = [forward.batch_of(forward.rows) for forward in group]
            found = model.forward_all(batches, [forward.session.cache for forward in group])
            for forward, logits in zip(group, found, strict=True):
                # What others do with their logits is no part of the forward.
                elapsed = elapsed or time.perf_counter() - started
                forward.seconds, forward.all_rows = elapsed, rows
                yield forward, logits
        except MemoryError:
            if len(group) > 1:
                for forward in group:
                    yield from compute_all([forward])
            else:
                (forward,) = group
                yield forward, out_of_memory(model, forward.session, forward.rows)
        except Exception as error:
            for forward in group:
                yield forward, error
        started = time.perf_counter()


def out_of_memory(model: Model, session: Session, rows: int) -> OutOfMemory:
    """The error for so many rows that do not fit; the session is dropped."""
    needed = session.length + rows
    session.drop()
    return OutOfMemory(
        f"no room for {needed} tokens of KV cache on "
        f"{model.device}; use a shorter prompt or a smaller model"
    )


def told(steps: Steps[Told, Result]) -> Generator[Told, None, Result]:
    """Compute the forwards of some work one by one, and give what it tells."""
    try:
        step = next(steps)
        while True:
            if not isinstance(step, Forward):
                yield step
                step = next(steps)
                continue
            ((_, found),) = compute_all([step])
            step = steps.throw(found) if isinstance(found, Exception) else steps.send(found)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        steps.close()


def alone(steps: Steps[Told, Result]) -> Result:
    """Compute the forwards of some work one by one, to its end."""
    work = told(steps)
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result


def relayed(steps: Steps[Told, Result], relay: Callable[[Told], Relayed]) -> Steps[Relayed, Result]:
    """The same work, which tells something else for what it told."""
    try:
        step = next(steps)
        while True:
            try:
                sent = yield step if isinstance(step, Forward) else relay(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(sent)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        steps.close()
