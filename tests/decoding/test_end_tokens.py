"""Ids of ends that are no token's are passed over with a warning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_models import save

from accel.files.folder_architecture import folder_architecture, named_ends
from accel.models.hf_loading import end_tokens, load_module


@pytest.mark.parametrize(
    ("values", "expected", "passed"),
    [
        ([None, None], set(), 0),
        ([2, None], {2}, 0),
        ([[1, 2], 2], {1, 2}, 0),
        ([[1, 10], None], {1}, 1),
        ([10], set(), 1),
        ([-1, 3], {3}, 1),
        ([[-1, 1 << 40], [4]], {4}, 2),
        (["2", 2], {2}, 1),
        ([[None, 0]], {0}, 1),
        ([2.0], set(), 1),
        ([[9, 9, 10, 10]], {9}, 2),
    ],
)
def test_ids_out_of_range(
    values: list[Any], expected: set[int], passed: int, caplog: pytest.LogCaptureFixture
) -> None:
    assert named_ends(values, 10, "some/model") == expected
    assert len(caplog.records) == passed
    assert all("some/model" in record.getMessage() for record in caplog.records)


def test_a_folder_that_names_tokens_it_lacks_is_opened(tmp_path: Path) -> None:
    sizes = {"hidden_size": 256, "intermediate_size": 512, "head_dim": 64}
    folder = save(tmp_path, "llama", **sizes)
    expected = end_tokens(load_module(folder, torch.float32, torch.device("cpu")))
    for name in ("generation_config.json", "config.json"):
        file = folder / name
        config = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps({**config, "eos_token_id": [*sorted(expected), 1 << 20]}))
    module = load_module(folder, torch.float32, torch.device("cpu"))
    assert end_tokens(module) == expected
    actual = folder_architecture(folder)
    assert actual is not None
    assert actual.end_tokens == expected
