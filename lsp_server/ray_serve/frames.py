"""What a replica answers a request with, one after another."""

from __future__ import annotations

from typing import NamedTuple

from lsp_server.engine.jobs import JobResult, Span


class SpansFrame(NamedTuple):
    """Text that was generated since the last frame."""

    spans: list[Span]


class FinalFrame(NamedTuple):
    """The end of a request; ``result`` is None for a prompt that was only computed."""

    result: JobResult | None


class FailureFrame(NamedTuple):
    """The end of a request that failed. Exceptions do not travel: Ray would log their traces."""

    kind: str
    """Class name of the error in the engine; empty when there is no engine."""
    message: str


ReplicaFrame = SpansFrame | FinalFrame | FailureFrame


class ReplicaState(NamedTuple):
    """What the clients of a replica must know of its model."""

    model: str
    dtype: str
    fills: bool
    prompt_seconds: list[float]
    pid: int
    """Process id of the engine."""
    queue_length: int
    """Requests that are under way or wait."""
