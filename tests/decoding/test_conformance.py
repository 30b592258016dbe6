"""Every backend passes the checks of ``conformance``."""

from __future__ import annotations

from typing import Any

import conformance
import pytest
import torch
from quantised_by_llama_cpp import opened, saved
from tiny_models import open_engine, save

from accel.decoding.engine import Engine
from accel.models.base import BatchKind
from tests.llama_cpp_package import has_package

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))]
installed = pytest.mark.skipif(not has_package(), reason="llama-cpp-python is not installed")
WIDE: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 96, "head_dim": 32}
BACKENDS: dict[str, tuple[str, str, dict[str, Any]] | tuple[str, str, dict[str, Any], str]] = {
    "own forward": ("llama", "compiled", WIDE),
    "own forward with biases": ("qwen2", "compiled", WIDE),
    "own forward in int8": ("llama", "compiled", WIDE, "int8"),
    "own forward with norms of heads": ("qwen3", "compiled", WIDE),
    "own forward of a hybrid": ("qwen3_5", "compiled", {}),
    "own forward of a hybrid in int8": ("qwen3_5", "compiled", {}, "int8"),
    "transformers, trees": ("starcoder2", "tree", {}),
    "transformers, sliding windows": ("gemma2", "tree", {}),
    "transformers, chains": ("bloom", "chain", {}),
    "transformers, a recurrent state": ("qwen3_next", "plain", {}),
}
"""Kind of model, the backend that takes it, and what its configuration needs for that; and a
format other than fp32. Beside them stands llama.cpp."""

USUAL = (
    *("own forward", "own forward in int8", "own forward of a hybrid in int8"),
    *("transformers, trees", "transformers, chains"),
)
"""Of each way to compute a model one or two; the others are slow only together."""


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(each, marks=() if each in USUAL else pytest.mark.slow) for each in BACKENDS),
        pytest.param("llama.cpp", marks=installed),
    ],
)
def engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    torch.set_num_threads(1)
    if request.param == "llama.cpp":
        return opened(saved(tmp_path_factory.mktemp("llama-cpp") / "m.gguf"))
    kind, path, changes, *others = BACKENDS[request.param]
    folder = save(tmp_path_factory.mktemp(kind.replace("_", "-")), kind, **changes)
    engine = open_engine(folder, dtype=others[0] if others else "fp32")
    assert engine.execution_path == path
    return engine


@pytest.mark.parametrize("seed", SEEDS)
def test_chains(engine: Engine, seed: int) -> None:
    conformance.check_chains(engine.model, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_trees(engine: Engine, seed: int) -> None:
    if engine.model.capability.kind < BatchKind.TREE:
        pytest.skip("this backend takes no trees")
    conformance.check_trees(engine.model, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_likeliest_tokens(engine: Engine, seed: int) -> None:
    conformance.check_likeliest(engine.model, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_trims(engine: Engine, seed: int) -> None:
    conformance.check_trims(engine.model, seed)


def test_copies(engine: Engine) -> None:
    assert conformance.check_copies(engine.model, 3) == (engine.execution_path == "compiled")


@pytest.mark.parametrize("seed", SEEDS)
def test_company(engine: Engine, seed: int) -> None:
    conformance.check_company(engine.model, seed)


def test_rejected_rows(engine: Engine) -> None:
    if engine.model.capability.kind < BatchKind.CHAIN:
        pytest.skip("what this backend computes cannot be taken back")
    conformance.check_rejected_rows(engine.model, 1)


def test_memory(engine: Engine) -> None:
    conformance.check_memory(engine.model, 2)


def test_cancel(engine: Engine) -> None:
    conformance.check_cancel(engine, 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_drafted_text(engine: Engine, seed: int) -> None:
    conformance.check_drafted_text(engine, seed)
