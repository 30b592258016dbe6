"""Compiled code that an older version left behind."""

from __future__ import annotations

import importlib.util
import pickle
import sys
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = """
from accel import lanes
from accel.sources.compiled import compiled_with

@compiled_with(lanes)
def double(number):
    return 2 * number
"""


class _Gone:
    """Stands for the type of an older version."""


def _module(folder: Path, name: str) -> ModuleType:
    path = folder / "doubling.py"
    path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_an_index_that_names_a_class_of_an_older_version_counts_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = _module(tmp_path, "doubling_first").double
    assert double(4) == 8
    index = Path(double._cache._cache_file._index_path)
    version = pickle.loads(index.read_bytes())
    stale = pickle.dumps(version) + pickle.dumps((None, {_Gone(): "old"}))
    index.write_bytes(stale)
    monkeypatch.delattr(sys.modules[__name__], "_Gone")
    again = _module(tmp_path, "doubling_second").double
    assert again(5) == 10
    assert index.read_bytes() != stale
