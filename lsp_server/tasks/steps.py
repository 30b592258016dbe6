"""A job as work that asks for forwards, see ``accel.forwards``, and tells its spans."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

from lsp_server.shared.contract.jobs import JobResult, Span

if TYPE_CHECKING:
    from accel.forwards import Forward

OnSpans = Callable[[list[Span]], None]
Steps: TypeAlias = Generator["Forward | list[Span]", Any, JobResult]


def heard(steps: Steps, hear: OnSpans) -> Steps:
    """The same job, whose spans somebody hears."""
    from accel.forwards import relayed

    def relay(spans: list[Span]) -> list[Span]:
        hear(spans)
        return spans

    return relayed(steps, relay)


def finished(steps: Steps, on_spans: OnSpans | None) -> JobResult:
    """Run alone to the end; ``on_spans`` gets what every step brought."""
    from accel.forwards import alone

    return alone(steps if on_spans is None else heard(steps, on_spans))
