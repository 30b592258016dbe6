"""Tells the user of one editor why there is no model, with one message for each cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from accel.errors import NO_MODEL
from lsp_server.editor.notices.asking import pressed
from lsp_server.shared.errors import ModelUnavailable
from lsp_server.shared.printable import from_home
from lsp_server.shared.processes.background import in_background

if TYPE_CHECKING:
    from lsp_server.editor.protocol.client_features import ClientFeatures
    from lsp_server.editor.protocol.jsonrpc import RedraftProtocol
    from lsp_server.shared.contract.engine import EngineInterface

CHOOSE_MODEL = "Choose Model"


class ModelNotice:
    """``window/showMessage`` about a model that cannot be loaded, or ``showMessageRequest`` with
    *Choose Model*, which sends ``redraft/chooseModel``, where the client can do that."""

    def __init__(self, protocol: RedraftProtocol) -> None:
        self._protocol = protocol
        self._shown: dict[EngineInterface, str] = {}

    def forget(self) -> None:
        """Another model was chosen: what is wrong with it is told, also what was told before."""
        self._shown.clear()

    def engine_changed(self, engine: EngineInterface, features: ClientFeatures) -> None:
        """Tell the cause, unless that was done."""
        status = engine.status
        if status.state == "ready":
            self._shown.pop(engine, None)
        # A model is offered once (``first_start``).
        if status.state != "failed" or status.message == NO_MODEL:
            return
        text = from_home(f"Redraft: {ModelUnavailable(status.message, status.remedy)}")
        if text in self._shown.values():
            return
        self._shown[engine] = text
        if features.choose_model:
            in_background(self._ask(text))
        else:
            message = {"type": types.MessageType.Warning.value, "message": text}
            self._protocol.tell(types.WINDOW_SHOW_MESSAGE, message)

    async def _ask(self, text: str) -> None:
        kind = types.MessageType.Warning
        if await pressed(self._protocol, text, [CHOOSE_MODEL], kind) == CHOOSE_MODEL:
            self._protocol.tell("redraft/chooseModel", {})
