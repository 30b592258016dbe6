"""Compiled functions that count no references hand no array to one that does."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import accel


def borrowing() -> dict[str, Any]:
    """All functions that are compiled so, by name."""
    found = {}
    for package in ("accel", "accel.sources"):
        for module in pkgutil.iter_modules(
            importlib.import_module(package).__path__, package + "."
        ):
            if module.ispkg:
                continue
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, CPUDispatcher) and not value.targetoptions.get("_nrt", True):
                    found[f"{value.py_func.__module__}.{name}"] = value.py_func
    return found


def holds_arrays(kind: Any) -> bool:
    """Whether values of a type are arrays, or have such."""
    if get_origin(kind) is not None:
        return get_origin(kind) is np.ndarray or any(map(holds_arrays, get_args(kind)))
    fields = getattr(kind, "_fields", ())
    hints = get_type_hints(kind) if fields else {}
    return any(holds_arrays(hints[field]) for field in fields) or kind is Any


FUNCTIONS = borrowing()


def test_there_are_such_functions() -> None:
    assert accel.__name__ == "accel"
    assert {"accel.matmul.multiply", "accel.sources.best_first.grow"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_they_return_no_arrays(name: str) -> None:
    """Memory would be freed while it is used."""
    returned = get_type_hints(FUNCTIONS[name]).get("return", type(None))
    assert not holds_arrays(returned), returned
