"""A session with the real server, as an editor has one: it types, asks, and edits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_server.demo.client import DemoClient, ServerFailed, private_environment, serve_command
from lsp_server.demo.places import EditPlace, TypingPlace
from lsp_server.editing.checks import new_problem
from lsp_server.errors import RedraftError

READY_S = 900.0
"""The first time the model is compiled and measured: a minute or two on two cores."""


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


class Readiness:
    """What the server has told of its model and its index."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_indexed = False
        self._status: dict[str, Any] = {"state": "loading", "message": "starting", "compiling": ""}
        self._index = ""

    def hear(self, method: str, params: Any) -> None:
        """Called for every notification, on the thread that reads."""
        with self._changed:
            if method == "redraft/status":
                self._status = params
            elif method == "$/progress":
                value = params["value"]
                self._index = value.get("message") or self._index
                self._is_indexed |= value["kind"] == "end"
            self._changed.notify_all()

    @property
    def _missing(self) -> str:
        """What the server still does; empty once everything is there."""
        status = self._status
        if status["state"] in ("loading", "error"):
            return f"{status['message']} {status.get('remedy') or ''}".strip()
        if status["compiling"]:
            return f"compiling {status['compiling']}, this once"
        return "" if self._is_indexed else f"indexing {self._index}"

    def wait(self, told: Callable[[str], None], limit_s: float = READY_S) -> None:
        """Until the model is loaded and compiled and the index built; ``told`` what goes on.

        Raises RedraftError where that fails or takes too long.
        """
        ends = time.monotonic() + limit_s
        with self._changed:
            while missing := self._missing:
                if self._status["state"] == "error" or time.monotonic() >= ends:
                    raise RedraftError(f"the server is not ready: {missing}")
                told(missing)
                self._changed.wait(max(0.0, ends - time.monotonic()))


class DemoSession:
    """One editor with one workspace; everything that the server writes stays below ``folder``."""

    def __init__(self, folder: Path, root: Path, model: str) -> None:
        self._readiness = Readiness()
        self._client = DemoClient(
            serve_command(),
            private_environment(folder),
            self._readiness.hear,
            folder / "server.log",
        )
        self._client.request(
            "initialize",
            {
                "processId": None,
                "clientInfo": {"name": "redraft demo"},
                "initializationOptions": {"settings": {"model": {"path": model}}},
                "rootUri": root.as_uri(),
                "workspaceFolders": [{"uri": root.as_uri(), "name": root.name}],
                "capabilities": {
                    "window": {"workDoneProgress": True},
                    "workspace": {"workspaceFolders": True},
                    "textDocument": {"inlineCompletion": {}, "synchronization": {}},
                },
            },
        )
        self._client.notify("initialized", {})

    def wait(self, told: Callable[[str], None]) -> None:
        """Until the server is ready. Raises RedraftError."""
        self._readiness.wait(told)

    def complete(self, place: TypingPlace) -> ShownAnswer:
        """Type key by key as a person does, ask as an editor does, then where it is from."""
        document = self._open(place.path, place.before + "\n" + place.after)
        position = {"line": place.before.count("\n"), "character": 0}
        for version, character in enumerate(place.typed, start=2):
            change = {"range": {"start": position, "end": position}, "text": character}
            self._client.notify(
                "textDocument/didChange",
                {"textDocument": {**document, "version": version}, "contentChanges": [change]},
            )
            position = {**position, "character": position["character"] + 1}
        question = {"textDocument": document, "position": position}
        asked = {**question, "context": {"triggerKind": 1}}
        items = (self._client.request("textDocument/inlineCompletion", asked) or {}).get("items")
        drafted = self._client.request("redraft/explain", question)
        plain = self._client.request("redraft/explain", {**question, "plain": True})
        self._close(document)
        ghost = items[0]["insertText"] if items else ""
        text = place.before + place.typed + ghost + "\n" + place.after
        return ShownAnswer(
            f"{place.path.name}:{position['line'] + 1}",
            drafted,
            plain,
            text,
            typed=place.typed,
            refusal="" if items else "nothing is suggested here",
        )

    def edit(self, place: EditPlace) -> ShownAnswer:
        """Edit lines by an instruction. What the server refuses comes with its reason."""
        document = self._open(place.path, place.text)
        lines = place.first_line, place.end_line
        start, end = ({"line": line, "character": 0} for line in lines)
        question = {
            "textDocument": {**document, "version": 1},
            "range": {"start": start, "end": end},
            "instruction": place.instruction,
        }
        title = f"{place.path.name}:{place.first_line + 1}, {place.instruction}"
        try:
            answer = self._client.request("redraft/edit", question)
            plain = self._client.request("redraft/edit", {**question, "plain": True})
        except ServerFailed as refusal:
            return ShownAnswer(title, {}, {}, place.text, refusal=str(refusal))
        finally:
            self._close(document)
        every = place.text.splitlines(keepends=True)
        selection = "".join(every[slice(*lines)])
        if problem := new_problem(selection, answer["text"] + "\n", "python"):
            why = f"the model's answer does not parse ({problem})"
            return ShownAnswer(title, {}, {}, place.text, refusal=why)
        above, below = "".join(every[: lines[0]]), "".join(every[lines[1] :])
        text = f"{above}{answer['text']}\n{below}"
        return ShownAnswer(title, answer["statistics"], plain["statistics"], text, answer["diff"])

    def _open(self, path: Path, text: str) -> dict[str, str]:
        document = {"uri": path.as_uri(), "languageId": "python", "version": 1, "text": text}
        self._client.notify("textDocument/didOpen", {"textDocument": document})
        return {"uri": path.as_uri()}

    def _close(self, document: dict[str, str]) -> None:
        self._client.notify("textDocument/didClose", {"textDocument": document})

    def close(self) -> None:
        """Shut the server down."""
        self._client.close()
