"""Everything of the datastore that is slow the first time, done before the first lookup.

Run as a module with PART VOCABULARY_SIZE.
"""

from __future__ import annotations

import sys
from typing import Any

from tokenizers import Tokenizer, models

from repo_index import datastore, lookup, ordering
from repo_index.ordering import stream_type
from repo_index.overlay import Overlay
from repo_index.tokens import TextTokenizer

SECONDS = {"lookups": 9.0, "buffers": 6.0}
"""About how long a core takes to compile a part."""

_TEXT = '''\
def total(values: list[float]) -> float:
    """Sum of the values."""
    result = 0.0
    for value in values:
        result += value
    return result
'''


def warm_up(tokenizer: TextTokenizer) -> None:
    """Compile, or load the compiled form of, lookups, and of open buffers that are typed into."""
    for module in SECONDS:
        _warm_up_part(module, tokenizer)


def _warm_up_part(module: str, tokenizer: TextTokenizer) -> None:
    if module == "lookups":
        datastore.warm_up_lookups(tokenizer.vocabulary_size)
        return
    datastore.warm_up_changes(tokenizer.vocabulary_size)
    overlay = Overlay(tokenizer)
    for text in (_TEXT, _TEXT + "\n", _TEXT.replace("value", "number"), _TEXT[:-9]):
        overlay.set_buffer("a.py", text)
        overlay.set_buffer("b.py", _TEXT)


def parts_of(vocabulary_size: int) -> dict[str, Any]:
    """Return a compiled function of each part, see ``SECONDS``: of lookups for a vocabulary of this
    size."""
    look_up = lookup.look_up_of(stream_type(vocabulary_size))
    return {"lookups": look_up, "buffers": ordering.sort_buckets}


def main() -> None:
    """Compile one part of what ``warm_up`` loads. A tokenizer that knows no word will do."""
    module, vocabulary_size = sys.argv[1:]
    words: Any = models.WordLevel({"": 0}, unk_token="")
    _warm_up_part(module, TextTokenizer(Tokenizer(words), "", int(vocabulary_size)))


if __name__ == "__main__":
    main()
