"""Child processes of the daemon: frames over their standard pipes, restarted when they die."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from accel.native.python_process import python_command
from lsp_server.shared.processes.back_off import BackOff
from lsp_server.shared.processes.framing import Frame, pack_frame, read_frame, read_frame_blocking
from operating_system.folders import log_folder

logger = logging.getLogger(__name__)

OnFrame = Callable[[Frame], None]
OnDeath = Callable[[], None]

FIRST_BACK_OFF_S = 0.25
LONGEST_BACK_OFF_S = 30.0
STEADY_S = 60.0
"""A child that lived so long has earned a quick restart."""


class Child:
    """One child process and the frames to and from it."""

    def __init__(
        self, module: str, arguments: list[str], on_frame: OnFrame, on_death: OnDeath
    ) -> None:
        self._module = module
        self._arguments = arguments
        self._on_frame = on_frame
        self._on_death = on_death
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._back_off = BackOff(FIRST_BACK_OFF_S, LONGEST_BACK_OFF_S)
        self._started = 0.0
        self._reading: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """Frames can be sent."""
        return self._writer is not None

    @property
    def pid(self) -> int | None:
        """Process id of the child."""
        return self._process.pid if self._process is not None else None

    @property
    def deaths(self) -> int:
        """The number of deaths in a row, without work in between."""
        return self._back_off.failures

    @property
    def back_off_s(self) -> float:
        """Return the seconds to wait before the next start."""
        return max(0.0, self._started + self._back_off.wait_s - time.monotonic())

    async def start(self) -> None:
        """Start the child; frames sent from now on reach it."""
        self._started = time.monotonic()
        reader = await self._start_process()
        self._reading = asyncio.ensure_future(self._read(reader))

    async def _start_process(self) -> asyncio.StreamReader:
        with _children_log() as log:
            self._process = await asyncio.create_subprocess_exec(
                *python_command(self._module, *self._arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                limit=1 << 20,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._writer = self._process.stdin
        return self._process.stdout

    def send(self, frame: Frame) -> bool:
        """Send a frame; return False without a running child."""
        if self._writer is None:
            return False
        try:
            self._writer.write(pack_frame(frame))
        except (ConnectionError, RuntimeError):
            return False
        return True

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while (frame := await read_frame(reader)) is not None:
            try:
                self._on_frame(frame)
            except Exception:
                logger.exception("a frame of %s was not understood", self._module)
        self._writer = None
        if self._process is not None:
            code = await self._process.wait()
            logger.info("%s ended with code %s", self._module, code)
        if time.monotonic() - self._started > STEADY_S:
            self._back_off.forget()
        self._back_off.next_s()
        self._on_death()

    def forgive(self) -> None:
        """The child works: its next restart need not wait."""
        self._back_off.forget()

    def kill(self) -> None:
        """End the child now; its memory is given back by the system."""
        if self._writer is not None:
            self.send({"op": "end"})
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def close(self) -> None:
        """End the child and wait for it."""
        self.kill()
        if self._reading is not None:
            await self._reading


def _children_log() -> BinaryIO:
    """Return the file for the output of children; None if no log can be written."""
    try:
        return open(log_folder() / "children.log", "ab", buffering=0)
    except OSError:
        return open(os.devnull, "ab", buffering=0)


def serve_frames_on_stdio(main: Callable[[list[str], BinaryIO, BinaryIO], Any]) -> None:
    """Run a child's ``main(arguments, input, output)`` on private copies of its standard pipes.
    Output of libraries goes to stderr and cannot garble a frame."""
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    target = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    main(sys.argv[1:], source, target)


class FramePipe:
    """Frames over a pair of binary files, from any thread."""

    def __init__(self, source: BinaryIO, target: BinaryIO) -> None:
        self._source = source
        self._target = target
        self._lock = threading.Lock()

    def read(self) -> Frame | None:
        """Return the next frame, None at the end."""
        return read_frame_blocking(self._source.read)

    def write(self, frame: Frame) -> None:
        """Send a frame. A reader that has gone is no error: its own end is noticed by reading."""
        data = pack_frame(frame)
        with self._lock, contextlib.suppress(OSError, ValueError):
            view = memoryview(data)
            while view:
                view = view[self._target.write(view) or 0 :]
            self._target.flush()
