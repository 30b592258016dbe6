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
    """Work on texts that needs no forward and touches nothing that the decoding thread changes.
    Whoever runs the steps may have another thread do it, and sends what it returns."""

    work: Callable[[], Any]

    def outcome(self) -> Any:
        """What it returns, or the error that it raises."""
        try:
            return self.work()
        except Exception as error:
            return error


Steps: TypeAlias = Generator["Forward | list[Span]", Any, JobResult]
JobSteps: TypeAlias = Generator["Forward | Aside | list[Span]", Any, JobResult]
"""The same with what is made of its texts before."""


def made_of(characters: int, make: Callable[[], Made]) -> Generator[Aside, Any, Made]:
    """What ``make`` makes of texts of so many characters."""
    if characters <= LONG_CHARACTERS:
        return make()
    made: Made = yield Aside(make)
    return made


def in_place(steps: JobSteps) -> Steps:
    """The same job, which does everything itself."""
    try:
        step = next(steps)
        while True:
            if isinstance(step, Aside):
                found = step.outcome()
            else:
                try:
                    found = yield step
                except Exception as error:
                    found = error
            step = steps.throw(found) if isinstance(found, Exception) else steps.send(found)
    except StopIteration as end:
        result: JobResult = end.value
        return result
    finally:
        steps.close()


def heard(steps: Steps, hear: OnSpans) -> Steps:
    """The same job, whose spans somebody hears."""
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
