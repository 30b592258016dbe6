"""Options of llama.cpp: layers on GPUs, flash attention, KV type.

GPUs are those of a library that pretends to have them. Tests that need llama-cpp-python are skipped
without it.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import conformance
import numpy as np
import pytest
from quantised_by_llama_cpp import saved

from accel.decoding.engine import Engine
from accel.errors import InvalidRequest, UnsupportedModel
from accel.files.model_options import ModelOptions
from accel.models.llama_cpp import context, devices, worker
from accel.models.llama_cpp.devices import ALL_LAYERS, Device, layers_that_fit, used_gpus
from accel.models.llama_cpp.model import LlamaCppModel, described
from lsp_server.commands.cli import doctor
from lsp_server.commands.cli.model_arguments import add_model_arguments, model_options
from lsp_server.engine.caches import Caches
from lsp_server.engine.key import EngineKey
from lsp_server.engine.loaded_model import LoadedModel
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.codec import read, to_json
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.settings import read_settings
from tests.llama_cpp_package import has_package

installed = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")
CPU = Device("CPU", "a processor")
CARD = Device("CUDA0", "a card", is_gpu=True, free_bytes=8 << 30)
SHARED = Device("Vulkan1", "a chip", is_gpu=True, is_integrated=True, free_bytes=16 << 30)


class LibraryWithGpus:
    """Answers every call and computes nothing; keeps what it was asked with."""

    def __init__(self, found: list[Device], refuses_int8: bool = False) -> None:
        self.devices, self.version, self._refuses = found, "7", refuses_int8
        self.model: Any = None
        self.context: Any = None

    def model_params(self) -> Any:
        return SimpleNamespace()

    def context_params(self) -> Any:
        return SimpleNamespace()

    def llama_model_load_from_file(self, _path: bytes, params: Any) -> int:
        self.model = params
        return 1

    def llama_init_from_model(self, _model: int, params: Any) -> int:
        self.context = params
        return int(not (self._refuses and params.type_k == context._KV_TYPES["int8"]))

    def llama_n_ctx(self, _context: int) -> int:
        return int(self.context.n_ctx)

    def llama_n_batch(self, _context: int) -> int:
        return context.MOST_ROWS

    def llama_n_seq_max(self, _context: int) -> int:
        return int(self.context.n_seq_max)

    def llama_print_system_info(self) -> bytes:
        return b"none"

    def llama_model_n_layer(self, _model: int) -> int:
        return 2

    def __getattr__(self, _name: str) -> Any:
        return lambda *_: 0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return saved(tmp_path / "m.gguf")


def opened(
    file: Path, library: LibraryWithGpus, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> dict[str, Any]:
    """Return the worker's description of a model."""
    monkeypatch.setattr(worker, "load_library", lambda: library)
    return worker.Worker(str(file), ModelOptions(threads=2, **options)).about()


def test_layers_go_to_cards_before_they_go_to_integrated_gpus() -> None:
    assert used_gpus([CPU]) == []
    assert used_gpus([CPU, SHARED]) == [SHARED]
    assert used_gpus([CPU, SHARED, CARD]) == [CARD]


def test_as_many_layers_go_to_a_gpu_as_have_room(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "RESERVED_BYTES", 0)
    counts = []
    for free in (0, 1 << 18, 1 << 20, 1 << 40):
        gpu = Device("GPU", "", is_gpu=True, free_bytes=free)
        counts.append(layers_that_fit(file, [gpu], 2.0))
        # Two of half the size hold as many.
        half = Device("GPU", "", is_gpu=True, free_bytes=free // 2)
        assert layers_that_fit(file, [half, half], 2.0) == counts[-1]
        assert layers_that_fit(file, [gpu], 1.0) >= counts[-1]
    assert counts[0] == 0
    assert counts[-1] == ALL_LAYERS
    assert counts == sorted(counts)
    monkeypatch.setattr(devices, "RESERVED_BYTES", 1 << 62)
    assert layers_that_fit(file, [CARD], 2.0) == 0


@pytest.mark.parametrize(
    ("found", "asked", "given"),
    [
        ([CPU], "auto", 0),
        ([CPU], 20, 0),
        ([CPU, CARD], "auto", ALL_LAYERS),
        ([CPU, CARD], 1, 1),
        ([CPU, CARD], 0, 0),
    ],
)
def test_the_library_is_given_the_layers_that_were_asked_for(
    found: list[Device],
    asked: int | Literal["auto"],
    given: int,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    library = LibraryWithGpus(found)
    about = opened(file, library, monkeypatch, gpu_layers=asked)
    assert library.model.n_gpu_layers == given
    told = described(about, ModelOptions(threads=2, gpu_layers=asked))
    if CARD in found:
        assert f"{min(given, 2)} of 2 layers on CUDA0 (a card)" in told
    else:
        assert ("on the CPU, as the library has no GPU" in told) == (asked not in (0, "auto"))


def test_flash_attention_and_the_kv_type_are_given_by_the_librarys_numbers(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: dict[str, set[tuple[int, int, int]]] = defaultdict(set)
    for flash_attention in ("auto", "off", "on"):
        library = LibraryWithGpus([CPU])
        opened(file, library, monkeypatch, flash_attention=flash_attention)
        params = library.context
        numbers[flash_attention].add((params.flash_attn_type, params.type_k, params.type_v))
    assert numbers == {"auto": {(-1, 1, 1)}, "off": {(0, 1, 1)}, "on": {(1, 1, 1)}}
    library = LibraryWithGpus([CPU])
    opened(file, library, monkeypatch, kv_type="int8")
    assert (library.context.type_k, library.context.type_v) == (8, 8)


def test_a_kv_type_that_the_library_refuses_is_said_in_one_line(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = LibraryWithGpus([CPU], refuses_int8=True)
    with pytest.raises(context.LibraryFailed, match=r"redraft\.model\.kvType to f16") as raised:
        opened(file, library, monkeypatch, kv_type="int8")
    assert "\n" not in str(raised.value)


def test_a_library_that_reads_other_numbers_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("llama_n_ctx", "llama_n_batch", "llama_n_seq_max"):
        library = LibraryWithGpus([CPU])
        monkeypatch.setattr(library, name, lambda _: 7)
        with pytest.raises(context.LibraryFailed, match="other numbers than it is given"):
            opened(file, library, monkeypatch)


def test_keys_in_int8_without_flash_attention_are_refused_before_anything_is_loaded(
    file: Path,
) -> None:
    with pytest.raises(UnsupportedModel, match=r"set redraft\.model\.flashAttention to auto"):
        LlamaCppModel(file, ModelOptions(threads=1, flash_attention="off", kv_type="int8"))


@pytest.mark.parametrize("options", [{"gpu_layers": -1}, {"flash_attention": "yes"}])
def test_an_option_that_is_none_is_refused(options: dict[str, Any], file: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"give (0 or more|auto, on or off)"):
        Engine.load(file, **options)


def test_a_changed_setting_is_another_engine() -> None:
    def key(**model: Any) -> EngineKey:
        return EngineKey.of(read_settings({"model": model}).settings)

    keys = [key(), key(gpuLayers=3), key(gpuLayers=0), key(flashAttention="off")]
    assert len({*keys, key(kvType="int8")}) == 5
    assert key(gpuLayers="auto") == key()
    for asked in keys:
        assert read(EngineOptions, json.loads(json.dumps(to_json(asked.options)))) == asked.options


def test_the_command_line_has_the_options_of_the_settings() -> None:
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    for given, layers in (("auto", "auto"), ("0", 0), ("3", 3)):
        words = ["--gpu-layers", given, "--flash-attention", "off", "--device", "cuda:1"]
        actual = ModelOptions(**model_options(parser.parse_args(words)))
        assert actual == ModelOptions(gpu_layers=layers, flash_attention="off", device="cuda:1")
    for wrong in (["--gpu-layers", "all"], ["--threads", "-1"], ["--kv-type", "int4"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)


@installed
def test_the_status_and_the_doctor_say_what_is_used(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    options: dict[str, Any] = {"backend": "llama-cpp", "threads": 1}
    service = EngineService(EngineOptions(path=str(file)))
    engine = Engine.load(file, **options, gpu_layers=5)
    service.use(LoadedModel(engine), Caches(engine))
    told = service.engine.model.computed_by
    assert "on the CPU, as the library has no GPU" in told
    assert "flash attention on; keys and values in f16" in told
    assert service.status().computed_by == told
    finding = doctor._model(str(file), options | {"flash_attention": "off"})
    assert "computed by llama.cpp, on the CPU; flash attention off" in finding.found


@installed
def test_a_model_whose_heads_do_not_fit_int8_says_so(file: Path) -> None:
    """Heads of 16 numbers, where a block has 32."""
    with pytest.raises(UnsupportedModel, match=r"cannot be kept in int8 .*kvType to f16"):
        LlamaCppModel(file, ModelOptions(threads=1, kv_type="int8"))


@installed
def test_keys_in_int8_are_near_those_in_f16_and_take_half_the_memory(tmp_path: Path) -> None:
    sizes = {"hidden_size": 128, "num_attention_heads": 2, "num_key_value_heads": 1}
    file = saved(tmp_path / "m.gguf", **sizes)
    text = np.arange(3, 40, dtype=np.int32)
    numbers, held = [], []
    for kv_type in ("f16", "int8"):
        model = LlamaCppModel(file, ModelOptions(threads=1, kv_type=kv_type))  # type: ignore[arg-type]
        cache = model.new_cache(64)
        conformance.feed(model, cache, text[:-1])
        numbers.append(conformance.numbers(model, conformance.chain_batch(text[-1:], 0), cache))
        held.append(cache.nbytes)
        for check in ("chains", "trees", "trims", "rejected_rows"):
            getattr(conformance, f"check_{check}")(model, 1)
    assert held[1] == pytest.approx(held[0] * 34 / 64, rel=0.01)
    assert not np.array_equal(*numbers)
    spread = np.abs(numbers[0]).max()
    assert np.abs(numbers[0] - numbers[1]).max() < 0.05 * spread
