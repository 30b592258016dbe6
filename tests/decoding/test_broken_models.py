"""Faults of a model are found from its path and headers, at once, and reported in one sentence."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from breaking import Broken, sound, with_config
from broken_models import KINDS
from small_model import SMALL_MODEL

from accel.decoding.engine import Engine
from accel.errors import ModelError
from accel.files.model_folder import check_folder, known_kinds
from accel.files.model_path import find_model_path, state_of
from accel.models.model_file import model_file

LONGEST_S = 1.0
"""Of this thread's own time: what else runs on the machine is no fault of ours."""


@pytest.fixture(autouse=True)
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    from huggingface_hub import constants

    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "hub"


def made(broken: Broken, tmp_path: Path) -> str:
    folder = tmp_path / "made"
    folder.mkdir()
    return broken.make(folder)


@pytest.mark.parametrize("broken", KINDS, ids=lambda broken: broken.name)
def test_each_kind_has_its_cause_and_its_remedy(broken: Broken, tmp_path: Path) -> None:
    model = made(broken, tmp_path)
    started = time.thread_time()
    with pytest.raises(ModelError) as caught:
        model_file(find_model_path(model)).check()
    assert time.thread_time() - started < LONGEST_S
    error = caught.value
    assert broken.cause in error.cause
    assert broken.remedy in error.remedy
    assert str(error) == f"{error.cause}; {error.remedy}"
    assert "\n" not in str(error)
    with pytest.raises(type(error)) as loading:
        Engine.load(model)
    assert str(loading.value) == str(error)


def test_the_kinds_are_told_apart(tmp_path: Path) -> None:
    causes = {(broken.cause, broken.remedy) for broken in KINDS}
    # A GGUF file is one whatever its name is.
    assert len(causes) == len(KINDS) - 1
    assert len(KINDS) >= 80


def test_sound_folders_pass(tmp_path: Path, hub: Path) -> None:
    model = Path(sound(tmp_path / "model"))
    assert check_folder(find_model_path(model))["model_type"] == "llama"
    assert check_folder(SMALL_MODEL)["model_type"] == "llama"
    snapshot = hub / "models--some--model" / "snapshots" / "0123"
    sound(snapshot)
    for written in ("some/model", str(hub / "models--some--model"), str(snapshot)):
        assert find_model_path(written) == snapshot
        check_folder(snapshot)


def test_every_architecture_that_transformers_lists_is_known() -> None:
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    assert known_kinds() == frozenset(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def test_a_change_of_any_file_is_seen(tmp_path: Path) -> None:
    model = sound(tmp_path / "model")
    states = [state_of(model)]
    assert state_of(model) == states[0]
    (tmp_path / "model" / "model.safetensors").write_bytes(b"shorter")
    states.append(state_of(model))
    (tmp_path / "model" / "tokenizer.json").unlink()
    states.append(state_of(model))
    states.append(state_of(tmp_path / "nothing"))
    assert len(set(states)) == 4


def test_looking_loads_no_torch(tmp_path: Path) -> None:
    model = with_config(tmp_path, num_hidden_layers=3)
    code = (
        "import sys\n"
        "from lsp_server.shared.errors import ModelUnavailable\n"
        "from lsp_server.engine.model_paths import check_model\n"
        "try:\n    check_model(sys.argv[1])\n"
        "except ModelUnavailable as error:\n    print(error.remedy)\n"
        "print([name for name in ('torch', 'transformers') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, model], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split("\n")[:2] == ["fetch the whole model", "[]"]
