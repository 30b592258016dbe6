"""Shared by the tests of this folder: modules beside this file, and a small model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from accel.decoding.engine import Engine

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model with random weights."""
    import torch
    from tiny_models import save

    torch.set_num_threads(1)
    return save(tmp_path_factory.mktemp("llama"), "llama")


@pytest.fixture(scope="module")
def engine(folder: Path) -> Engine:
    from tiny_models import open_engine

    return open_engine(folder)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    """The same model as transformers computes it."""
    from tiny_models import reference_module

    return reference_module(folder)
