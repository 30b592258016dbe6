"""The server's status: what it is doing, and why nothing appeared. It is sent when it changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from accel.errors import NO_MODEL
from lsp_server.index.client import WorkspaceState
from lsp_server.models.used import UsedModel, UsedModels
from lsp_server.shared.contract.engine import EngineInterface
from lsp_server.shared.contract.jobs import JobResult
from lsp_server.shared.contract.status import EngineStatus

SEND_EVERY_S = 0.2
"""Changes in quick succession are told once."""
WORTH_TELLING = 1.1
"""Tokens for each forward from which on a user is told of them."""

NO_FILLING = (
    "the model has no fill-in-the-middle tokens: it completes from the text before the cursor "
    "alone; a code model that has them reads both sides"
)
_REMEDIES = {
    "error": "check the setting redraft.model.path, or run: redraft doctor",
    "paused": "run the command redraft.resume",
}
_WITHHELD_REMEDY = "if it holds no secrets, run the command redraft.allowFile"


@dataclass(slots=True)
class Performance:
    """The last completion's cost, as the status shows it."""

    latency_ms: float = 0.0
    tokens: int = 0
    forwards: int = 0
    shown: int = 0
    accepted: int = 0
    """Suggestions shown and accepted, counted here and told to nobody else."""

    def add(self, result: JobResult) -> None:
        """Count a completion."""
        self.tokens += result.tokens
        self.forwards += result.forwards

    @property
    def tokens_per_forward(self) -> float | None:
        """Tokens for each forward of the model since the client connected, one without drafts; None
        below :data:`WORTH_TELLING`. How busy the machine was does not count."""
        rate = self.tokens / self.forwards if self.forwards else 0.0
        return rate if rate >= WORTH_TELLING else None


@dataclass(slots=True)
class Condition:
    """Everything that the status is made from."""

    enabled: bool
    paused: str
    """Until when, as one says it; empty where it is not."""
    engine: EngineInterface
    edit_engine: EngineInterface
    """The same where both have one model."""
    used: UsedModels
    workspaces: list[WorkspaceState]
    performance: Performance
    prompt_seconds: float = 0.0
    """What the user gives a prompt that is computed cold."""
    acceptance: dict[str, dict[str, float]] = field(default_factory=dict)
    """How often suggestions are taken, by language."""
    reason: str = ""
    """Why the last request had nothing to show."""
    inactive: str = ""
    """Why there are no suggestions in the document asked about."""
    withheld: dict[str, str] = field(default_factory=dict)
    """Open documents that hold secrets: URI and reason."""
    document: str = ""
    """URI of the document asked about."""
    next_edits: dict[str, Any] = field(default_factory=dict)
    """What the user is told of next edits."""
    fetching: str = ""
    """Which model is being fetched, and how far that is."""
    saves_power: str = ""
    """Why nothing runs ahead of a pause; empty where it does."""


def status_message(condition: Condition) -> dict[str, Any]:
    """Return the JSON of ``redraft/status``."""
    state, message = _state(condition)
    performance = condition.performance
    rounded = performance.tokens_per_forward
    completes, edits = condition.engine.status, condition.edit_engine.status
    engines = {condition.engine, condition.edit_engine}
    has_remedy = state in ("error", "ready") or message == NO_MODEL
    remedy = _remedy_of_failure(condition) if has_remedy else ""
    if state == "inactive" and condition.document in condition.withheld:
        remedy = _WITHHELD_REMEDY
    return {
        "state": state,
        "message": message,
        "remedy": remedy or _REMEDIES.get(state, ""),
        "model": _name(completes),
        "editModel": _name(edits),
        "models": {
            "completion": _used(condition.used.completion, completes),
            "edits": _used(condition.used.edits, edits),
        },
        "modelNotes": condition.used.notes,
        "fetching": condition.fetching,
        "savesPower": condition.saves_power,
        "compiling": edits.compiling,
        "workspace": ", ".join(state.folder for state in condition.workspaces),
        "index": {
            name: sum(getattr(state, name) for state in condition.workspaces)
            for name in ("files", "tokens", "done", "total")
        },
        "nextEdits": condition.next_edits,
        "promptTokens": completes.prompt_length.tokens(condition.prompt_seconds) or None,
        "lastLatencyMs": round(performance.latency_ms, 1) if performance.latency_ms else None,
        "tokensPerForward": round(rounded, 2) if rounded else None,
        "shown": performance.shown,
        "accepted": performance.accepted,
        "acceptance": condition.acceptance,
        "server": completes.server,
        "queue": sum(engine.calls.queue_length for engine in engines),
        "stopping": sum(engine.calls.stopping for engine in engines),
        "reason": condition.inactive or condition.reason or _hint(completes),
        "heldBack": [
            {"uri": uri, "reason": reason} for uri, reason in sorted(condition.withheld.items())
        ],
    }


def _remedy_of_failure(condition: Condition) -> str:
    engines = condition.engine.status, condition.edit_engine.status
    return next((engine.remedy for engine in engines if engine.state == "failed"), "")


def _name(engine: EngineStatus) -> str:
    return "" if engine.model == "none" else f"{engine.model} {engine.dtype}".removesuffix(" auto")


def _used(used: UsedModel, engine: EngineStatus) -> dict[str, Any]:
    return {
        "name": _name(engine),
        "path": used.path,
        "state": engine.state,
        "because": used.because,
        "passed": used.passed,
    }


def _state(condition: Condition) -> tuple[str, str]:
    engine, edits = condition.engine.status, condition.edit_engine.status
    indexing = [state for state in condition.workspaces if state.state in ("waiting", "indexing")]
    failed = [state for state in condition.workspaces if state.state == "failed"]
    if not condition.enabled:
        return "inactive", "switched off by the setting redraft.enabled"
    if condition.paused:
        return "paused", f"paused {condition.paused}"
    if engine.state == "failed" and engine.message != NO_MODEL:
        return "error", engine.message
    if engine.state == "failed":
        # Nothing is wrong where nothing was chosen.
        return ("loading", condition.fetching) if condition.fetching else ("inactive", NO_MODEL)
    if condition.inactive:
        return "inactive", condition.inactive
    if engine.state == "loading":
        return "loading", engine.message
    if indexing:
        done = sum(state.done for state in indexing)
        total = sum(state.total for state in indexing)
        if not total:
            return "indexing", "looking for files to index"
        return "indexing", f"indexing {done} of {total} files"
    if failed:
        return "ready", f"without index: {failed[0].message}"
    if edits.state == "failed":
        return "ready", f"no edits: {edits.message}"
    if troubled := [state.message for state in condition.workspaces if state.message]:
        return "ready", troubled[0]
    return "ready", engine.message if engine.state == "idle" else _hint(engine)


def _hint(engine: EngineStatus) -> str:
    notice = f"about the model: {engine.notice}" if engine.notice else ""
    return "; ".join(filter(None, [engine.server_note, "" if engine.fills else NO_FILLING, notice]))


class StatusReporter:
    """Sends the status when it changed, at most every :data:`SEND_EVERY_S`."""

    def __init__(
        self, send: Callable[[dict[str, Any]], None], condition: Callable[[], Condition]
    ) -> None:
        self._send = send
        self._condition = condition
        self._last: dict[str, Any] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def changed(self) -> None:
        """Something may have changed."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SEND_EVERY_S, self._tell)

    def _tell(self) -> None:
        self._timer = None
        message = status_message(self._condition())
        if message != self._last:
            self._last = message
            self._send(message)

    def stop(self) -> None:
        """The client has gone."""
        if self._timer is not None:
            self._timer.cancel()
