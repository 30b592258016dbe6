"""Chat templates around messages, rendered by ``template_process``."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

from accel.native.python_process import python_command
from operating_system.processes import watched

MOST_SECONDS = 10
"""From request to answer: a busy machine starts a process slowly."""
MOST_MEMORY = 1 << 29
"""Bytes that rendering may take: the process bounds itself where the system can."""
MOST_TEMPLATE = 1 << 18
"""Characters of a template."""

Pieces = tuple[tuple[str, bool], ...]
"""Stretches of a rendered text, and whether each came with a message. The others are the
template's own: where the name of a control token occurs in them, it is that token."""


class TemplateFailed(Exception):
    """A template cannot be rendered; the message says why in a few words."""


def render(
    template: str,
    messages: Sequence[Mapping[str, object]],
    variables: Mapping[str, object],
    tools: Sequence[object] = (),
) -> Pieces:
    """Return ``messages`` in ``template``, and the beginning of the answer. A message is an object
    with its role and content and what templates know besides, ``tool_calls`` for example.

    ``variables``: what the template may use besides; ``tools``: functions that the model may call.
    The template sees the messages as they are, and may trim, split and count them, but not leave
    one out. Raises TemplateFailed.
    """
    if len(template) > MOST_TEMPLATE:
        raise TemplateFailed("it is too long")
    request = json.dumps(
        {
            "template": template,
            "messages": list(map(dict, messages)),
            "variables": dict(variables),
            "tools": list(tools),
        }
    )
    # What tells the time is rendered anew.
    return _answer(request) if "strftime_now" in template else _cached_answer(request)


def _answer(request: str) -> Pieces:
    try:
        answer = json.loads(_PROCESS.ask(request))
    except ValueError:
        raise TemplateFailed("it takes too much time or memory") from None
    if "pieces" not in answer:
        raise TemplateFailed(answer["error"])
    return tuple((str(text), bool(is_message)) for text, is_message in answer["pieces"])


_cached_answer = lru_cache(maxsize=16)(_answer)


class _RenderingProcess:
    """The process that renders for this one: started for the first template, started anew after
    one that it died of. It ends with this one, whose end of its input it reads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._parent = 0

    def ask(self, request: str) -> bytes:
        """Return the answer to a line; empty or broken where the process died. Raises
        TemplateFailed."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            with watched(process, MOST_SECONDS, MOST_MEMORY):
                try:
                    process.stdin.write(request.encode() + b"\n")
                    process.stdin.flush()
                    answer = process.stdout.readline()
                except OSError:
                    answer = b""
            if not answer.endswith(b"\n"):
                self._end()
            return answer

    def close(self) -> None:
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[Any]:
        # A process that was forked has pipes of another's.
        is_ours = self._process is not None and self._parent == os.getpid()
        if self._process is None or not is_ours or self._process.poll() is not None:
            self._end()
            try:
                self._process = subprocess.Popen(
                    python_command("accel.text.template_process"),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                raise TemplateFailed(f"no process can be started, {error}") from error
            self._parent = os.getpid()
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None or self._parent != os.getpid():
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was not written any more
                    continue
        process.wait()


_PROCESS = _RenderingProcess()
atexit.register(_PROCESS.close)
