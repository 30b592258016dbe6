"""An adapter from a git history to a chosen model: trained on a GGUF file, added to it, opened."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import frozen_corpus
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from accel.files.gguf.adapter import PROJECTIONS
from accel.files.gguf.architecture import read_architecture
from accel.files.gguf.file import GgufFile
from accel.files.gguf.weights import GgufWeights
from accel.models.model_file import model_file
from lsp_server.commands.cli.main import main
from lsp_server.models.choices import read_choices
from lsp_server.models.fetched import fetched_models, remove_fetched

sys.path.append(str(Path(__file__).parents[2] / "decoding"))
from gguf_models import gguf_metadata, gguf_tensors, random_module, vocabulary_metadata
from gguf_writer import write_gguf

from tests.benchmarks.__main__ import main as laboratory

SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Choices and files of this test alone."""
    for kind in ("CACHE", "CONFIG"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    module = random_module("llama", tie_word_embeddings=True, **SIZES)
    metadata = gguf_metadata(module) | vocabulary_metadata(module.config.vocab_size)
    return write_gguf(tmp_path / "base.gguf", metadata, gguf_tensors(module, "Q8_0"))


@pytest.fixture
def adapter(base: Path, tmp_path: Path) -> Path:
    """Trained for three steps on the frozen corpus."""
    given = {
        "base": base.name,
        "code": [str(frozen_corpus.FOLDER)],
        "out": "mine.safetensors",
        "steps": 3,
        "rank": 4,
        "warm_up_steps": 1,
        "learning_rate": 2e-2,
        "accumulate": 1,
        "batches": [[2, 400]],
        "workers": 0,
        "device": "cpu",
    }
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps(given))
    assert laboratory(["train", "adapter", str(settings)]) == 0
    return tmp_path / "mine.safetensors"


def values(file: Path) -> dict[str, np.ndarray]:
    with GgufFile(file) as opened:
        weights = GgufWeights(opened, read_architecture(opened))
        return {
            f"{kind} {layer}": weights.values(f"model.layers.{layer}.{name}.weight")
            for kind, name in PROJECTIONS.items()
            for layer in range(2)
        }


def test_it_is_added_to_its_model_and_chosen(
    base: Path, adapter: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", "use", str(base), "--adapter", str(adapter)]) == 0
    assert "completion: base-mine" in capsys.readouterr().out
    made = Path(read_choices().completion)
    assert made.name == "base-mine.gguf"
    before, after, parts = values(base), values(made), load_file(adapter)
    for name, was in before.items():
        kind, layer = name.split()
        a, b = (
            parts[f"{kind}.{part}"][int(layer)].astype(np.float32)
            * parts[f"{kind}.{part}.scale"][int(layer)].astype(np.float32)[:, None]
            for part in "AB"
        )
        wanted = was + b @ a
        assert np.abs(after[name] - wanted).max() <= np.abs(wanted).max() / 127
        assert np.abs(wanted - was).max() > 0, "it learnt something"
    assert model_file(made).tokenizer.edit_lines == 10
    assert fetched_models()[made.name]["name"] == "base-mine"
    assert remove_fetched("base-mine") == [made]


def test_what_does_not_go_together_is_told(
    base: Path, adapter: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(base.read_bytes() + b"\0")
    folder = str(Path(__file__).parents[2] / "data" / "small_model")
    for name, file, message in (
        (str(other), adapter, "was trained on another file than"),
        (folder, adapter, "is added to a GGUF file"),
        ("none", adapter, "takes no adapter"),
        (str(base), tmp_path / "none", "is no adapter"),
    ):
        assert main(["models", "use", name, "--adapter", str(file)]) == 1
        assert message in capsys.readouterr().err
    assert read_choices().completion == ""


def test_one_made_of_a_folder_is_not_asked_what_it_was_trained_on(
    base: Path, adapter: Path, tmp_path: Path
) -> None:
    parts = load_file(adapter)
    save_file(parts, tmp_path / "free.safetensors", {"edit_lines": "3"})
    chosen = ["models", "use", str(base), "--adapter", str(tmp_path / "free.safetensors")]
    assert main(chosen) == 0
    made = Path(read_choices().completion)
    assert model_file(made).tokenizer.edit_lines == 3
