"""The report of ``redraft doctor --report``, to be attached to a question: no source text, no key,
and of paths and addresses no more than the name of a file.
"""

from __future__ import annotations

import builtins
import platform
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import lsp_server
from lsp_server.editor.daemon.control import ask_daemon
from lsp_server.shared.version import VERSION
from operating_system.folders import log_folder

LINES_OF_A_LOG = 20
_ROOT = Path(lsp_server.__file__).parents[1]
_URL = re.compile(r"\b(\w+)://\S+")
_PART = r"[^\s/\\:;,()'\"…]+"
_PATH = re.compile(
    rf"(?<![\w.…/\\:])(?:~|[A-Za-z]:)?(?:[/\\]{_PART}(?: {_PART})*(?=[/\\]))+[/\\]({_PART})"
)
_ENTRY = re.compile(
    r"(?P<when>[-\d]+ [:,\d]+) \d+ (?P<level>WARNING|ERROR|CRITICAL) (?P<logger>[\w.]+): "
)
_FRAME = re.compile(r'\s*File ".*?((?:accel|lsp_server|repo_index)[\w/\\]+\.py)", line (\d+), in ')
_RAISED = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")
_OURS = ("accel.", "lsp_server.", "repo_index.")


def report(findings: Iterable[str]) -> Iterator[str]:
    """Yield its lines. findings: what ``redraft doctor`` found."""
    yield f"redraft {VERSION}, Python {platform.python_version()}, {platform.platform()}"
    yield from map(shortened, findings)
    yield from map(shortened, _daemon(ask_daemon("status")))
    for path in sorted(log_folder().glob("*.log")):
        yield from _of_log(path)


def shortened(text: str) -> str:
    """Return a text with paths down to their last part, and addresses down to their scheme."""
    return _PATH.sub(r"…/\1", _URL.sub(r"\1://…", text))


def _daemon(status: dict[str, Any] | None) -> Iterator[str]:
    if status is None:
        yield "daemon: none runs"
        return
    yield f"daemon: {status['clients']} client(s), up {status['uptime_s']:.0f} s"
    for engine in status["engines"]:
        yield (
            f"engine: {engine['model']} ({engine['dtype']}), {engine['state']}, "
            f"{engine['requests']} requests, p50 {engine['latency_ms_p50']:.0f} ms, "
            f"p95 {engine['latency_ms_p95']:.0f} ms; {engine['message']}"
        )
    for workspace in status["workspaces"]:
        size = f"{workspace['files']} files, {workspace['tokens']} tokens"
        yield f"workspace: {workspace['state']}, {size}"


def _of_log(path: Path) -> Iterator[str]:
    """Return times and code positions of logged errors. Messages are left out: they may quote."""
    entries, inside = [], False
    for line in path.read_text("utf-8", "replace").splitlines():
        if entry := _ENTRY.match(line):
            entries.append(f"{path.name}: {entry['when']} {entry['level']} {entry['logger']}")
        elif (frame := _FRAME.match(line)) and (_ROOT / frame[1]).is_file():
            entries.append(f"  {frame[1]}:{frame[2]}")
        elif inside and (raised := _RAISED.match(line)) and _is_exception(raised[1]):
            entries.append(f"  {raised[1]}")
        inside = (inside and line.startswith(" ")) or line.startswith("Traceback ")
    yield from entries[-LINES_OF_A_LOG:]


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return name.startswith(_OURS) or (isinstance(kind, type) and issubclass(kind, BaseException))
