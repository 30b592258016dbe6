"""Tells the user of one editor why there is no model, with one message for each cause, and editors
that do not show ``redraft/status`` why nothing is suggested."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from accel.errors import NO_MODEL
from lsp_server.editor.notices.asking import pressed
from lsp_server.editor.protocol.progress import Progress
from lsp_server.shared.errors import ModelUnavailable
from lsp_server.shared.printable import from_home
from lsp_server.shared.processes.background import in_background

if TYPE_CHECKING:
    from lsp_server.editor.protocol.client_features import ClientFeatures
    from lsp_server.editor.protocol.jsonrpc import RedraftProtocol
    from lsp_server.shared.contract.engine import EngineInterface

SHOWN_S = 5.0
"""Editors show a progress until it ends, so it lasts as long as a sentence is read."""
_NUMBERS = re.compile(r"[\d.,]+")
_KINDS = {"error": "Error", "inactive": "Inactive", "paused": "Inactive"}
CHOOSE_MODEL = "Choose Model"


def reason_of(status: dict[str, Any]) -> str:
    """Return why nothing is suggested, or what else is wrong, by the JSON of ``redraft/status``;
    empty if nothing is."""
    if status["state"] in ("error", "inactive", "paused"):
        return "; ".join(filter(None, (status["message"], status["remedy"])))
    if status["state"] == "loading":
        return status["message"] or "the model is loading"
    is_loaded = status["state"] == "ready" and status["models"]["completion"]["state"] == "ready"
    return str(status["reason"] or (status["message"] if is_loaded else ""))


class Reasons:
    """Reasons are told once each: as a progress and a line of the log, or by ``didChangeStatus`` to
    clients of Copilot's protocol, which show that."""

    def __init__(self, protocol: RedraftProtocol, features: Callable[[], ClientFeatures]) -> None:
        self._protocol, self._features = protocol, features
        self._told: set[str] = set()
        self._status: dict[str, Any] = {}
        self._speaks_copilot = False

    def tell(self, status: dict[str, Any]) -> None:
        """Tell the reason in ``status`` if it is a new one."""
        self._status = status
        reason, features = from_home(reason_of(status)), self._features()
        # Two reasons that differ in a count are one: how far a model is loaded changes often.
        kind = _NUMBERS.sub("", reason)
        if self._speaks_copilot:
            self._tell_copilot(reason)
        elif reason and kind not in self._told and not features.edit_command:
            self._told.add(kind)
            message = {"type": types.MessageType.Info.value, "message": f"Redraft: {reason}"}
            self._protocol.tell(types.WINDOW_LOG_MESSAGE, message)
            if features.work_done_progress:
                in_background(self._show(reason))

    def speak_copilot(self) -> None:
        """Tell this client its status by ``didChangeStatus`` from now on."""
        if not self._speaks_copilot:
            self._speaks_copilot = True
            if self._status:
                self._tell_copilot(reason_of(self._status))

    def _tell_copilot(self, reason: str) -> None:
        state = self._status["state"]
        busy = state in ("loading", "indexing")
        kind = _KINDS.get(state, "Normal")
        self._protocol.tell("didChangeStatus", {"busy": busy, "kind": kind, "message": reason})

    async def _show(self, reason: str) -> None:
        progress = Progress(self._protocol, None, True)
        await progress.begin("Redraft", message=reason, percentage=None)
        await asyncio.sleep(SHOWN_S)
        progress.end(reason)


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
