"""Runs functions in a child process: a long one in a thread would stop everything else that shares
the interpreter. Each call has a thread of its own there, so that none waits for another."""

from __future__ import annotations

import asyncio
import base64
import itertools
import logging
import pickle
import threading
from collections.abc import Callable
from typing import BinaryIO, ParamSpec, TypeVar

from lsp_server.shared.errors import RedraftError, WorkTakesTooLong
from lsp_server.shared.processes.background import in_background
from lsp_server.shared.processes.child import Child, FramePipe, serve_frames_on_stdio
from lsp_server.shared.processes.framing import Frame

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")

LONGEST_S = 10.0
"""A call that takes longer is given up, and the process with it."""
LONGEST_LOADING_S = 60.0
"""The process and what a function imports may take so long before that: a busy machine loads them
slowly the first time."""
_LATE = b"in place of a frame that does not come in time"
IDLE_S = 300.0
"""The process ends when nobody has called it for so long."""


class _ProcessEnded(WorkTakesTooLong):
    """The process died under a call."""


class FunctionProcess:
    """One process, started with the first call and again when it died or ended for want of work."""

    def __init__(self, longest_s: float | None = None) -> None:
        """``longest_s``: seconds after which a call is given up, ``LONGEST_S`` by default."""
        self._longest_s = LONGEST_S if longest_s is None else longest_s
        self._child = Child(__name__, [], self._receive, self._died)
        self._calls: dict[int, asyncio.Queue[bytes | None]] = {}
        """What comes for each: nothing once all is loaded, then the answer; None when the process
        died."""
        self._numbers = itertools.count()
        self._starting = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Process id of the child."""
        return self._child.pid if self._child.alive else None

    async def call(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Return what ``function`` returns, or raise what it raises; the function, its arguments
        and its result must be picklable.

        Raises WorkTakesTooLong. A call that is cancelled is not waited for.
        """
        # Now: what is told may be another thing once the process has started.
        data = base64.b64encode(pickle.dumps((function, arguments, named))).decode("ascii")
        try:
            answer = await self._answer(data)
        except _ProcessEnded:
            # Another call was given up, and the process with it.
            answer = await self._answer(data)
        result, error = pickle.loads(answer)
        if error is not None:
            raise error
        returned: Result = result
        return returned

    def prepare(self, function: Callable[[], object]) -> None:
        """Start the process where none runs, and call ``function`` there for what it loads."""
        if not self._child.alive and not self._calls and not self._starting.locked():
            in_background(self.call(function))

    async def _answer(self, data: str) -> bytes:
        self._stop_waiting()
        await self._start()
        number, frames = next(self._numbers), asyncio.Queue[bytes | None]()
        self._calls[number] = frames
        if not self._child.send({"number": number, "data": data}):
            self._died()
        try:
            answer = await _next_of(frames, LONGEST_LOADING_S)
            return answer or await _next_of(frames, self._longest_s)
        except asyncio.TimeoutError:
            await self._child.close()
            raise WorkTakesTooLong(f"more than {self._longest_s:g} s and was given up") from None
        finally:
            self._calls.pop(number, None)
            self._stop_waiting()
            self._idle = asyncio.get_running_loop().call_later(
                IDLE_S, lambda: in_background(self._end_unused())
            )

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()

    async def _end_unused(self) -> None:
        async with self._starting:
            if not self._calls:
                await self._child.close()

    async def _start(self) -> None:
        async with self._starting:
            if not self._child.alive and not self._closed:
                await asyncio.sleep(self._child.back_off_s)
                await self._child.start()

    async def end(self) -> None:
        """End the process, and what it works on; the next call starts another."""
        self._stop_waiting()
        await self._child.close()

    async def close(self) -> None:
        """End the process for good."""
        self._closed = True
        await self.end()

    def _receive(self, frame: Frame) -> None:
        self._child.forgive()
        frames = self._calls.get(frame["number"])
        if frames is not None:
            frames.put_nowait(base64.b64decode(frame["data"]))

    def _died(self) -> None:
        for frames in self._calls.values():
            frames.put_nowait(None)


async def _next_of(frames: asyncio.Queue[bytes | None], longest_s: float) -> bytes:
    """Return what comes next for a call. Raises TimeoutError, or that its process ended."""
    timer = asyncio.get_running_loop().call_later(longest_s, frames.put_nowait, _LATE)
    try:
        # ``wait_for`` forgets, before Python 3.12, a cancellation that comes with the frame.
        frame = await frames.get()
    finally:
        timer.cancel()
    if frame is _LATE:
        raise asyncio.TimeoutError
    if frame is None:
        raise _ProcessEnded("more than its process could bear")
    return frame


def main_on(arguments: list[str], source: BinaryIO, target: BinaryIO) -> None:
    """Run what the daemon asks for, over a pair of files."""
    pipe = FramePipe(source, target)
    while (frame := pipe.read()) is not None and "number" in frame:
        threading.Thread(target=_run, args=(frame, pipe), daemon=True).start()


def _run(frame: Frame, pipe: FramePipe) -> None:
    result: object = None
    failure: Exception | None = None
    try:
        function, arguments, named = pickle.loads(base64.b64decode(frame["data"]))
        pipe.write({"number": frame["number"], "data": ""})
        result = function(*arguments, **named)
    except RedraftError as error:
        failure = error
    except Exception as error:
        logger.exception("a function failed")
        failure = RuntimeError(f"{type(error).__name__}: {error}")
    data = base64.b64encode(pickle.dumps((result, failure))).decode("ascii")
    pipe.write({"number": frame["number"], "data": data})


if __name__ == "__main__":
    from lsp_server.shared.processes.log import start_log

    start_log("functions")
    serve_frames_on_stdio(main_on)
