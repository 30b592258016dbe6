"""A document that is open in an editor, over the pipes of a real server."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

from tests.benchmarks.keystrokes.editor_process import EditorProcess


class OpenDocument:
    """A document that is open in an editor. Offsets count code points."""

    def __init__(
        self, client: EditorProcess, uri: str, text: str, language: str = "python"
    ) -> None:
        self.text, self._client, self._version = text, client, 1
        self._document = {"uri": uri}
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        client.notify("textDocument/didOpen", {"textDocument": item})

    def insert(self, offset: int, text: str) -> None:
        """Type text."""
        place = self._place(offset)
        self.text = self.text[:offset] + text + self.text[offset:]
        self._change({"range": {"start": place, "end": place}, "text": text})

    def delete(self, start: int, end: int) -> None:
        """Delete a stretch."""
        where = {"start": self._place(start), "end": self._place(end)}
        self.text = self.text[:start] + self.text[end:]
        self._change({"range": where, "text": ""})

    def replace(self, text: str) -> None:
        """Another text altogether."""
        self.text = text
        self._change({"text": text})

    def ask(self, offset: int, kind: int = 2) -> tuple[int, Future[Any]]:
        """Ask for a suggestion, unasked (2) or by a key (1); its id and its answer."""
        params = {**self._at(offset), "context": {"triggerKind": kind}}
        return self._client.start("textDocument/inlineCompletion", params)

    def ask_next_edit(self, offset: int) -> Future[Any]:
        """Ask for next edits; their answer."""
        return self._client.start("redraft/nextEdit", self._at(offset))[1]

    def explain(self, offset: int, *, plain: bool = False) -> dict[str, Any]:
        """Return a completion by the model alone, and where its text came from."""
        params = {**self._at(offset), "plain": plain}
        explained: dict[str, Any] = self._client.request("redraft/explain", params)
        return explained

    def edited(
        self,
        lines: tuple[int, int],
        instruction: str,
        *,
        plain: bool = False,
        limit_s: float = 120.0,
    ) -> dict[str, Any]:
        """Edit lines by an instruction and return ``text``, ``diff`` and ``statistics``. Lines
        count from 0, the second one excluded. Raises ServerFailed if the server refuses."""
        start, end = ({"line": line, "character": 0} for line in lines)
        params = {
            "textDocument": {**self._document, "version": self._version},
            "range": {"start": start, "end": end},
            "instruction": instruction,
            "plain": plain,
        }
        answer: dict[str, Any] = self._client.request("redraft/edit", params, limit_s)
        return answer

    def close(self) -> None:
        """Close the document."""
        self._client.notify("textDocument/didClose", {"textDocument": self._document})

    def _change(self, change: dict[str, Any]) -> None:
        self._version += 1
        document = {**self._document, "version": self._version}
        params = {"textDocument": document, "contentChanges": [change]}
        self._client.notify("textDocument/didChange", params)

    def _at(self, offset: int) -> dict[str, Any]:
        return {"textDocument": self._document, "position": self._place(offset)}

    def _place(self, offset: int) -> dict[str, int]:
        line = self.text.count("\n", 0, offset)
        return {"line": line, "character": offset - (self.text.rfind("\n", 0, offset) + 1)}
