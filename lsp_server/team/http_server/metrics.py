"""Counts requests and tokens, and writes them in Prometheus's text format 0.0.4."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import JobResult

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_ROUTES = ("/v1/", "/redraft/v1/", "/api/", "/infill", "/completion", "/props", "/health")
_ROUTE_PART = re.compile(r"[a-z_]+|v1")
_COUNTED = {
    "forwards": "forwards of decoding",
    "batched_requests": "requests that shared forwards, added up over forwards",
    "batched_rows": "rows of forwards",
    "prompt_tokens": "tokens of prompts",
    "prompt_tokens_reused": "tokens of prompts that were in a cache",
}
"""Numbers of results that are added up."""
_LEFT = 499
"""The status of requests whose client left before there was an answer."""


class Metrics:
    """Counters of one server. Nothing in them is about a user or a text."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        """By route and status."""
        self.running = 0
        self.seconds: dict[str, list[float]] = {}
        """Of requests by route: one number for each bucket, their sum, and how many they are."""
        self.tokens: Counter[str] = Counter()
        """Generated, by where they were drafted from."""
        self.counts: Counter[str] = Counter()
        """Sums of what ``_COUNTED`` names."""

    def ended(self, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[route, status] += 1
        counts = self.seconds.setdefault(route, [0.0] * (len(BUCKETS_S) + 2))
        for bucket, limit in enumerate(BUCKETS_S):
            counts[bucket] += seconds <= limit
        counts[-2] += seconds
        counts[-1] += 1

    def generated(self, result: JobResult) -> None:
        """The engine answered."""
        self.tokens.update(result.sources)
        for name in _COUNTED:
            self.counts[name] += getattr(result, name)

    def text(self, engine: EngineInterface) -> str:
        """Return all of it, and the state of the engine."""
        return "".join(f"{line}\n" for line in self._lines(engine))

    def _lines(self, engine: EngineInterface) -> Iterator[str]:
        yield from _about("requests_total", "counter", "requests by route and status")
        for (route, status), number in sorted(self.requests.items()):
            yield f'redraft_requests_total{{route="{route}",status="{status}"}} {number}'
        yield from _about("request_seconds", "histogram", "time to the end of the answer")
        for route, counts in sorted(self.seconds.items()):
            for limit, count in zip([*BUCKETS_S, "+Inf"], [*counts[:-2], counts[-1]], strict=True):
                yield f'redraft_request_seconds_bucket{{route="{route}",le="{limit}"}} {count:g}'
            yield f'redraft_request_seconds_sum{{route="{route}"}} {counts[-2]!r}'
            yield f'redraft_request_seconds_count{{route="{route}"}} {counts[-1]:g}'
        yield from _about("tokens_total", "counter", "generated tokens by where they are from")
        for source, number in sorted(self.tokens.items()):
            yield f'redraft_tokens_total{{source="{source}"}} {number}'
        ready = int(engine.status.state == "ready")
        for name, description in _COUNTED.items():
            yield from _about(f"{name}_total", "counter", description)
            yield f"redraft_{name}_total {self.counts[name]}"
        for name, description, value in (
            ("requests_running", "requests under way", self.running),
            ("engine_queue", "requests at the engine", engine.calls.queue_length),
            ("engine_places", "requests that share forwards", engine.status.places),
            ("engine_kv_bytes", "bytes of keys and values", engine.status.kv_bytes),
            ("engine_kv_most_bytes", "bytes that they may take", engine.status.kv_budget),
            ("engine_ready", "1: the model is loaded", ready),
        ):
            yield from _about(name, "gauge", description)
            yield f"redraft_{name} {value}"


class Metered:
    """An ASGI application around another, which counts its requests."""

    def __init__(self, inner: ASGIApp, metrics: Metrics) -> None:
        self._inner = inner
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request and count it."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        status, started = _LEFT, time.perf_counter()
        scope["metrics"] = self._metrics

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.running += 1
        try:
            await self._inner(scope, receive, noted)
        finally:
            self._metrics.running -= 1
            self._metrics.ended(_route(scope["path"]), status, time.perf_counter() - started)


def note_result(scope: Scope, result: Any) -> None:
    """Count what the engine answered."""
    if "metrics" in scope and isinstance(result, JobResult):
        scope["metrics"].generated(result)


def _route(path: str) -> str:
    """Return a path as a label. What clients make up is one label; ids of repositories are none."""
    names = path.split("/")[1:4]
    if not path.startswith(_ROUTES) or len(path) > 100:
        return "other"
    return "/" + "/".join(name for name in names if _ROUTE_PART.fullmatch(name))


def _about(name: str, kind: str, description: str) -> Iterator[str]:
    yield f"# HELP redraft_{name} {description}"
    yield f"# TYPE redraft_{name} {kind}"


def admin_app(engine: EngineInterface, metrics: Metrics) -> Starlette:
    """``/metrics``. It needs no key: let no one reach the address who should not read it."""

    async def metrics_text(_request: Request) -> Response:
        return PlainTextResponse(metrics.text(engine), headers={"content-type": CONTENT_TYPE})

    return Starlette(routes=[Route("/metrics", metrics_text, methods=["GET"])])
