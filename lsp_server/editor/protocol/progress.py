"""Work-done progress: begin, report, end, on the client's token or on one of ours."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

from lsprotocol import types

from lsp_server.editor.protocol.jsonrpc import RedraftProtocol
from lsp_server.shared.errors import RedraftError

_numbers = itertools.count(1)


class Progress:
    """One piece of work that the client shows. ``cancelled`` is set when its user cancels it."""

    def __init__(self, protocol: RedraftProtocol, token: str | int | None, is_shown: bool) -> None:
        self._protocol = protocol
        self.token = token if token is not None else f"redraft-progress-{next(_numbers)}"
        self._shown = is_shown or token is not None
        self._needs_creation = token is None
        self._is_visible = False
        self.cancelled = asyncio.Event()

    async def begin(
        self,
        title: str,
        *,
        cancellable: bool = False,
        message: str = "",
        percentage: int | None = 0,
    ) -> None:
        """Show ``title`` and ``message``. A client that refuses the token is shown nothing."""
        if not self._shown:
            return
        if self._needs_creation:
            try:
                token = {"token": self.token}
                await self._protocol.ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, token)
            except (RedraftError, asyncio.CancelledError) as error:
                self._shown = False
                if isinstance(error, asyncio.CancelledError):
                    raise
                return
        self._is_visible = True
        value: dict[str, Any] = {"kind": "begin", "title": title, "cancellable": cancellable}
        value |= {"message": message} if message else {}
        self._send(value if percentage is None else {**value, "percentage": percentage})

    def report(self, message: str, percentage: int | None = None) -> None:
        """Show how far it is."""
        if self._is_visible:
            percent = {} if percentage is None else {"percentage": max(0, min(100, percentage))}
            self._send({"kind": "report", "message": message, **percent})

    def end(self, message: str = "") -> None:
        """Show it no more."""
        if self._is_visible:
            self._is_visible = False
            self._send({"kind": "end", "message": message})

    def _send(self, value: dict[str, Any]) -> None:
        self._protocol.tell(types.PROGRESS, {"token": self.token, "value": value})
