"""Asks the user of one editor whether a server may keep a copy of a workspace. Once for each."""

from __future__ import annotations

import logging
import os

from lsprotocol import types

from lsp_server.errors import RedraftError
from lsp_server.processes.background import in_background
from lsp_server.protocol.jsonrpc import RedraftProtocol
from lsp_server.remote.sharing.shared_workspaces import SharedWorkspaces

logger = logging.getLogger(__name__)

YES = "Send It"
NO = "Never"


class SharingQuestion:
    """``window/showMessageRequest``. Who gives no answer is asked in the next session."""

    def __init__(self, protocol: RedraftProtocol) -> None:
        self._protocol = protocol

    def ask(self, shared: SharedWorkspaces, folders: list[str]) -> None:
        """Ask about those folders about which nobody was asked."""
        for folder in folders:
            if shared.to_ask(folder):
                in_background(self._ask(shared, folder))

    async def _ask(self, shared: SharedWorkspaces, folder: str) -> None:
        message = (
            f"Redraft: may the server {shared.host} keep a copy of {os.path.basename(folder)}, "
            "so that suggestions draw on it? Ignored files and files with secrets stay here."
        )
        params = {
            "type": types.MessageType.Info.value,
            "message": message,
            "actions": [{"title": YES}, {"title": NO}],
        }
        try:
            answer = await self._protocol.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
        except RedraftError as error:
            logger.info("no answer to a message: %s", error)
            return
        title = answer.get("title") if isinstance(answer, dict) else None
        if title == YES:
            shared.allow(folder)
        elif title == NO:
            shared.refuse(folder)
