"""Hides objects that live as long as the process from the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def settle() -> None:
    """Have the collector leave alone all present objects: with the libraries of models loaded, a
    pass takes a quarter of a second, in the middle of an answer."""
    gc.collect()
    gc.freeze()


@contextmanager
def no_collection() -> Iterator[None]:
    """Do not look for garbage while a model is loaded: hardly anything of that is."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
