"""Stands for the daemon: knows what editors have unsaved, and rewrites as a test says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from lsp_server.shared.errors import EditRefused


class DaemonStandIn:
    """``asked`` and ``told``: requests and notifications, with their parameters."""

    def __init__(self, rewrite: Callable[[str], str] = str.upper) -> None:
        self.unsaved: set[str] = set()
        """Paths of files that an editor has open with another text."""
        self.asked: list[tuple[str, Any]] = []
        self.told: list[tuple[str, Any]] = []
        self.waiting: asyncio.Event | None = None
        """Where there is one, an edit waits for it."""
        self.cancelled = 0
        self.doing, self.prepares = "the model writes", True
        self.rewrite = rewrite
        self._texts: dict[str, str] = {}

    async def join(self) -> None:
        self.asked.append(("join", None))

    async def notify(self, method: str, params: Any) -> None:
        self.told.append((method, params))
        if method == "textDocument/didOpen":
            self._texts[params["textDocument"]["uri"]] = params["textDocument"]["text"]

    async def request(self, method: str, params: Any) -> Any:
        self.asked.append((method, params))
        if method == "redraft/unsaved":
            return params["path"] in self.unsaved
        assert method == "redraft/edit"
        if self.waiting is not None:
            try:
                await self.waiting.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        lines = self._texts[params["textDocument"]["uri"]].replace("\r\n", "\n").split("\n")
        first, last = params["range"]["start"]["line"], params["range"]["end"]["line"]
        old = "\n".join(lines[first : last + 1])
        if params["instruction"] == "refuse":
            raise EditRefused("the model wrote nothing that can be used")
        new = self.rewrite(old)
        hunk = {"range": params["range"], "newText": new}
        return {"text": new, "hunks": [hunk] if new != old else [], "warning": ""}
