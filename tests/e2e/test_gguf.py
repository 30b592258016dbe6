"""A GGUF file as the model of the server."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "decoding"))

from gguf_models import random_module, save_gguf

from .client import Driver, command, inline, profile

READY_S = 300
"""What draws drafts is compiled in a new home."""


@pytest.mark.long
def test_the_server_completes_with_a_file_and_indexes_in_its_tokens(
    own_environment: dict[str, str], tmp_path: Path
) -> None:
    sizes = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
    model = save_gguf(tmp_path / "m.gguf", random_module("qwen2", **sizes), "Q4_0")
    work = tmp_path / "work"
    work.mkdir()
    file = work / "total.py"
    file.write_text("def total(prices):\n    return \n", encoding="utf-8")
    driver = Driver(own_environment)
    try:
        driver.initialize(profile("vscode"), work, settings={"model": {"path": str(model)}})
        driver.open(file.as_uri(), file.read_text(encoding="utf-8"))
        driver.wait_for_state("ready", timeout=READY_S)
        answer = driver.request("textDocument/inlineCompletion", inline(file.as_uri(), 1, 11), 120)
        assert isinstance(answer["items"], list)
        told = driver.request("redraft/status", {}, 60)
        assert told["model"].endswith("m.gguf Q4_0")
        assert told["promptTokens"] >= 256
        assert "m.gguf" in command(own_environment, "status").stdout
    finally:
        driver.kill()
