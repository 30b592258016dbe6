"""Model folders: what is missing, broken or refused is said in one line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny_models import save

from accel.decoding.engine import Engine
from accel.errors import AccelError, BrokenModel, InvalidRequest, ModelNotFound, UnsupportedModel
from accel.models import fingerprint as names
from accel.models.costs.profile_store import ProfileStore
from accel.models.fingerprint import fingerprint
from accel.native.processor import INSTRUCTIONS


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(tmp_path_factory.mktemp("sound"), "llama")


@pytest.fixture
def folder(sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    return Path(shutil.copytree(sound, tmp_path / "model"))


def refusal(model: Path | str, kind: type[AccelError]) -> str:
    with pytest.raises(kind) as caught:
        Engine.load(model, dtype="fp32", threads=1)
    message = str(caught.value)
    assert "\n" not in message
    assert ";" in message, "the message says what to do next"
    return message


def test_a_sound_folder_loads_and_is_measured_at_its_first_start(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine.load(folder, dtype="fp32", threads=1)
    assert (engine.dtype, engine.execution_path, engine.end_tokens) == ("fp32", "compiled", {299})
    (file,) = (tmp_path / "cache" / "redraft" / "profiles").iterdir()
    contents = [file.read_bytes()]
    for _ in range(2):
        assert Engine.load(folder, dtype="fp32", threads=1).execution_path == "compiled"
        contents.append(file.read_bytes())
    assert contents[0] == contents[1] == contents[2]
    file.write_text("{ damaged")
    assert Engine.load(folder, dtype="fp32", threads=1).execution_path == "compiled"


def test_automatic_settings_are_one_of_the_two_dtypes(tmp_path: Path) -> None:
    """For models that torch computes; our own forward takes eight bits."""
    assert Engine.load(save(tmp_path, "gpt_neox"), threads=1).dtype in ("fp32", "bf16")


def test_missing_folders_and_ids(tmp_path: Path, folder: Path) -> None:
    refusal(tmp_path / "nothing", ModelNotFound)
    refusal("./nothing", ModelNotFound)
    assert "hf download" in refusal("someone/some-model", ModelNotFound)


def test_incomplete_and_damaged_folders(folder: Path) -> None:
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    refusal(folder, BrokenModel)
    weights.write_bytes(b"")
    refusal(folder, BrokenModel)
    weights.unlink()
    assert "safetensors" in refusal(folder, BrokenModel)
    weights.write_bytes(content)
    config = folder / "config.json"
    text = config.read_text()
    for bad in ("{", "[]", "{}", '{"model_type": 3}'):
        config.write_text(bad)
        refusal(folder, BrokenModel)
    config.unlink()
    assert "config.json" in refusal(folder, BrokenModel)
    config.write_text(text)
    (folder / "tokenizer.json").write_text("{}")
    refusal(folder, BrokenModel)


def test_weights_that_lack_a_tensor(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    removed = next(name for name in tensors if "down_proj" in name)
    del tensors[removed]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert removed in refusal(folder, BrokenModel)


def test_pickled_weights_are_never_loaded(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"never read")
    assert "pickled" in refusal(folder, UnsupportedModel)


def test_foreign_code_is_never_run(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    marker = folder / "ran"
    (folder / "modeling_own.py").write_text(f"open({str(marker)!r}, 'w')")
    config |= {"model_type": "own", "auto_map": {"AutoModelForCausalLM": "modeling_own.Own"}}
    (folder / "config.json").write_text(json.dumps(config))
    assert "own code" in refusal(folder, UnsupportedModel)
    config["model_type"] = "bert-like-nothing"
    del config["auto_map"]
    (folder / "config.json").write_text(json.dumps(config))
    refusal(folder, UnsupportedModel)
    assert not marker.exists()


@pytest.mark.parametrize(
    "options", [{"dtype": "fp8"}, {"device": "nonsense"}, {"device": "cuda:99"}, {"threads": -1}]
)
def test_unknown_options_are_refused(folder: Path, options: dict[str, object]) -> None:
    with pytest.raises(InvalidRequest):
        Engine.load(folder, **options)


def test_a_full_disk_costs_the_store_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    store = ProfileStore("name")
    store.put("a", [1])
    assert store.get("a") == [1]


def test_the_fingerprint_changes_with_what_code_is_compiled_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home folder may be that of several machines."""
    actual = {fingerprint(folder, "cpu")}
    for setting in (INSTRUCTIONS, "NUMBA_CPU_FEATURES"):
        monkeypatch.setenv(setting, "another")
        actual.add(fingerprint(folder, "cpu"))
    monkeypatch.setattr(names, "compiled_for", lambda: ["another processor"])
    assert len({*actual, fingerprint(folder, "cpu")}) == 4


def test_the_fingerprint_changes_with_the_weights(folder: Path) -> None:
    before = fingerprint(folder, "cpu")
    assert before == fingerprint(folder, "cpu") != fingerprint(folder, "cuda")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes() + b" ")
    assert fingerprint(folder, "cpu") != before


def test_out_of_memory_is_said_and_costs_the_request_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import numpy as np

    from accel.decoding.request import GenerationRequest
    from accel.errors import OutOfMemory

    engine = Engine.load(folder, dtype="bf16", threads=1)
    forward = engine.model._masks

    def full(*_: object) -> torch.Tensor:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")

    session = engine.session()
    request = GenerationRequest(np.arange(20, dtype=np.int32), max_tokens=4)
    monkeypatch.setattr(engine.model, "_masks", full)
    with pytest.raises(OutOfMemory, match="use"):
        engine.generate(request, session).finish()
    monkeypatch.setattr(engine.model, "_masks", forward)
    assert len(engine.generate(request, session).finish().tokens) > 0
