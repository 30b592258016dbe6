"""Why there is no model is told once for each cause, and again after the model had worked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from lsp_server.editor.notices.reasons import ModelNotice
from lsp_server.editor.protocol.client_features import ClientFeatures


class Engine:
    """Stands for an engine: its status is set by the test."""

    status: Any


def test_a_cause_is_told_once() -> None:
    told: list[str] = []
    client = SimpleNamespace(tell=lambda _, what: told.append(what["message"]))
    notice = ModelNotice(cast("Any", client))

    def changed(engine: Engine, state: str, message: str = "") -> int:
        engine.status = SimpleNamespace(state=state, message=message, remedy="fetch it again")
        before = len(told)
        notice.engine_changed(cast("Any", engine), ClientFeatures())
        return len(told) - before

    first, second = Engine(), Engine()
    assert changed(first, "loading") == 0
    assert changed(first, "failed", "it is damaged") == 1
    assert changed(first, "failed", "it is damaged") == 0
    assert changed(second, "failed", "it is damaged") == 0, "both engines have one model"
    assert changed(first, "failed", "it is gone") == 1
    assert changed(first, "ready") == 0
    assert changed(first, "failed", "it is gone") == 1
    notice.forget()
    assert changed(first, "failed", "it is gone") == 1
    assert told[0] == "Redraft: it is damaged; fetch it again"
    assert changed(first, "failed", f"{Path.home() / 'models' / 'm.gguf'} is damaged") == 1
    assert told[-1].startswith("Redraft: ~/models/m.gguf is damaged"), "what is long is cut"
