"""Requests that share a forward of torch on the CPU, as far as a probe finds that it changes no
bit; ``conformance`` compares the bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from conformance import check_company, feed, random_prompt
from tiny_models import save
from torch import Tensor

from accel.batch import chain_batch
from accel.engine import Engine
from accel.models.hf_loading import load_module
from accel.models.llama_torch import MOST_REQUESTS, SHARED_WIDTHS, FusedLlama


def opened(folder: Path, dtype: torch.dtype) -> FusedLlama:
    torch.set_num_threads(1)
    module = load_module(save(folder, "qwen3"), dtype, torch.device("cpu"), "eager")
    model = FusedLlama.from_module(module)
    assert model is not None
    return model


@pytest.fixture
def model(tmp_path: Path) -> FusedLlama:
    return opened(tmp_path, torch.float32)


@pytest.mark.parametrize("seed", [0, 1])
def test_company_changes_no_bit_in_bf16(tmp_path: Path, seed: int) -> None:
    """``test_conformance`` looks at fp32."""
    model = opened(tmp_path, torch.bfloat16)
    model.share(model.rows_alike())
    check_company(model, seed)


def passes_of(model: FusedLlama, rows: list[int], monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of the forwards in which requests of so many rows are computed."""
    caches = [model.new_cache(8) for _ in rows]
    for seed, cache in enumerate(caches):
        feed(model, cache, random_prompt(seed, 9))
    batches = [chain_batch(np.zeros(count, np.int32), 0) for count in rows]
    passes: list[int] = []
    through = model._through_layers

    def counted(x: Tensor, *rest: object) -> Tensor:
        passes.append(len(x))
        return through(x, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(model, "_through_layers", counted)
        found = list(model.forward_all(batches, caches))
    assert [len(logits.argmax()) for logits in found] == rows
    return passes


def test_requests_of_few_rows_share_one_forward(
    model: FusedLlama, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.share(32)
    assert model.capability.requests == MOST_REQUESTS
    assert passes_of(model, [1, 5, 2], monkeypatch) == [8]
    assert passes_of(model, [1, 1, 7], monkeypatch) == [12]
    assert passes_of(model, [20, 12, 1], monkeypatch) == [32, 2]
    assert passes_of(model, [3, 40, 1, 2], monkeypatch) == [3, 40, 3]


def test_where_company_would_change_numbers_none_is_kept(
    model: FusedLlama, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.share(0)
    assert model.capability.requests == 1
    assert passes_of(model, [1, 5, 2], monkeypatch) == [1, 5, 2]


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        (lambda y: y * (1 + 1e-6 * (len(y) > 8)), 8),
        (lambda y: y + 1e-6 * (torch.arange(len(y)) == 10)[:, None], 8),
        (lambda y: y * (1 + 1e-6 * (len(y) == 3)), 0),
    ],
    ids=["many rows", "the eleventh row", "three rows"],
)
@pytest.mark.parametrize("place", ["head", "layer"])
def test_the_probe_finds_numbers_that_go_by_rows(
    model: FusedLlama, change: Callable[[Tensor], Tensor], rows: int, place: str
) -> None:
    """Whether by how many there are, or by where they stand."""
    before = model.rows_alike()
    assert before in (0, *SHARED_WIDTHS)
    layer = model._layers[0]
    if place == "head":
        head = model._head
        model._head = lambda x: change(head(x))  # type: ignore[assignment]
    else:
        down = layer.down
        layer.down = lambda x: change(down(x))  # type: ignore[assignment]
    assert model.rows_alike() == min(before, rows)


def test_what_the_probe_found_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder, shared = save(tmp_path / "model", "qwen3"), []
    for _ in range(2):
        engine = Engine.load(folder, dtype="fp32", threads=1)
        assert isinstance(engine.model, FusedLlama)
        shared.append((engine.model.shared_rows, engine.model.capability.requests))
        monkeypatch.setattr(FusedLlama, "rows_alike", lambda _: pytest.fail("it is probed again"))
    assert shared[0] == shared[1]
    assert shared[0][1] == (MOST_REQUESTS if shared[0][0] else 1)
