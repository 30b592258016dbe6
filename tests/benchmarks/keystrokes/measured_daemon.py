"""The daemon of an editor, which takes times of itself and answers ``redraft/measurements``. Run it
as a module with the address of its socket; fronts find it there as any other."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from lsprotocol import types

from lsp_server.editor import handlers
from lsp_server.editor.daemon import connection, host
from lsp_server.editor.next_edits.model import ConfidentChanges, NextEditModel, WindowRequest
from lsp_server.editor.protocol.jsonrpc import RedraftProtocol
from lsp_server.editor.server import RedraftServer
from lsp_server.shared.contract.jobs import EDIT
from tests.benchmarks.keystrokes.answer_times import AnswerTimes

MAX_ANSWERS, MOST_NEXT_EDITS = 20_000, 200
SAMPLE_EVERY_S = 0.002
STEP_S = 1e-4


class Histogram:
    """A histogram of times, in steps of a tenth of a millisecond. Never forgets."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._longest_s = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self._counts[max(0, int(seconds / STEP_S))] += 1
        self._longest_s = max(self._longest_s, seconds)

    def percentile(self, percent: float) -> float:
        """Return seconds that ``percent`` of the times did not exceed, rounded up to a step; 0 of
        nothing."""
        remaining = sum(self._counts.values()) * percent / 100
        for step in sorted(self._counts):
            remaining -= self._counts[step]
            if remaining <= 0:
                return min(self._longest_s, (step + 1) * STEP_S)
        return self._longest_s

    def as_json(self) -> dict[str, float]:
        """Return number, percentiles and the longest; times in seconds."""
        return {
            "count": sum(self._counts.values()),
            "p50": self.percentile(50),
            "p95": self.percentile(95),
            "p999": self.percentile(99.9),
            "max": self._longest_s,
        }


class Measurements:
    """Handling times of messages of one client; with ``watch_loop`` also of the event loop."""

    def __init__(self) -> None:
        self.did_change = Histogram()
        self.answers: deque[dict[str, Any]] = deque(maxlen=MAX_ANSWERS)
        self._loop_late = Histogram()
        self._loop_busy = Histogram()
        self._watching: asyncio.Task[None] | None = None

    def watch_loop(self) -> None:
        """Take the time by which the event loop is late. Costs some processor time."""
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch_loop())

    def stop(self) -> None:
        """The client has gone."""
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None

    async def _watch_loop(self) -> None:
        """By the clock, which other processes bend too, and by this thread's processor time."""
        while True:
            started, busy = time.perf_counter(), time.thread_time()
            await asyncio.sleep(SAMPLE_EVERY_S)
            self._loop_late.add(time.perf_counter() - started - SAMPLE_EVERY_S)
            self._loop_busy.add(time.thread_time() - busy)

    def answered(self, msg_id: Any, without_model: bool, seconds: float) -> None:
        """A completion was answered ``seconds`` after its request was read."""
        self.answers.append({"id": msg_id, "withoutModel": without_model, "seconds": seconds})

    def as_json(self) -> dict[str, Any]:
        """Everything so far. Times in seconds."""
        return {
            "didChange": self.did_change.as_json(),
            "answers": list(self.answers),
            "loopLate": self._loop_late.as_json(),
            "loopBusy": self._loop_busy.as_json(),
        }


_of_protocols: WeakKeyDictionary[RedraftProtocol, Measurements] = WeakKeyDictionary()
_of_models: WeakKeyDictionary[NextEditModel, deque[AnswerTimes]] = WeakKeyDictionary()


def measurements(ls: RedraftServer, params: Any) -> dict[str, Any]:
    """Return the times of a connection; the first call begins to watch the event loop, one with
    ``{"watch": false}`` ends that."""
    measured = _of(ls.protocol)
    if isinstance(params, dict) and params.get("watch") is False:
        measured.stop()
    else:
        measured.watch_loop()
    calls, model = ls.engine().calls, ls.next_edits.model
    return {
        **measured.as_json(),
        "nextEdits": [asdict(times) for times in _of_models.get(model, ())] if model else [],
        "cancels": list(calls.cancels_s),
        "cancelForwards": list(calls.cancel_forwards_s),
    }


def _of(protocol: RedraftProtocol) -> Measurements:
    return _of_protocols.setdefault(protocol, Measurements())


def take_times() -> None:
    """Have the daemon of this process take times."""
    receive, register, answer = RedraftProtocol.receive, handlers.register, handlers._answer
    ask = NextEditModel.ask

    def receive_timed(protocol: RedraftProtocol, body: bytes) -> None:
        started = time.perf_counter()
        receive(protocol, body)
        if json.loads(body).get("method") == types.TEXT_DOCUMENT_DID_CHANGE:
            _of(protocol).did_change.add(time.perf_counter() - started)

    def register_more(ls: RedraftServer) -> None:
        register(ls)
        ls.protocol.add_handler("redraft/measurements", measurements)

    async def answer_timed(ls: RedraftServer, *arguments: Any) -> Any:
        started, msg_id = time.monotonic(), ls.protocol.msg_id
        found = await answer(ls, *arguments)
        if found is not None:
            took_s = time.monotonic() - started
            _of(ls.protocol).answered(msg_id, found.without_model, took_s)
        return found

    async def ask_timed(
        model: NextEditModel,
        request: WindowRequest,
        tell: Callable[[ConfidentChanges], None],
        priority: int = EDIT,
    ) -> None:
        times, last = AnswerTimes(), [*model.results][-1:]

        def tell_timed(confident: ConfidentChanges) -> None:
            times.changed()
            tell(confident)

        await ask(model, request, tell_timed, priority)
        if [*model.results][-1:] != last:
            times.ended(model.results[-1])
            _of_models.setdefault(model, deque(maxlen=MOST_NEXT_EDITS)).append(times)

    for owner, name, function in (
        (RedraftProtocol, "receive", receive_timed),
        (connection, "register", register_more),
        (handlers, "_answer", answer_timed),
        (NextEditModel, "ask", ask_timed),
    ):
        setattr(owner, name, function)


if __name__ == "__main__":
    take_times()
    sys.exit(host.main(Path(sys.argv[1])))
