"""Fetches a model, compiles meanwhile what every model calls, and chooses the model if none is."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from accel.errors import AccelError
from accel.models.model_file import model_file
from lsp_server.editor.daemon.control import ask_daemon
from lsp_server.engine.compiling import ParallelCompile
from lsp_server.engine.warming import parts_for_any_model, parts_to_compile
from lsp_server.engine.workspaces import lookup_parts
from lsp_server.models.catalogue import model_at
from lsp_server.models.choices import field_of, read_choices, write_choice
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
    compiled = -1

    def report_both(step: str, done: int, total: int) -> None:
        nonlocal compiled
        if compiling.total and compiled != (compiled := compiling.done):
            report(COMPILING, compiled, compiling.total)
        report(step, done, total)

    with closing(ParallelCompile(parts_for_any_model(tokens))) as compiling:
        file = fetch(model, report_both, source)
        _wait(compiling, report)
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
    with closing(ParallelCompile(tasks)) as compiling:
        _wait(compiling, report)


def _wait(compiling: ParallelCompile, report: Report) -> None:
    if compiling.total:
        compiling.wait(partial(report, COMPILING))


def choose_if_none(file: Path, wanted_for: str | None = None) -> str:
    """Choose a fetched model if none is chosen, and return a sentence that says so, or how to
    choose it. ``wanted_for`` chooses it for this purpose in any case. Raises RedraftError."""
    if wanted_for is not None:
        return f"it is chosen for {_chosen(wanted_for, file)}"
    model = model_at(str(file))
    is_for_next_edits = "next-edit" in model.does and "fim" not in model.does
    purpose = "next-edits" if is_for_next_edits else "completion"
    purpose_option = f" --for {purpose}" if is_for_next_edits else ""
    fits = is_for_next_edits or "fim" in model.does
    if not fits or getattr(read_choices(), field_of(purpose)):
        return f"`redraft models use {file.stem}{purpose_option}` chooses it"
    return f"it is chosen for {_chosen(purpose, file)}, where nothing was"


def _chosen(purpose: str, file: Path) -> str:
    write_choice(purpose, str(file))
    ask_daemon("models")
    return purpose
