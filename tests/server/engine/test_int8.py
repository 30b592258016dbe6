"""A folder's weights are rounded to eight bits on a CPU where ``redraft.model.dtype`` is auto."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from tiny_models import save

from lsp_server.engine.key import EngineKey
from lsp_server.engine.service import EngineService
from lsp_server.shared.settings import Settings, read_settings


def test_auto_is_int8(tmp_path: Path) -> None:
    folder = save(tmp_path, "llama")
    values = {"model": {"path": str(folder), "device": "cpu", "threads": 1}}
    settings: Settings = read_settings(values).settings
    options = EngineKey.of(settings).options
    assert options.dtype == "auto"
    service = EngineService(replace(options, common=False))
    service.load()
    try:
        assert service.status().dtype == "int8"
    finally:
        service.close()
