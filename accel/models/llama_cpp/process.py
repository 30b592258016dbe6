"""The worker's process, as the model sees it: started when it is needed, again after it died."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections import deque
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from accel.errors import BackendDied, OutOfMemory, UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.llama_cpp.library_files import INSTALL, is_installed, other_library
from accel.models.llama_cpp.worker import frame_of, read_frame, write_frame
from accel.native.python_process import python_command

COMMAND: Sequence[str] = python_command("accel.models.llama_cpp.worker")
EXAMINED_S = 60.0
SPINS = "2000"
"""How often a thread of GNU's OpenMP looks whether the others are done before it sleeps. By default
it looks for so long that a core which another program needs is lost to both."""


def examine() -> dict[str, Any]:
    """Return ``worker.examine`` of the library of this machine. Raises UnsupportedModel where it
    cannot be used."""
    process = _started()
    try:
        answer, _ = process.communicate(frame_of(("examine",)), EXAMINED_S)
        problem, result = read_frame(BytesIO(answer))
    except (EOFError, subprocess.TimeoutExpired) as error:
        process.kill()
        raise UnsupportedModel("llama.cpp ended while it was loaded", other_library()) from error
    if problem is not None:
        raise UnsupportedModel(problem[1], other_library())
    facts: dict[str, Any] = result
    return facts


def _started() -> subprocess.Popen[bytes]:
    # Its standard error is ours: the last words of the library are in the log. They are enough: a
    # debugger, which it would start, takes longer than a new start.
    environment = {"GOMP_SPINCOUNT": SPINS} | os.environ | {"GGML_NO_BACKTRACE": "1"}
    if "OMP_WAIT_POLICY" in os.environ and "GOMP_SPINCOUNT" not in os.environ:
        # A user's own word on how threads wait.
        del environment["GOMP_SPINCOUNT"]
    return subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)


class WorkerProcess:
    """Calls into the worker of one model. Used by one thread at a time."""

    def __init__(self, path: Path, options: ModelOptions) -> None:
        self._arguments = str(path), options
        self._process: subprocess.Popen[bytes] | None = None
        self.generation = 0
        """Counts the processes that ended: their caches are gone."""
        self._over: deque[int] = deque()
        """Lines of text that nobody holds any more."""

    def start(self) -> dict[str, Any]:
        """Load the model in a new process; return what ``Worker.about`` says. Raises
        UnsupportedModel."""
        if not is_installed():
            raise UnsupportedModel("llama.cpp is not installed", INSTALL)
        self.end()
        self._process = _started()
        try:
            facts: dict[str, Any] = self._exchange(("load", *self._arguments))
        except BackendDied as died:
            raise UnsupportedModel(
                f"llama.cpp ended while it loaded {self._arguments[0]}", "use another file"
            ) from died
        return facts

    def call(self, name: str, *arguments: object) -> Any:
        """Return the answer. Raises BackendDied, OutOfMemory or UnsupportedModel."""
        if self._process is None:
            self.start()
        return self._exchange((name, *arguments))

    def forget(self, number: int) -> None:
        """A line of text is over. May be called at any moment, also while a call is under way: the
        worker hears of it before the next one."""
        self._over.append(number)

    def send(self, name: str, *arguments: object) -> None:
        """A call without an answer. A worker that died meanwhile is found out by the next call."""
        if self._process is not None and self._process.stdin is not None:
            try:
                write_frame(self._process.stdin, (name, *arguments))
            except OSError:
                return

    def _exchange(self, frame: tuple[object, ...]) -> Any:
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            # What loads holds no text yet.
            while self._over and frame[0] != "load":
                write_frame(self._process.stdin, ("close", self._over.popleft()))
            write_frame(self._process.stdin, frame)
            problem, result = read_frame(self._process.stdout)
        except (OSError, EOFError) as error:
            code = self._process.wait()
            self.end()
            raise BackendDied(
                f"llama.cpp ended with code {code}; it is started again with the next request"
            ) from error
        if problem is None:
            return result
        kind, message = problem
        if kind == "StateLost":
            # Whoever holds text in it sees by the generation that it is gone.
            self.end()
        if kind == "MemoryError":
            raise OutOfMemory(f"{message}; use a shorter context or a smaller model")
        if frame[0] == "load":
            raise UnsupportedModel(message, other_library() if kind == "LibraryRefused" else "")
        raise BackendDied(message)

    def end(self) -> None:
        """End the process, if one runs."""
        process, self._process = self._process, None
        if process is None:
            return
        self.generation += 1
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                # What is left to write is lost with a process that has died.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        process.kill()
        process.wait()
