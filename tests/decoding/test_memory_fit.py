"""A model that does not fit into memory is refused before it is loaded, with what would fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gguf_models import random_module, save_gguf
from tiny_models import save

from accel.decoding.engine import Engine
from accel.errors import OutOfMemory
from accel.files import memory_fit
from accel.files.memory_fit import REPACKED, REST_BYTES, check_fits
from accel.models.cpu import opening
from accel.models.model_file import FolderModel, model_file
from operating_system.machine import free_bytes


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    module = random_module("llama")
    return save_gguf(tmp_path_factory.mktemp("room") / "m.gguf", module, "F16")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("room"), "llama")


def test_a_model_with_room_is_no_matter(file: Path, folder: Path) -> None:
    for model in (file, folder):
        for dtype in ("int8", "bf16", "fp32"):
            check_fits(model, model_file(model).size(dtype), free=1 << 34)


def test_the_refusal_is_a_sentence_that_says_what_would_fit(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_fit, "REST_BYTES", 0)
    monkeypatch.setattr(memory_fit, "FEWEST_TOKENS", 0)
    weights = file.stat().st_size / 2
    with pytest.raises(OutOfMemory) as caught:
        check_fits(file, model_file(file).size("bf16"), free=int(weights * REPACKED * 0.9))
    message = str(caught.value)
    assert "\n" not in message
    assert "a GGUF file of it in Q6_K" in message
    with pytest.raises(OutOfMemory, match="; no model would fit"):
        check_fits(file, model_file(file).size("bf16"), free=int(weights * 0.1))


def test_what_fits_is_never_a_model_of_no_weights() -> None:
    size = memory_fit.Size(7_000_000_000, 14e9, 0)
    assert size.what_fits(2 << 30) == "a model of 2,870 million weights in Q4_0 would fit"
    assert size.what_fits(memory_fit.REST_BYTES) == "no model would fit"


def test_wider_weights_need_more(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_fit, "REST_BYTES", 0)
    sizes = [model_file(folder).size(dtype).needed for dtype in ("int8", "bf16", "fp32")]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[2] / 2


def test_blocks_count_as_they_are_stored(tmp_path: Path) -> None:
    module = random_module("llama", hidden_size=64, intermediate_size=128)
    four = save_gguf(tmp_path / "four.gguf", module, "Q4_0")
    eight = save_gguf(tmp_path / "eight.gguf", module, "Q8_0")
    half = save_gguf(tmp_path / "half.gguf", module, "F16")
    sizes = {path.stem: model_file(path).size("int8") for path in (four, eight, half)}
    assert sizes["four"].nbytes < sizes["eight"].nbytes
    assert sizes["half"].nbytes == pytest.approx(sizes["eight"].nbytes, rel=0.02)
    assert len({size.weights for size in sizes.values()}) == 1
    assert len({size.token_bytes for size in sizes.values()}) == 1
    assert sizes["four"].token_bytes > 0


def test_keys_and_values_in_eight_bits_need_less(file: Path, folder: Path) -> None:
    for model in (file, folder):
        short, wide = (model_file(model).size("bf16", kv) for kv in ("int8", "f16"))
        assert wide.token_bytes / 2 < short.token_bytes < wide.token_bytes
        assert short.needed < wide.needed


def test_a_config_in_other_words_counts_without_a_cache(folder: Path, tmp_path: Path) -> None:
    assert model_file(folder).size("bf16").token_bytes > 0
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for other in ({**config, "num_hidden_layers": "two"}, {}):
        (tmp_path / "config.json").write_text(json.dumps(other))
        assert FolderModel(tmp_path).token_bytes("bf16", "f16") == 0


def test_the_engine_refuses_before_it_reads(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_fit, "free_bytes", lambda: REST_BYTES // 2)
    monkeypatch.setattr(opening, "CompiledLlama", lambda *_: pytest.fail("it was read"))
    with pytest.raises(OutOfMemory, match=r"needs .* MB of memory"):
        Engine.load(file)


def test_kv_caches_leave_half_of_what_is_free(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from accel.decoding import engine as engine_module

    monkeypatch.setattr(engine_module, "free_bytes", lambda: 1 << 29)
    assert Engine.load(folder).kv_budget == 1 << 28
    monkeypatch.setattr(engine_module, "free_bytes", lambda: 0)
    engine = Engine.load(folder)
    assert engine.kv_budget == engine_module.LEAST_KV_BYTES
    engine.kv_budget = engine.model.new_cache(1024).nbytes // 8
    assert engine.longest_prompt == min(128, engine.max_positions)


def test_free_memory_does_not_hang_on_what_a_system_may_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import os

    def missing(_name: str) -> int:
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", missing, raising=False)
    assert free_bytes() > 1 << 20
