"""Forwards that running work asks for, so that those of several requests are computed together.

Work that needs a model is a generator: it yields each ``Forward`` and is sent its logits, or the
error that ended it. Work that reports results on the way yields them, too, and is sent nothing for
them.
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

LEAST_PROMPT = 48
"""Rows from which a forward costs about the same with its logits and without."""

_NOTHING = np.empty(0, np.float32)


@dataclass(slots=True, eq=False)
class Forward:
    """Rows that a model is to compute after a session's text.

    The first ``rows`` are computed; the caller of ``compute_all`` may lower that number to
    ``least`` first.
    """

    model: Model
    session: Session
    rows: int
    batch_of: Callable[[int], ForwardBatch]
    """Makes the batch of a number of first rows."""
    least: int
    chances: NDArray[np.float32] = field(default_factory=lambda: _NOTHING)
    """Probability that each row beyond ``least`` becomes text, if rows are guesses. float32 [n]."""
    may_try: bool = False
    """True if it may be computed by other threads than the best, for trial: its text has begun."""

    @classmethod
    def of(cls, model: Model, session: Session, batch: ForwardBatch) -> Forward:
        """Return all rows of a batch."""
        return cls(model, session, len(batch), lambda _: batch, len(batch))

    @property
    def is_prompt(self) -> bool:
        """Return whether it computes a part of a prompt, each row of which has to be computed
        once."""
        return self.least < self.rows and not len(self.chances)


def compute_all(forwards: Sequence[Forward]) -> Iterator[tuple[Forward, Logits | Exception]]:
    """Compute forwards of one model, together where it does that. Each comes with its logits, which
    are valid until the next one is taken, or with why there are none."""
    model = forwards[0].model
    most = max(model.capability.requests, 1)
    for first in range(0, len(forwards), most):
        group = forwards[first : first + most]
        try:
            yield from zip(group, _computed(model, group), strict=True)
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


def _computed(model: Model, group: Sequence[Forward]) -> Iterator[Logits]:
    """Compute forwards together, and learn what that costs."""
    batches = [forward.batch_of(forward.rows) for forward in group]
    caches, learnt = [forward.session.cache for forward in group], model.learnt
    if learnt is None:
        yield from model.forward_all(batches, caches)
        return
    rows = sum(map(len, batches))
    context = sum(
        len(batch) * cache.length for batch, cache in zip(batches, caches, strict=True)
    ) // max(rows, 1)
    model.threads = learnt.choose(rows, context, may_try=all(forward.may_try for forward in group))
    started = time.perf_counter()
    for number, logits in enumerate(model.forward_all(batches, caches)):
        if not number:
            model.wait()
            elapsed = time.perf_counter() - started
            logit_rows = rows - sum(batch.logits_from for batch in batches)
            # The end of a prompt, without logits, is no measure of a small tree.
            if rows >= LEAST_PROMPT or 2 * logit_rows > rows:
                learnt.note(rows, context, elapsed)
        yield logits


def out_of_memory(model: Model, session: Session, rows: int) -> OutOfMemory:
    """Return the error for ``rows`` rows that do not fit; the session is dropped."""
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
            ((_, logits),) = compute_all([step])
            step = steps.throw(logits) if isinstance(logits, Exception) else steps.send(logits)
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
    """Return the same work, which tells something else for what it told."""
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
