"""Randomised tests: one test goes through all its seeds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

Test = Callable[..., None]
Amount = Callable[[int, int], int]
"""The fixture ``amount``."""


def for_each_seed(seeds: Iterable[int]) -> Callable[[Test], Test]:
    """A test of one ``seed`` becomes a test of all of them; the one that fails is printed last."""

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def test_all(**fixtures: Any) -> None:
            for seed in seeds:
                print(f"seed {seed}")
                test(seed=seed, **fixtures)

        signature = inspect.signature(test)
        others = [each for each in signature.parameters.values() if each.name != "seed"]
        test_all.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return test_all

    return decorate
