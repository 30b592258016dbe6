"""A damaged GGUF file is refused in one line wherever on the way to a model it shows."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from damage import refuse_mutations
from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import header_of, write_gguf
from seeds import Amount

from accel.models.model_file import model_file
from tests.benchmarks.gguf_module import read_module


def read_model(path: Path) -> None:
    """All that the engine reads of a file."""
    model_file(path).check("own")
    tokenizer = model_file(path).tokenizer
    assert tokenizer.decode(tokenizer.encode("def f(x):\n    return 'é'\n"))
    read_module(path, torch.bfloat16)


def test_damaged_models_are_refused_in_one_line(tmp_path: Path, amount: Amount) -> None:
    count = amount(100, 10_000)
    module = random_module("llama", hidden_size=32, intermediate_size=32, num_hidden_layers=1)
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    tensors = gguf_tensors(module, "Q8_0")
    path = write_gguf(tmp_path / "m.gguf", metadata, tensors)
    read_model(path)
    refused = refuse_mutations(path, len(header_of(metadata, tensors)), count, read_model)
    assert count / 2 < refused < count, "some mutations change a token, and no more"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
