"""Everything of the datastore that is slow the first time, done before the first lookup."""

from __future__ import annotations

import numpy as np

from repo_index import datastore
from repo_index.overlay import Overlay
from repo_index.tokens import TextTokenizer

_TEXT = '''\
def total(values: list[float]) -> float:
    """Sum of the values."""
    result = 0.0
    for value in values:
        result += value
    return result
'''


def warm_up(tokenizer: TextTokenizer, vocabulary_size: int) -> None:
    """Compile, or load the compiled form of, lookups, and of open buffers that are typed into."""
    datastore.warm_up(vocabulary_size)
    overlay = Overlay(tokenizer)
    opened = datastore.Datastore(overlay=overlay)
    for text in (_TEXT, _TEXT + "\n", _TEXT.replace("value", "number"), _TEXT[:-9]):
        overlay.set_buffer("a.py", text)
        overlay.set_buffer("b.py", _TEXT)
        context = tokenizer.encode([_TEXT[:60]])[0].astype(np.int32)
        opened.snapshot(("a.py", 60)).lookup(context, limit=64, depth=32)
