"""A folder's weights are rounded to eight bits on a CPU where ``redraft.model.dtype`` is auto."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "decoding"))

from tiny_models import save

from accel.models import torch_registry
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.model_file import model_file
from lsp_server.engine.key import EngineKey
from lsp_server.engine.service import EngineService
from lsp_server.shared.settings import Settings, read_settings


@pytest.mark.skipif(not is_fast(), reason="this processor has no quick products of bytes")
@pytest.mark.parametrize("is_large", [True, False])
def test_auto_is_int8_from_a_size_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_large: bool
) -> None:
    folder = save(tmp_path, "llama", hidden_size=256, intermediate_size=512, head_dim=64)
    size = model_file(folder).weight_bytes("bf16")
    monkeypatch.setattr(torch_registry, "INT8_FROM", size if is_large else size + 1)
    values = {"model": {"path": str(folder), "device": "cpu", "threads": 1}}
    settings: Settings = read_settings(values).settings
    options = EngineKey.of(settings).options
    assert options.dtype == "auto"
    service = EngineService(replace(options, common=False))
    service.load()
    try:
        assert (service.status().dtype == "int8") == is_large
    finally:
        service.close()


def test_that_size_is_a_hundred_million_weights_in_bf16() -> None:
    assert torch_registry.INT8_FROM == 2 * 100_000_000
