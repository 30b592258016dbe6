"""Everything that is slow the first time, done before the first request: code that is compiled or
loaded in compiled form, tables of the vocabulary, kernels for the usual numbers of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lsp_server.engine.compiling import CompileTask
from lsp_server.engine.jobs import CompletionJob, EditJob
from lsp_server.engine.model_paths import model_folder

TOKENS = 12
TEXT = '''\
def total(values: list[float]) -> float:
    """Sum of the values."""
    result = 0.0
    for value in values:
        result += value
    return result
'''


def parts_to_compile(
    model: str | Path | None,
    dtype: str,
    device: str,
    backend: str = "auto",
    kv_type: str = "f16",
    **_options: Any,
) -> list[CompileTask]:
    """What a model calls and was never compiled on this machine."""
    from accel import precompile

    folder = model_folder(model)
    as_stored = backend != "llama-cpp" and dtype in ("auto", "int8")
    return [
        CompileTask(
            name, "accel.precompile", (name, str(folder), kv_type), precompile.SECONDS[name]
        )
        for name in precompile.missing_parts(folder, device, as_stored=as_stored)
    ]


def warm_up_drafting() -> None:
    """Compile, or load the compiled form of, what drafts."""
    from accel.drafting.retrieval import drafter
    from accel.planning import calibration

    drafter.warm_up()
    calibration.warm_up()


def warm_up_edits() -> None:
    """Load the compiled form of what drafts edits."""
    from accel.drafting.copy import drafter

    drafter.warm_up()


def warm_up_requests(
    complete: Callable[[CompletionJob], object], edit: Callable[[EditJob], object] | None
) -> None:
    """A completion in the middle of a word, one of a missing line, and an edit, where the model is
    made for them; no edit where there is nothing to edit with yet."""
    from accel.errors import AccelError

    completion = CompletionJob("", "a.py", TEXT * 4 + TEXT[:130], TEXT[130:], max_tokens=TOKENS)
    below = TEXT.index("        result += value")
    line = CompletionJob("", "a.py", TEXT[:below] + "    ", "\n" + TEXT[below:], max_tokens=TOKENS)
    rename = EditJob("", "a.py", "rename value to number", TEXT, max_tokens=TOKENS)
    works: list[Callable[[], object]] = [lambda: complete(completion), lambda: complete(line)]
    if edit is not None:
        works.append(partial(edit, rename))
    for work in works:
        try:
            work()
        except AccelError:
            # A model without the special tokens of this job says so when it is asked for it.
            continue
