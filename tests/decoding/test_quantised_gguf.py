"""GGUF files on the compiled forward, with their weights as they are stored."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import torch
from gguf_models import gguf_metadata, gguf_tensors, random_module, save_gguf, vocabulary_metadata
from gguf_writer import Stored, write_gguf
from slow_weights import SIZES, random_blocks
from text_cases import data_beside, data_cases
from tiny_models import numbers

from accel.errors import BrokenModel, InvalidRequest, UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.backends import open_backend
from accel.models.base import BatchKind
from accel.models.batch import chain_batch
from accel.models.cpu.decoder import Decoder
from accel.models.cpu.gguf_decoder import layouts_of, read_decoder
from accel.models.cpu.llama import CompiledLlama
from accel.models.cpu.opening import open_own
from accel.models.cpu.smallest_decoder import smallest_decoder
from accel.models.model_file import GgufModel, model_file
from accel.models.probe import Probe
from accel.native.processor import INSTRUCTIONS
from tests.benchmarks.gguf_module import read_module

DATA = data_beside(__file__)

CPU = torch.device("cpu")
SIZE: dict[str, Any] = DATA["SIZE"]

MIXED = DATA["MIXED"]
"""Types by the names of tensors, as files of llama.cpp mix them."""


def compiled(path: Path) -> CompiledLlama:
    return CompiledLlama(decoder_of(path))


def decoder_of(path: Path) -> Decoder:
    about = model_file(path)
    assert isinstance(about, GgufModel)
    return read_decoder(about)


def save_mixed(path: Path, module: Any, size: float = 0.02) -> Path:
    """A file with a type for each kind of matrix, and random weights in these."""
    generator = np.random.default_rng(0)
    tensors = gguf_tensors(module)
    for name, tensor in tensors.items():
        kind = MIXED.get(name.removesuffix(".weight").rpartition(".")[2])
        if kind is not None and name.endswith(".weight"):
            factor = size if SIZES[kind][1] == 256 else 1.0
            raw = random_blocks(kind, *tensor.shape, generator, factor)
            tensors[name] = Stored(kind, tensor.shape, raw.tobytes())
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    return write_gguf(path, metadata, tensors)


@data_cases()
def test_a_file_gives_what_its_slow_forward_gives(kind: str, matrices: str, tmp_path: Path) -> None:
    changes = {"attention_bias": False} if kind == "llama-scaled" else {}
    module = random_module(kind, **SIZE, **changes)
    path = save_gguf(tmp_path / "m.gguf", module, matrices)
    assert model_file(path).has_compiled_forward
    slow = read_module(path, torch.float32)
    assert Probe(slow).agrees(compiled(path), BatchKind.TREE)


def test_types_may_be_mixed_within_a_layer(tmp_path: Path) -> None:
    path = save_mixed(tmp_path / "m.gguf", random_module("llama", **SIZE))
    assert Probe(read_module(path, torch.float32)).agrees(compiled(path), BatchKind.TREE)


def test_a_row_does_not_depend_on_its_neighbours(tmp_path: Path) -> None:
    model = compiled(save_mixed(tmp_path / "m.gguf", random_module("qwen3", **SIZE)))
    tokens = np.random.default_rng(1).integers(0, 200, 64).astype(np.int32)
    alone = model.new_cache(64)
    expected = []
    for token in tokens:
        each = replace(chain_batch(np.array([token]), 0), wants_numbers=True)
        expected.append(model.forward(each, [alone]).row(0).copy())
        alone.commit([0])
    for model.threads in (1, 2, 3, 4):
        for width in range(1, 65):
            batch = replace(chain_batch(tokens[:width], 0), wants_numbers=True)
            logits = model.forward(batch, [model.new_cache(64)])
            for row in range(width):
                assert np.array_equal(logits.row(row), expected[row]), (model.threads, width, row)


def test_the_likeliest_tokens_are_those_of_the_numbers(tmp_path: Path) -> None:
    model = compiled(save_mixed(tmp_path / "m.gguf", random_module("llama", **SIZE)))
    tokens = np.random.default_rng(2).integers(0, 200, 20).astype(np.int32)
    batch = chain_batch(tokens, 11)
    actual = list(model.forward(batch, [model.new_cache(64)]).argmax())
    logits = model.forward(replace(batch, wants_numbers=True), [model.new_cache(64)])
    assert actual == [int(logits.row(row).argmax()) for row in range(9)]


def test_other_types_are_rounded_to_eight_bits_and_the_log_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = save_gguf(tmp_path / "m.gguf", random_module("llama", **SIZE), "F16")
    with caplog.at_level(logging.INFO):
        decoder = decoder_of(path)
    assert decoder.dtype == "F16"
    assert "weights of type F16 are rounded to eight bits" in caplog.text


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    path = save_mixed(tmp_path / "m.gguf", random_module("llama", **SIZE), size=float("inf"))
    with pytest.raises(BrokenModel, match="no numbers"):
        decoder_of(path)


@pytest.mark.parametrize("instructions", ["", "portable"])
def test_a_file_is_computed_as_it_is_stored_where_nothing_else_is_asked_for(
    instructions: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(INSTRUCTIONS, instructions)
    path = save_gguf(tmp_path / "m.gguf", random_module("llama", **SIZE), "Q4_0")
    opened = open_own(model_file(path), ModelOptions(threads=1))
    assert opened is not None
    model = opened.model
    assert (model.dtype, opened.threads, model.end_tokens) == ("Q4_0", 1, {297, 299})
    assert model.fingerprint


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "granite"])
def test_a_file_in_fp32_is_exact(kind: str, tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", random_module(kind, **SIZE), "Q4_0")
    about = model_file(path)
    assert isinstance(about, GgufModel)
    model = CompiledLlama(read_decoder(about, "fp32"))
    assert model.dtype == "fp32"
    slow: Any = read_module(path, torch.float32)
    tokens = np.random.default_rng(3).integers(0, 200, 60).astype(np.int32)
    with torch.inference_mode():
        expected = slow(torch.from_numpy(tokens.astype(np.int64))[None]).logits[0].numpy()
    actual = numbers(model, chain_batch(tokens, 0), model.new_cache(64))
    assert np.abs(actual - expected).max() < 1e-4 * expected.std()


def test_a_file_in_bf16_is_refused_on_a_cpu(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", random_module("llama", **SIZE), "Q4_0")
    with pytest.raises(InvalidRequest, match="is a GGUF file, which is computed on the CPU"):
        open_backend(ModelOptions(path=str(path), dtype="bf16", device="cpu"))


def test_no_torch_is_imported_for_a_file(tmp_path: Path) -> None:
    path = save_gguf(tmp_path / "m.gguf", random_module("qwen2", **SIZE), "Q8_0")
    code = (
        "import sys\n"
        "from accel.decoding.engine import Engine\n"
        "from accel.decoding.loop import GenerationRequest\n"
        f"engine = Engine.load({str(path)!r}, device='cpu', threads=1)\n"
        "request = GenerationRequest(engine.tokenizer.encode('def f'), 4, ignore_end=True)\n"
        "assert len(engine.generate(request).finish().tokens) == 4\n"
        "print([m for m in ('torch', 'transformers') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd()
    )
    assert done.stdout.strip() == "[]"


def test_the_forward_of_every_file_is_compiled_without_one(tmp_path: Path) -> None:
    path = save_mixed(tmp_path / "model.gguf", random_module("qwen2", **SIZE))
    whole, smallest = decoder_of(path), smallest_decoder()
    assert numba.typeof(smallest.weights) == numba.typeof(whole.weights)
    assert numba.typeof(smallest.shape) == numba.typeof(whole.shape)
    assert numba.typeof(smallest.cos_sin(2)) == numba.typeof(whole.cos_sin(2))
    assert layouts_of(path) == {matrix.layout for matrix in whole.matrices}


@pytest.mark.parametrize(("changes", "words"), DATA["test_what_our_forward_lacks_is_said"], ids=str)
def test_what_our_forward_lacks_is_said(
    changes: dict[str, Any], words: str, tmp_path: Path
) -> None:
    about = model_file(save_gguf(tmp_path / "m.gguf", random_module("llama", **SIZE | changes)))
    assert not about.is_known
    with pytest.raises(UnsupportedModel, match=words):
        about.check("own")
    assert layouts_of(about.path) == set()
