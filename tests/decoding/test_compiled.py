"""Compiled functions that count no references hand no array to one that does."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import accel
from accel.native.numba_cache import _Index


def modules() -> Iterator[ModuleType]:
    """Those of ``accel`` that may have compiled functions."""
    for module in pkgutil.walk_packages(accel.__path__, "accel."):
        if not module.ispkg:
            yield importlib.import_module(module.name)


def borrows(value: Any) -> bool:
    """Return whether this is a compiled function that counts no references."""
    return isinstance(value, CPUDispatcher) and not value.targetoptions.get("_nrt", True)


def name_of(function: Any) -> str:
    """Module and name."""
    return f"{function.py_func.__module__}.{function.py_func.__name__}"


def users() -> dict[str, set[str]]:
    """For every borrowing function those that name it, by module and name."""
    actual: dict[str, set[str]] = {}
    for module in modules():
        # A function's code is a constant of what it stands in; names that a module holds are here.
        left = [compile(inspect.getsource(module), "", "exec")]
        while left:
            code = left.pop()
            left += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
            held = [vars(module).get(name) for name in code.co_names]
            for other in [each for each in held if isinstance(each, ModuleType)]:
                held += [vars(other).get(name) for name in code.co_names]
            if code.co_name != "<module>":
                user = f"{module.__name__}.{code.co_name}"
                for used in filter(borrows, held):
                    actual.setdefault(name_of(used), set()).add(user)
    return actual


def holds_arrays(kind: Any) -> bool:
    """Return whether values of a type are arrays, or hold arrays."""
    if get_origin(kind) is not None:
        return get_origin(kind) is np.ndarray or any(map(holds_arrays, get_args(kind)))
    fields = getattr(kind, "_fields", ())
    hints = get_type_hints(kind) if fields else {}
    return any(holds_arrays(hints[field]) for field in fields) or kind is Any


FUNCTIONS = {
    name_of(value): value.py_func
    for module in modules()
    for value in vars(module).values()
    if borrows(value)
}
USERS = users()


def test_there_are_such_functions() -> None:
    assert accel.__name__ == "accel"
    assert {"accel.models.cpu.matmul.multiply", "accel.drafting.retrieval.tree_search.grow"} <= set(
        FUNCTIONS
    )


def test_their_users_are_known() -> None:
    """Those that count, those that do not, and Python."""
    layers = "accel.models.cpu.delta_net.layers"
    assert f"{layers}.num_hybrid_items" in USERS["accel.models.cpu.layers.num_items"]
    assert "accel.models.cpu.forward.forward" in USERS["accel.models.cpu.forward.run_steps"]
    assert "accel.models.cpu.llama._compute" in USERS["accel.models.cpu.forward.num_steps"]


def test_who_takes_types_of_ours_survives_their_end() -> None:
    """Numba's own index of compiled forms cannot be read once a module that it names is gone, as
    after an upgrade: only that of ``compiled`` counts as empty then."""
    actual = []
    for module in modules():
        for value in vars(module).values():
            if not isinstance(value, CPUDispatcher) or value.py_func.__module__ != module.__name__:
                continue
            hints = get_type_hints(value.py_func)
            hints.pop("return", None)
            kinds = {kind for hint in hints.values() for kind in (hint, *get_args(hint))}
            if any(getattr(kind, "__module__", "").startswith("accel.") for kind in kinds):
                actual.append(name_of(value))
                is_inlined = bool(value.targetoptions.get("inline"))
                assert is_inlined or isinstance(value._cache._cache_file, _Index), actual[-1]
    assert {
        "accel.models.cpu.thread_state.thread_state_of",
        "accel.drafting.retrieval.kernels.drafting_state_of",
    } <= set(actual)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_they_return_no_arrays(name: str) -> None:
    """To one that counts: it would free memory while that is used. Among themselves none counts."""
    returned = get_type_hints(FUNCTIONS[name]).get("return", type(None))
    if holds_arrays(returned):
        assert USERS[name] <= set(FUNCTIONS), returned
