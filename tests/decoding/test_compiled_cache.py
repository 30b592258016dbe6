"""Compiled code that an older version left behind."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as WaitedTooLong
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core import event
from text_cases import data_beside

from operating_system.files import write_checked

DATA = data_beside(__file__)

SOURCE = DATA["SOURCE"]


class _Gone:
    """Stands for the type of an older version."""


def _module(folder: Path, name: str, source: str = SOURCE) -> ModuleType:
    path = folder / "doubling.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_a_change_two_modules_away_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions that a function calls may call changed code, and be part of the same code."""

    def double_with(text: str) -> Any:
        for name, source in {
            "accel.far_away": text,
            "accel.nearby": "from accel.far_away import (\n    far,\n)\n",
        }.items():
            module = ModuleType(name)
            path = tmp_path / f"{name}.py"
            module.__file__ = str(path)
            path.write_text(source, encoding="utf-8")
            monkeypatch.setitem(sys.modules, name, module)
        module.__dict__["near"] = 1
        double = _module(tmp_path, "doubling", f"from accel.nearby import near\n{SOURCE}").double
        double(4)
        return double

    assert double_with("first").stats.cache_misses
    assert double_with("first").stats.cache_hits
    assert double_with("second").stats.cache_misses


def test_an_index_that_names_a_class_of_an_older_version_counts_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = _module(tmp_path, "doubling_first").double
    assert double(4) == 8
    index = Path(double._cache._cache_file._index_path)
    write_checked(index, pickle.dumps((None, {_Gone(): "old"})))
    stale = index.read_bytes()
    monkeypatch.delattr(sys.modules[__name__], "_Gone")
    again = _module(tmp_path, "doubling_second").double
    assert again(5) == 10
    assert index.read_bytes() != stale


class _Compiled(event.Listener):
    """Names of the functions that are compiled."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def on_start(self, event: event.Event) -> None:
        self.names.append(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: event.Event) -> None:
        pass


def test_callers_with_constants_share_one_form(tmp_path: Path) -> None:
    double = _module(tmp_path, "doubling_constants").double
    compiled = _Compiled()

    @njit
    def of_several(number: int) -> int:
        return int(double(4) + double(0) + double(number))

    with event.install_listener("numba:compile", compiled):
        assert of_several(5) == 18
    assert compiled.names.count("double") == 1
    assert not double.signatures, "no form for Python, which did not call it"


def test_python_may_call_what_compiled_code_calls(tmp_path: Path) -> None:
    """Compiled in this process, and then read from disk."""
    assert _calls_all(_module(tmp_path, "doubling_compiled").double) == [4, 12, 12, 10]
    kept = _module(tmp_path, "doubling_kept").double
    assert _calls_all(kept) == [4, 12, 12, 10]
    assert kept.stats.cache_hits


def _calls_all(double: Any) -> list[int]:
    """Python calls a function, compiled code that makes arrays calls it, and Python again."""

    @njit
    def twice(number: int) -> int:
        return int(double(double(number)))

    @njit
    def filled(number: int) -> Any:
        return np.full(2, twice(number))

    return [double(2), filled(3)[1].item(), twice(3), double(5)]


def test_two_that_compile_forms_at_a_time_keep_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One reads the index and numbers its form; the other waits until that is written."""
    first, second = (_module(tmp_path, f"doubling_{name}").double for name in ("one", "two"))
    kept = first._cache._cache_file
    is_saving, may_go_on = threading.Event(), threading.Event()
    save_index = kept._save_index

    def save_slowly(overloads: Any) -> None:
        is_saving.set()
        assert may_go_on.wait(60)
        save_index(overloads)

    monkeypatch.setattr(kept, "_save_index", save_slowly)
    with ThreadPoolExecutor(2) as pool:
        saved = pool.submit(kept.save, "whole", "code for whole numbers")
        assert is_saving.wait(60)
        other = pool.submit(second._cache._cache_file.save, "float", "code for floats")
        with pytest.raises(WaitedTooLong):
            other.result(0.2)
        may_go_on.set()
        saved.result(60)
        other.result(60)
    assert kept.load("whole") == "code for whole numbers"
    assert kept.load("float") == "code for floats"


WITH_ARRAYS = DATA["WITH_ARRAYS"]


def test_what_is_compiled_is_loaded_without_what_compiles(tmp_path: Path) -> None:
    """A process that compiles afterwards loads the compiler."""
    (tmp_path / "running_sums.py").write_text(WITH_ARRAYS, encoding="utf-8")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "code")}

    def printed(*arguments: str) -> str:
        command = [sys.executable, str(tmp_path / "running_sums.py"), *arguments]
        folder = Path(__file__).parents[2]
        environment["PYTHONPATH"] = str(folder)
        return subprocess.run(
            command, env=environment, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert printed() == "0 True"
    assert printed() == "1 False"
    assert printed("more") == "1 False"
    assert printed("more") == "1 False"
