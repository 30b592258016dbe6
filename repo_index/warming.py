"""Everything of the datastore that is slow the first time, done before the first lookup.

``python -m repo_index.warming FOLDER``, with the folder of a model or its ``tokenizer.json``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from repo_index import datastore, lookup
from repo_index.overlay import Overlay
from repo_index.tokens import TextTokenizer

SECONDS = 13.0
"""About how long a core takes to compile it."""

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


def is_compiled() -> bool:
    """Whether lookups were compiled before, in this form or another."""
    return bool(lookup.look_up_into._cache._cache_file._load_index())


def main() -> None:
    """Compile what ``warm_up`` loads."""
    tokenizer = TextTokenizer.from_file(Path(sys.argv[1]))
    warm_up(tokenizer, tokenizer.vocabulary_size)


if __name__ == "__main__":
    main()
