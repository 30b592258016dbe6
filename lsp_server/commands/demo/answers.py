"""Requests of the demo to the daemon, as an editor sends them: completions and edits, with drafts
and without."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_server.commands.demo.places import EditPlace, TypingPlace
from lsp_server.editor.agents.daemon_session import DaemonSession, why_not_ready
from lsp_server.editor.daemon.address import socket_path
from lsp_server.editor.daemon.control import stop_daemon
from lsp_server.editor.editing.checks import new_problem
from lsp_server.shared.errors import EditRefused, RedraftError

READY_S = 900.0
"""The first time the model is compiled and measured: a minute or two on two cores."""
LOOK_S = 0.2
_FOLDERS = ("CACHE_HOME", "CONFIG_HOME", "DATA_HOME", "STATE_HOME", "RUNTIME_DIR")
_CAPABILITIES = {
    "general": {"positionEncodings": ["utf-32"]},
    "workspace": {"workspaceFolders": True},
    "textDocument": {"inlineCompletion": {}, "synchronization": {}},
}


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """An answer with drafts, and the same one without."""

    title: str
    drafted: dict[str, Any]
    plain: dict[str, Any]
    text: str
    """The document with the answer in it."""
    diff: str = ""
    typed: str = ""
    refusal: str = ""


@contextmanager
def daemon_of_its_own(folder: Path) -> Iterator[None]:
    """Have a daemon start that keeps everything it writes below ``folder``, and end it: the demo
    must neither meet the user's own nor leave stores behind."""
    before = dict(os.environ)
    for name in _FOLDERS:
        path = folder / name.lower()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.environ[f"XDG_{name}"] = str(path)
    try:
        yield
    finally:
        with suppress(RedraftError):
            stop_daemon(socket_path())
        os.environ.clear()
        os.environ.update(before)


def session_in(root: Path, model: str) -> DaemonSession:
    """Return an editor's session with the workspace ``root``."""
    return DaemonSession(
        [root],
        clientInfo={"name": "redraft demo"},
        capabilities=_CAPABILITIES,
        initializationOptions={"settings": {"model": {"path": model}}},
    )


async def wait_until_ready(session: DaemonSession, report: Callable[[str], None]) -> None:
    """Wait until the model is loaded and compiled and the index built; ``report`` hears why.
    Raises RedraftError where that fails or takes too long."""
    ends = time.monotonic() + READY_S
    while reason := why_not_ready(status := await session.request("redraft/status", {})):
        if status["state"] == "error" or time.monotonic() >= ends:
            raise RedraftError(f"the server is not ready: {reason}")
        report(reason)
        await asyncio.sleep(LOOK_S)


async def answer_at(session: DaemonSession, demo_place: TypingPlace | EditPlace) -> ShownAnswer:
    """Return the completion or the edit of ``demo_place``. Raises RedraftError."""
    document = {"uri": demo_place.path.as_uri()}
    opened = {**document, "languageId": "python", "version": 1, "text": demo_place.document}
    await session.notify("textDocument/didOpen", {"textDocument": opened})
    if isinstance(demo_place, EditPlace):
        answer = await _edit(session, demo_place, document)
    else:
        answer = await _complete(session, demo_place, document)
    await session.notify("textDocument/didClose", {"textDocument": document})
    return answer


async def _complete(
    session: DaemonSession, typing: TypingPlace, document: dict[str, Any]
) -> ShownAnswer:
    """Type key by key as a person does, ask as an editor does, then where the text is from."""
    line = typing.before.count("\n")
    for column, key in enumerate(typing.typed):
        cursor = {"line": line, "character": column}
        changes = [{"range": {"start": cursor, "end": cursor}, "text": key}]
        changed = {**document, "version": column + 2}
        params = {"textDocument": changed, "contentChanges": changes}
        await session.notify("textDocument/didChange", params)
    cursor = {"line": line, "character": len(typing.typed)}
    at_cursor = {"textDocument": document, "position": cursor}
    by_key = {**at_cursor, "context": {"triggerKind": 1}}
    items = (await session.request("textDocument/inlineCompletion", by_key) or {}).get("items")
    ghost = items[0]["insertText"] if items else ""
    return ShownAnswer(
        f"{typing.path.name}:{line + 1}",
        await session.request("redraft/explain", at_cursor),
        await session.request("redraft/explain", {**at_cursor, "plain": True}),
        typing.before + typing.typed + ghost + "\n" + typing.after,
        typed=typing.typed,
        refusal="" if items else "nothing is suggested here",
    )


async def _edit(session: DaemonSession, edit: EditPlace, document: dict[str, Any]) -> ShownAnswer:
    """Edit lines by an instruction. What the server refuses comes with its reason."""
    first, end = edit.first_line, edit.end_line
    title = f"{edit.path.name}:{first + 1}, {edit.instruction}"
    span = {edge: {"line": n, "character": 0} for edge, n in (("start", first), ("end", end))}
    params = {"textDocument": document, "range": span, "instruction": edit.instruction}
    try:
        answer = await session.request("redraft/edit", params)
        plain = await session.request("redraft/edit", {**params, "plain": True})
    except EditRefused as refusal:
        return ShownAnswer(title, {}, {}, edit.document, refusal=str(refusal))
    lines = edit.document.splitlines(keepends=True)
    code = answer["text"] + "\n"
    if problem := new_problem("".join(lines[first:end]), code, "python"):
        reason = f"the model's answer does not parse ({problem})"
        return ShownAnswer(title, {}, {}, edit.document, refusal=reason)
    text = "".join([*lines[:first], code, *lines[end:]])
    return ShownAnswer(title, answer["statistics"], plain["statistics"], text, answer["diff"])
