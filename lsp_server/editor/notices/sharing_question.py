"""Asks the user once for each workspace whether a server may keep a copy of it."""

from __future__ import annotations

import os

from lsp_server.editor.notices.asking import pressed
from lsp_server.editor.protocol.jsonrpc import RedraftProtocol
from lsp_server.editor.remote.sharing.shared_workspaces import SharedWorkspaces
from lsp_server.shared.processes.background import in_background

YES = "Send It"
NO = "Never"


class SharingQuestion:
    """``window/showMessageRequest``. Who gives no answer is asked in the next session."""

    def __init__(self, protocol: RedraftProtocol) -> None:
        self._protocol = protocol

    def ask(self, shared: SharedWorkspaces, folders: list[str]) -> None:
        """Ask about folders that no question was about."""
        for folder in folders:
            if shared.to_ask(folder):
                in_background(self._ask(shared, folder))

    async def _ask(self, shared: SharedWorkspaces, folder: str) -> None:
        message = (
            f"Redraft: may the server {shared.host} keep a copy of {os.path.basename(folder)}, "
            "so that suggestions draw on it? Ignored files and files with secrets stay here."
        )
        title = await pressed(self._protocol, message, [YES, NO])
        if title == YES:
            shared.allow(folder)
        elif title == NO:
            shared.refuse(folder)
