"""The first start without a chosen model: the editor offers once to choose one."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server.errors import RedraftError
from lsp_server.model_notice import CHOOSE_MODEL

if TYPE_CHECKING:
    from lsp_server.models.setup_question import SetupQuestion
    from lsp_server.protocol.jsonrpc import RedraftProtocol

logger = logging.getLogger(__name__)

NOT_NOW = "Not Now"
QUESTION = (
    "Redraft completes and edits code with a model on this machine, and none is chosen. "
    "Do you want to see which models suit this machine?"
)


async def offer_models(protocol: RedraftProtocol, question: SetupQuestion) -> None:
    """``window/showMessageRequest``, unless there was an answer before or another editor asks just
    now; *Choose Model* sends ``redraft/chooseModel``. Until then nothing is computed."""
    if not question.is_open:
        return
    question.begin()
    try:
        title = await _asked(protocol)
    finally:
        question.end()
    if title is None:
        return
    question.answer(title or "closed")
    if title == CHOOSE_MODEL:
        protocol.tell("redraft/chooseModel", {})


async def _asked(protocol: RedraftProtocol) -> str | None:
    """What the user pressed, empty for a message that was closed, None where nobody answered."""
    params = {
        "type": types.MessageType.Info.value,
        "message": QUESTION,
        "actions": [{"title": CHOOSE_MODEL}, {"title": NOT_NOW}],
    }
    try:
        answer = await protocol.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params)
    except RedraftError as error:
        logger.info("no answer to the offer of models: %s", error)
        return None
    return str(answer.get("title", "")) if isinstance(answer, dict) else ""
