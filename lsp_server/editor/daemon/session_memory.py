"""Remembers the editor's session, so that a new daemon can take over when the old one dies."""

from __future__ import annotations

import json
from typing import Any

from lsp_server.editor.protocol.lenient import fill_in
from lsp_server.text.documents.document import Document

Message = dict[str, Any]

AGAIN = "redraft-again-"
_PAUSES = ("redraft.pause", "redraft.snooze")
"""Ids of requests that are repeated; their answers are not for the editor."""


class SessionMemory:
    """One editor's session: open documents as they are now, settings, folders, open requests."""

    def __init__(self) -> None:
        self.ending = False
        """The editor says goodbye, or the daemon was stopped: no other daemon is to be started."""
        self._initialize: Message | None = None
        self._initialized: Message | None = None
        self._encoding: Any = "utf-16"
        self._settings: Message | None = None
        self._folders: list[Message] = []
        self._paused: Message | None = None
        self._documents: dict[str, Document] = {}
        self._notebooks: dict[str, Message] = {}
        self._unanswered: dict[str | int, str] = {}
        self._progresses: dict[str | int, None] = {}

    def note_sent(self, body: bytes) -> None:
        """The editor sent a message. What it gets wrong is the daemon's to answer."""
        try:
            message = json.loads(body)
            method, params = message.get("method"), message.get("params")
            fill_in(method, params)
            if isinstance(method, str):
                if isinstance(message.get("id"), (str, int)):
                    self._unanswered[message["id"]] = method
                self._note(method, params, message)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return

    def _note(self, method: str, params: Any, message: Message) -> None:
        kind, _, event = method.partition("/")
        if method == "initialize":
            self._initialize = message
        elif method == "initialized":
            self._initialized = message
        elif method in ("shutdown", "exit"):
            self.ending = True
        elif kind == "textDocument" and event in ("didOpen", "didChange", "didClose"):
            self._note_document(event, params)
        elif kind == "notebookDocument":
            self._note_notebook(event, params)
        elif method == "workspace/didChangeConfiguration":
            self._settings = message
        elif method == "workspace/didChangeWorkspaceFolders":
            self._folders.append(message)
        elif method == "workspace/executeCommand" and params["command"] in _PAUSES:
            self._paused = message
        elif method == "workspace/executeCommand" and params["command"] == "redraft.resume":
            self._paused = None

    def _note_document(self, event: str, params: Any) -> None:
        item = params["textDocument"]
        uri = item["uri"]
        if event == "didOpen":
            self._documents[uri] = _opened(item)
        elif event == "didClose":
            self._documents.pop(uri, None)
        elif uri in self._documents:
            document = self._documents[uri]
            for change in params["contentChanges"]:
                if "range" not in change:
                    document.replace_all(change["text"])
                    continue
                start, end = (change["range"][name] for name in ("start", "end"))
                document.change(
                    (start["line"], start["character"]),
                    (end["line"], end["character"]),
                    change["text"],
                    self._encoding,
                )
            document.version = item["version"]

    def _note_notebook(self, event: str, params: Any) -> None:
        item = params["notebookDocument"]
        uri = item["uri"]
        if event == "didOpen":
            self._notebooks[uri] = item
            for cell in params["cellTextDocuments"]:
                self._documents[cell["uri"]] = _opened(cell)
        elif event == "didClose":
            self._notebooks.pop(uri, None)
            for cell in params["cellTextDocuments"]:
                self._documents.pop(cell["uri"], None)
        elif event == "didChange" and uri in self._notebooks:
            self._notebooks[uri]["version"] = item["version"]
            cells = params["change"].get("cells") or {}
            if structure := cells.get("structure"):
                array = structure["array"]
                first = array["start"]
                known_cells = self._notebooks[uri]["cells"]
                known_cells[first : first + array["deleteCount"]] = array.get("cells") or []
                for closed in structure.get("didClose") or []:
                    self._documents.pop(closed["uri"], None)
                for opened in structure.get("didOpen") or []:
                    self._documents[opened["uri"]] = _opened(opened)
            for content in cells.get("textContent") or []:
                changes = {"contentChanges": content["changes"]}
                self._note_document("didChange", {"textDocument": content["document"], **changes})

    def note_received(self, body: bytes) -> bool:
        """Return the daemon sent a message; whether it is for the editor."""
        message = json.loads(body)
        msg_id = message.get("id")
        if "method" not in message and msg_id is not None:
            if isinstance(msg_id, str) and msg_id.startswith(AGAIN):
                return False
            if self._unanswered.pop(msg_id, "") == "initialize":
                capabilities = (message.get("result") or {}).get("capabilities", {})
                self._encoding = capabilities.get("positionEncoding", "utf-16")
        elif message.get("method") == "redraft/stopped":
            # The user stopped the daemon: the editor shall decide whether there is another.
            self.ending = True
            return False
        elif message.get("method") == "$/progress":
            token, kind = message["params"]["token"], message["params"]["value"]["kind"]
            if kind == "begin":
                self._progresses[token] = None
            elif kind == "end":
                self._progresses.pop(token, None)
        return True

    def farewell(self, code: int, text: str) -> list[Message]:
        """Return the answers to an editor whose daemon died: an error for each open request, and
        the end of each progress that it still shows. ``initialize`` stays open for the next daemon:
        an editor that is refused it gives the server up."""
        answers: list[Message] = []
        open_still: dict[str | int, str] = {}
        for msg_id, method in self._unanswered.items():
            if method == "initialize":
                open_still[msg_id] = method
                continue
            error = {"error": {"code": code, "message": text}}
            answers.append({"id": msg_id, **({"result": None} if method == "shutdown" else error)})
        for token in self._progresses:
            params = {"token": token, "value": {"kind": "end", "message": "interrupted"}}
            answers.append({"method": "$/progress", "params": params})
        self._unanswered = open_still
        self._progresses.clear()
        return answers

    def replay(self) -> list[Message]:
        """Return the messages that bring a new daemon to where the old one was."""
        if self._initialize is None:
            return []
        if "initialize" in self._unanswered.values():
            return [self._initialize]
        again = [{**self._initialize, "id": f"{AGAIN}initialize"}]
        if self._initialized is None:
            return again
        again.append(self._initialized)
        again += [message for message in (self._settings, *self._folders) if message is not None]
        cells: set[str] = set()
        for notebook in self._notebooks.values():
            uris = [cell["document"] for cell in notebook["cells"]]
            cells.update(uris)
            items = [_item(self._documents[uri]) for uri in uris if uri in self._documents]
            params = {"notebookDocument": notebook, "cellTextDocuments": items}
            again.append(_notification("notebookDocument/didOpen", params))
        for uri, document in self._documents.items():
            if uri not in cells:
                params = {"textDocument": _item(document)}
                again.append(_notification("textDocument/didOpen", params))
        if self._paused is not None:
            again.append({**self._paused, "id": f"{AGAIN}pause"})
        return again


def _opened(item: Message) -> Document:
    return Document(item["uri"], str(item["languageId"]), item["version"], item["text"])


def _item(document: Document) -> Message:
    return {
        "uri": document.uri,
        "languageId": document.language,
        "version": document.version,
        "text": document.text,
    }


def _notification(method: str, params: Message) -> Message:
    return {"jsonrpc": "2.0", "method": method, "params": params}
