"""Everything that is slow the first time, done before the first request: code that is compiled or
loaded in compiled form, tables of the vocabulary, kernels for the usual numbers of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lsp_server.jobs import CompletionJob, EditJob

if TYPE_CHECKING:
    from lsp_server.engine_process import EngineService
    from repo_index.tokens import TextTokenizer

TOKENS = 12
TEXT = '''\
def total(values: list[float]) -> float:
    """Sum of the values."""
    result = 0.0
    for value in values:
        result += value
    return result
'''


def warm_up_drafting(vocabulary_size: int) -> None:
    """Compile, or load the compiled form of, drafting and lookup."""
    from accel.sources import adaptive, calibration, mixture
    from repo_index import datastore

    mixture.warm_up()
    adaptive.warm_up()
    calibration.warm_up()
    datastore.warm_up(vocabulary_size)


def warm_up_buffers(tokenizer: TextTokenizer) -> None:
    """The same for open buffers: opened, typed into, looked up beside a cursor."""
    from repo_index.datastore import Datastore
    from repo_index.overlay import Overlay

    overlay = Overlay(tokenizer)
    datastore = Datastore(overlay=overlay)
    for text in (TEXT, TEXT + "\n", TEXT.replace("value", "number"), TEXT[:-9]):
        overlay.set_buffer("a.py", text)
        overlay.set_buffer("b.py", TEXT)
        context = tokenizer.encode([TEXT[:60]])[0].astype(np.int32)
        datastore.snapshot(("a.py", 60)).lookup(context, limit=64, depth=32)


def warm_up_requests(service: EngineService) -> None:
    """One completion in the middle of a word and one edit, where the model is made for them."""
    from accel.errors import AccelError

    completion = CompletionJob("", "a.py", TEXT * 4 + TEXT[:130], TEXT[130:], max_tokens=TOKENS)
    edit = EditJob("", "a.py", "rename value to number", TEXT, max_tokens=TOKENS)
    for work in (lambda: service.complete(completion), lambda: service.edit(edit)):
        try:
            work()
        except AccelError:
            # A model without the special tokens of this job says so when it is asked for it.
            continue
