"""Tells the user of one editor why there is no model, with one message for each cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from accel.errors import NO_MODEL
from lsp_server.editor.notices.asking import pressed
from lsp_server.shared.errors import ModelUnavailable
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
        if engine.status.state == "ready":
            self._shown.pop(engine, None)
        status = engine.status
        if status.state != "failed":
            return
        if status.message == NO_MODEL:
            # A model is offered once (``first_start``).
            return
        text = str(ModelUnavailable(status.message, status.remedy))
        if text not in self._shown.values():
            self._shown[engine] = text
            self._tell(f"Redraft: {text}", features.choose_model)

    def _tell(self, text: str, can_choose: bool) -> None:
        kind = types.MessageType.Warning
        if can_choose:
            in_background(self._ask(text, kind))
        else:
            message = {"type": kind.value, "message": text}
            self._protocol.tell(types.WINDOW_SHOW_MESSAGE, message)

    async def _ask(self, text: str, kind: types.MessageType) -> None:
        if await pressed(self._protocol, text, [CHOOSE_MODEL], kind) == CHOOSE_MODEL:
            self._protocol.tell("redraft/chooseModel", {})
