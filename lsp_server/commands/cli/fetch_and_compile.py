"""Fetches a model, and compiles meanwhile what every model calls."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from accel.errors import AccelError
from accel.models.model_file import model_file
from lsp_server.engine.compiling import ParallelCompile
from lsp_server.engine.warming import parts_for_any_model, parts_to_compile
from lsp_server.engine.workspaces import lookup_parts
from lsp_server.models.fetching import fetch
from lsp_server.models.manifest import DEFAULT, OfferedModel
from lsp_server.models.progress import COMPILING, Report
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import RedraftError

_FEW_TOKENS, _MANY_TOKENS = 1 << 15, 1 << 17
"""Vocabularies like the default model's, and like those of most others."""


def fetch_and_compile(model: OfferedModel, report: Report, source: Path | None = None) -> Path:
    """``fetching.fetch``, while processes compile what was never compiled on this machine, and then
    what this model calls besides. ``report`` hears of both. Raises FetchFailed."""
    tokens = _FEW_TOKENS if model.name == DEFAULT else _MANY_TOKENS
    compiling = ParallelCompile(parts_for_any_model(tokens))
    compiled = -1

    def report_both(step: str, done: int, total: int) -> None:
        nonlocal compiled
        if compiling.total and compiled != (compiled := compiling.done):
            report(COMPILING, compiled, compiling.total)
        report(step, done, total)

    try:
        file = fetch(model, report_both, source)
        _wait(compiling, report)
    finally:
        compiling.close()
    compile_for(file, report)
    return file


def compile_for(file: Path, report: Report) -> None:
    """Compile what a model on this machine calls, where that was never compiled. One that cannot be
    loaded says so when it is."""
    try:
        tokens = model_file(file).tokenizer.vocabulary_size
        tasks = parts_to_compile(EngineOptions(path=str(file)), lambda: lookup_parts(tokens))
    except (AccelError, RedraftError):
        return
    compiling = ParallelCompile(tasks)
    try:
        _wait(compiling, report)
    finally:
        compiling.close()


def _wait(compiling: ParallelCompile, report: Report) -> None:
    if compiling.total:
        compiling.wait(partial(report, COMPILING))
