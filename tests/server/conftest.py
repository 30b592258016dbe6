"""Helpers of these tests can be imported; some share a loaded engine and a home without models."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from small_model import SMALL_MODEL
from steady_costs import DTYPE, THREADS, hold_costs, keep_costs

from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.options import EngineOptions

sys.path.insert(0, str(Path(__file__).parent))

STORES = (
    "HF_HOME",
    "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE",
    "LLAMA_CACHE",
    "OLLAMA_MODELS",
    "REDRAFT_MODELS",
)
"""Variables that say where other programs keep their models."""


@pytest.fixture(scope="session")
def service() -> Iterator[EngineService]:
    """The small model, loaded: for tests that leave it as it is."""
    keep_costs()
    made = EngineService(
        EngineOptions(path=str(SMALL_MODEL), dtype=DTYPE, threads=THREADS, common=False)
    )
    made.load()
    hold_costs(made.model.engines)
    yield made
    made.close()


@pytest.fixture
def bare_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, with no stores of models yet."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("CACHE", "CONFIG", "DATA", "STATE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(folder / f".{name.lower()}"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    for name in STORES:
        monkeypatch.delenv(name, raising=False)
    return folder
