"""A provider of completions whose engine writes when the test says so."""

from __future__ import annotations

import pytest
from staged_engine import Session

from lsp_server.editor.completion import provider


@pytest.fixture(autouse=True)
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "AHEAD_S", 0.0)


@pytest.fixture
def session() -> Session:
    return Session()
