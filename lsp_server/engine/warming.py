"""Everything that is slow the first time: code that is compiled or loaded in compiled form, tables
of the vocabulary, kernels for the usual numbers of rows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from accel.files.model_options import ModelOptions
from accel.models.fingerprint import version_of
from accel.native.machine_code import code_folder
from accel.native.processor import compiled_for
from lsp_server.engine.compiling import CompileTask
from lsp_server.engine.model_paths import files_state, model_folder
from lsp_server.shared.contract.jobs import CompletionJob, EditJob
from operating_system.files import read_checked, write_checked

TOKENS = 12
TEXT = '''\
def total(values: list[float]) -> float:
    """Sum of the values."""
    result = 0.0
    for value in values:
        result += value
    return result
'''

_MOST = 40
_SOURCES = [Path(__file__).parents[2] / package for package in ("accel", "repo_index")]


def parts_to_compile(
    options: ModelOptions, lookups: Callable[[], dict[str, tuple[Any, CompileTask]]]
) -> list[CompileTask]:
    """Return the functions of a model and ``lookups`` that were never compiled here."""
    state = files_state(options.path)
    chosen = options.dtype, options.device, options.backend, options.kv_type
    record = CompiledRecord((state, *chosen))
    if record.is_complete:
        return []
    folder = model_folder(options.path)
    as_stored = options.backend != "llama-cpp" and options.dtype in ("auto", "int8")
    from accel.decoding import precompile

    ours = precompile.parts_of(folder, options.device, as_stored=as_stored)
    tasks = [*_tasks_of(ours, options.kv_type, folder), *lookups().values()]
    return _missing(tasks, record)


def parts_for_any_model(vocabulary_size: int) -> list[CompileTask]:
    """Return the functions that nearly every model and lookups call and that were never compiled on
    this machine, before the model is here. vocabulary_size: about its tokens."""
    record = CompiledRecord(("any model", vocabulary_size))
    if record.is_complete:
        return []
    from accel.decoding import precompile
    from lsp_server.engine.workspaces import lookup_parts

    ours = _tasks_of(precompile.parts_of(), ModelOptions().kv_type)
    return _missing([*ours, *lookup_parts(vocabulary_size).values()], record)


def _tasks_of(
    functions: dict[str, Any], kv_type: str, file: Path | None = None
) -> list[tuple[Any, CompileTask]]:
    from accel.decoding import precompile

    of_file = [str(file)] if file is not None else []
    return [
        (
            function,
            CompileTask(
                *(name, "accel.decoding.precompile", (name, kv_type, *of_file)),
                precompile.SECONDS[name],
            ),
        )
        for name, function in functions.items()
    ]


def _missing(tasks: list[tuple[Any, CompileTask]], record: CompiledRecord) -> list[CompileTask]:
    """Return those of parts that were never compiled; where there are none, the record says so."""
    from accel.native.numba_cache import index_of, is_cached

    missing = [task for function, task in tasks if not is_cached(function)]
    if not missing:
        record.write([index_of(function) for function, _ in tasks])
    return missing


def warm_up_drafting() -> None:
    """Compile, or load the compiled form of, what drafts."""
    from accel.drafting.retrieval import drafter

    drafter.warm_up()


def warm_up_edits() -> None:
    """Load the compiled form of what drafts edits."""
    from accel.drafting.copy import drafter

    drafter.warm_up()


def jobs() -> list[CompletionJob | EditJob]:
    """Return a completion in the middle of a word, one of a missing line, and an edit."""
    below = TEXT.index("        result += value")
    return [
        CompletionJob("", "a.py", TEXT * 4 + TEXT[:130], TEXT[130:], max_tokens=TOKENS),
        CompletionJob("", "a.py", TEXT[:below] + "    ", "\n" + TEXT[below:], max_tokens=TOKENS),
        EditJob("", "a.py", "rename value to number", TEXT, max_tokens=TOKENS),
    ]


class CompiledRecord:
    """The record that all that a model calls was compiled, for one way to open it, ``subject``, our
    source and the processor: a start need not import it all to check. A disk that is full or gone
    costs only time."""

    def __init__(self, subject: object) -> None:
        identity: list[object] = [subject, compiled_for()]
        identity += [version_of("numba"), version_of("llvmlite"), list(_sources())]
        name = hashlib.sha256(repr(identity).encode()).hexdigest()[:32]
        self._file = code_folder() / "records" / f"{name}.json"

    @property
    def is_complete(self) -> bool:
        """True if nothing is left to compile."""
        indexes = json.loads(read_checked(self._file) or "[]")
        return bool(indexes) and all(map(os.path.isfile, indexes))

    def write(self, indexes: list[str]) -> None:
        """Nothing is left to compile, and these are the files of some of it."""
        folder = self._file.parent
        with contextlib.suppress(OSError):
            write_checked(self._file, json.dumps(indexes).encode())
            newest = sorted(folder.iterdir(), key=lambda file: -file.stat().st_mtime)
            for old in newest[_MOST:]:
                old.unlink(missing_ok=True)


def _sources() -> Iterator[tuple[str, int, int]]:
    """Our own source that may be compiled: path, size and time of each file."""
    waiting = [str(folder) for folder in _SOURCES]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if entry.is_dir():
                waiting.append(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
