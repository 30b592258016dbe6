"""A speculator's file: which weights it belongs to, and what is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from numpy.typing import NDArray
from small_networks import network_of, speculator_of, weights_of

from accel.engine import Engine
from accel.errors import BrokenModel, UnsupportedModel
from accel.int8 import Int8
from accel.mask_tokens import save_weights, sha256_of_base
from accel.speculator import FILE, Speculator, read_speculator

SHIPPED = Path(__file__).parents[2] / "accel" / "default_model"


def test_a_speculator_of_another_base_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    network = network_of(0)
    save_weights(tmp_path / FILE, weights_of(network), "of another base")
    with pytest.raises(UnsupportedModel, match="redraft train speculator"):
        read_speculator(tmp_path, network.embeddings, "of this base")
    folder = tmp_path / "model"
    shutil.copytree(SHIPPED, folder)
    shutil.copy(tmp_path / FILE, folder / FILE)
    engine = Engine.load(folder, dtype="bf16")
    assert engine.model.speculator is None
    assert "no speculator" in caplog.text
    assert engine.model.mask_tokens is not None


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    network = network_of(0)
    weights = weights_of(network)
    for changed, message in (
        ({name: weights[name] for name in weights if name != "copy"}, "lacks 'copy'"),
        ({name: weights[name] for name in weights if name != "rest"}, "lacks 'rest'"),
        ({**weights, "bias": weights["bias"][:-1]}, "do not fit together"),
    ):
        with pytest.raises(BrokenModel, match=message):
            Speculator.of(changed, network.embeddings)
    with pytest.raises(BrokenModel, match="another width"):
        Speculator.of(weights, network.embeddings[:, :-1])
    save_weights(tmp_path / FILE, weights, "base")
    read = read_speculator(tmp_path, network.embeddings, "base")
    for one, other in zip(read, speculator_of(network), strict=True):
        for part, expected in zip(_arrays(one), _arrays(other), strict=True):
            assert (part == expected).all()


def _arrays(part: Int8 | NDArray[Any]) -> tuple[NDArray[Any], ...]:
    return tuple(part) if isinstance(part, Int8) else (part,)


def test_the_shipped_speculator_belongs_to_the_shipped_weights() -> None:
    from safetensors import safe_open

    with safe_open(SHIPPED / FILE, framework="pt") as stored:
        assert stored.metadata()["base_sha256"] == sha256_of_base(SHIPPED)
    assert (SHIPPED / FILE).stat().st_size < 1_500_000
