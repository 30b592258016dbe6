"""Chooses the text of other files that is sent to a server, which drafts from it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lsp_server.shared.contract.jobs import ContextSnippet
from lsp_server.tasks.completion.similar_places import REPOSITORY, IndexedFiles, similar_places
from lsp_server.text.byte_budget import fitting_texts

BEFORE_TOKENS, AFTER_TOKENS = 400, 100
"""Tokens before and after the cursor that similar places share runs with."""
PLACES, PLACE_TOKENS = 64, 2048
"""``tests.benchmarks completion --similar-bytes 65536``: 0.97 of the tokens per forward with the
whole datastore, and 0.95 with places of 1,024 tokens."""
ENDS, END_STEP = 64, 8
ROWS, DEPTH, LEAST_MATCH = 64, 32, 2
CONTINUATION_BYTES = 16 << 10

Decode = Callable[[NDArray[np.int32]], str]


def places_to_send(
    files: IndexedFiles,
    before: NDArray[np.int32],
    after: NDArray[np.int32],
    path: str,
    decode: Decode,
) -> list[ContextSnippet]:
    """Return the places most like the text around the cursor of ``path``, the most similar first.
    ``before`` and ``after``: its tokens, int32 [n]."""
    query = np.concatenate([before[-BEFORE_TOKENS:], after[:AFTER_TOKENS]])
    return [
        ContextSnippet(similar, decode(tokens))
        for similar, tokens in similar_places(files, query, path, PLACES, PLACE_TOKENS)
    ]


def continuations_to_send(
    files: IndexedFiles, before: NDArray[np.int32], decode: Decode
) -> ContextSnippet:
    """Return what followed earlier occurrences of the last tokens ``before`` the cursor, int32 [n],
    as one text without a path."""
    texts: dict[str, None] = {}
    for end in range(len(before), max(len(before) - ENDS, 0), -END_STEP):
        matches = files.snapshot.lookup(before[:end], limit=ROWS, depth=DEPTH)
        rows = zip(matches.tokens, matches.lengths, matches.sources, strict=True)
        for tokens, length, source in rows:
            if source == REPOSITORY and length >= LEAST_MATCH:
                following = tokens[tokens >= 0]
                texts[decode(np.concatenate([before[end - length : end], following]))] = None
    return ContextSnippet("", "\n".join(fitting_texts(CONTINUATION_BYTES, texts)))
