"""Asking the user of one editor something with buttons."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server.shared.errors import RedraftError

if TYPE_CHECKING:
    from lsp_server.editor.protocol.jsonrpc import RedraftProtocol

logger = logging.getLogger(__name__)


async def pressed(
    protocol: RedraftProtocol,
    message: str,
    titles: Sequence[str],
    kind: types.MessageType = types.MessageType.Info,
) -> str | None:
    """Return the title that the user presses in a ``window/showMessageRequest``, empty for a
    message that is closed, None without an answer."""
    actions = [{"title": title} for title in titles]
    params = {"type": kind.value, "message": message, "actions": actions}
    try:
        answer = await protocol.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
    except RedraftError as error:
        logger.info("no answer to a message: %s", error)
        return None
    return str(answer.get("title", "")) if isinstance(answer, dict) else ""
