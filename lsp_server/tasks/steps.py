"""A job as work that asks for forwards, see ``accel.execution.forwards``, and tells its spans."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from lsp_server.shared.contract.jobs import JobResult, Span

if TYPE_CHECKING:
    from accel.execution.forwards import Forward

OnSpans = Callable[[list[Span]], None]
Made = TypeVar("Made")
LONG_CHARACTERS = 1 << 14
"""What is made of longer texts is made aside."""


@dataclass(slots=True)
class Aside:
    """Work on texts that needs no forward and touches nothing that the decoding thread changes. The
    caller may run it on another thread, and sends its result back."""

    work: Callable[[], Any]

    def outcome(self) -> Any:
        """Return the result of the work, or raise its error."""
        try:
            return self.work()
        except Exception as error:
            return error


Steps: TypeAlias = Generator["Forward | list[Span]", Any, JobResult]
JobSteps: TypeAlias = Generator["Forward | Aside | list[Span]", Any, JobResult]
"""The same with what is made of its texts before."""


def made_of(characters: int, make: Callable[[], Made]) -> Generator[Aside, Any, Made]:
    """Yield the work of ``make`` on texts of ``characters`` characters, and return its result."""
    if characters <= LONG_CHARACTERS:
        return make()
    made: Made = yield Aside(make)
    return made


def in_place(steps: JobSteps) -> Steps:
    """Return the same job, which does everything itself."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Aside):
                outcome = step.outcome()
            else:
                try:
                    outcome = yield step
                except Exception as error:
                    outcome = error
            step = steps.throw(outcome) if isinstance(outcome, Exception) else steps.send(outcome)
    except StopIteration as end:
        result: JobResult = end.value
        return result
    finally:
        steps.close()


def heard(steps: Steps, hear: OnSpans) -> Steps:
    """Run a job's steps and pass their spans to ``hear``."""
    from accel.execution.forwards import relayed

    def relay(spans: list[Span]) -> list[Span]:
        hear(spans)
        return spans

    return relayed(steps, relay)


def finished(steps: JobSteps, on_spans: OnSpans | None) -> JobResult:
    """Run alone to the end; ``on_spans`` gets what every step added."""
    from accel.execution.forwards import alone

    work = in_place(steps)
    return alone(work if on_spans is None else heard(work, on_spans))
