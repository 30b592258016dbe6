"""GGUF files opened by llama.cpp, probed and measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from accel.errors import AccelError
from accel.files.model_options import ModelOptions
from accel.models.autotune import can_be_stored
from accel.models.backend import Backend
from accel.models.base import BatchKind
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.fingerprint import fingerprint
from accel.models.llama_cpp.library_files import has_gpu_library
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.probe import kind_of
from accel.models.llama_cpp.row_costs import RowCosts
from accel.models.model_file import GgufModel
from operating_system.machine import cores


class LaterCosts:
    """What forwards of an opened model cost, measured after its first answers."""

    then = None
    """Nothing is measured after it."""

    def __init__(self, measuring: RowCosts, save_costs: Callable[[ForwardCosts], None]) -> None:
        self._measuring, self._save_costs = measuring, save_costs

    def go_on(self, interrupted: Callable[[], bool]) -> ForwardCosts | None:
        """The costs once they are measured, by which requests that begin then are planned; None
        where something came before. Raises AccelError where the model cannot be measured."""
        if not self._measuring.go_on(interrupted):
            return None
        self._save_costs(self._measuring.costs)
        return self._measuring.costs


@dataclass(slots=True)
class Opened:
    """A model, what its forwards cost, and its profile on disk. ``later`` measures all of the
    costs, where ``costs`` are those of prompts and of one row alone."""

    model: LlamaCppModel
    costs: ForwardCosts
    store: ProfileStore
    threads: int
    later: LaterCosts | None = None

    def backend(self, about: GgufModel) -> Backend:
        """It with the tokenizer of its file."""
        return Backend(
            *(self.model, about.tokenizer, self.costs, self.threads),
            *("llama.cpp", self.store, self.later),
        )


def open_asked(
    about: GgufModel, options: ModelOptions, *, measures_later: bool = False
) -> Backend | None:
    """Return a model that llama.cpp computes: one that ``options`` leave to it, or by ``backend``
    auto one that our own forward has no quick products for or that a GPU computes. None for others.
    Raises UnsupportedModel or OutOfMemory."""
    given = replace(options, path="", threads=options.threads or cores())
    given = replace(given, gpu_layers=0) if options.device == "cpu" else given
    if options.backend == "auto":
        if options.dtype != "auto":
            return None
        if is_fast() and about.is_known:
            return _opened_on_gpu(about, given, measures_later=measures_later)
    return open_by_llama_cpp(about.path, given, measures_later=measures_later).backend(about)


def _opened_on_gpu(
    about: GgufModel, options: ModelOptions, *, measures_later: bool
) -> Backend | None:
    """Return a model of which a GPU computes layers; None where no GPU can."""
    try:
        if options.gpu_layers == 0 or not has_gpu_library():
            return None
        opened = open_by_llama_cpp(about.path, options, measures_later=measures_later)
    except (AccelError, OSError):
        return None
    if opened.model.is_on_gpu:
        return opened.backend(about)
    opened.model.close()
    return None


def open_by_llama_cpp(path: Path, options: ModelOptions, *, measures_later: bool = False) -> Opened:
    """Open a GGUF file. Unknown costs of forwards are measured, with ``measures_later`` after the
    first answers, and nothing is drafted until then. Raises UnsupportedModel or OutOfMemory."""
    model = LlamaCppModel(path, options)
    # What forwards cost, and which rows they take, goes by all of that.
    model.fingerprint = fingerprint(path, f"{model.system} {model.computed_by}")
    store = ProfileStore(model.fingerprint)
    kind = store.get("kind")
    if kind not in [int(each) for each in BatchKind]:
        kind = kind_of(model)
        store.put("kind", int(kind))
    model.takes(BatchKind(kind))
    costs, later = ForwardCosts.stored(store.get(f"rows/{options.threads}")), None
    if costs is None:
        measuring = RowCosts(model)
        save_costs = partial(_save_measured, model, store, options.threads)
        if measures_later and not measuring.is_finished:
            costs, later = measuring.costs, LaterCosts(measuring, save_costs)
        else:
            measuring.go_on()
            costs = measuring.costs
            save_costs(costs)
    model.measured = str(costs)
    return Opened(model, costs, store, options.threads, later)


def _save_measured(
    model: LlamaCppModel, store: ProfileStore, threads: int, costs: ForwardCosts
) -> None:
    if can_be_stored(threads):
        store.put(f"rows/{threads}", costs.to_json())
    model.measured = str(costs)
