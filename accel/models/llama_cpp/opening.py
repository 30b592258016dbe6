"""Open a GGUF file by llama.cpp: probe it, measure it, and choose how many rows a forward has."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Thread

from accel.errors import AccelError
from accel.files.model_options import ModelOptions
from accel.models.autotune import Profile, can_be_stored
from accel.models.backend import Backend
from accel.models.base import BatchKind
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.profile_store import ProfileStore
from accel.models.costs.typical_rate import typical_rate
from accel.models.cpu.quantised.instruction_sets import is_fast
from accel.models.fingerprint import fingerprint
from accel.models.llama_cpp.library_files import find_library
from accel.models.llama_cpp.model import LlamaCppModel
from accel.models.llama_cpp.probe import kind_of
from accel.models.llama_cpp.process import WorkerProcess
from accel.models.llama_cpp.row_costs import RowCosts
from accel.models.model_file import GgufModel
from operating_system.machine import cores, free_bytes

COMPARED_BYTES = 32 << 20
"""Of a smaller file a forward is so short that handing it to another process takes longer."""
POLL_S = 0.005
MOST_QUIET_S = 15.0


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
    """A model that llama.cpp is asked to compute, or where it is left to us, one that our own
    forward does not know or has no quick products for. None for others. Raises UnsupportedModel or
    OutOfMemory."""
    is_left_to_us = options.backend == "auto"
    if is_left_to_us and (options.dtype != "auto" or (is_fast() and about.is_known)):
        return None
    given = _for_llama_cpp(options)
    return open_by_llama_cpp(about.path, given, measures_later=measures_later).backend(about)


def faster_of(
    own: Backend, about: GgufModel, options: ModelOptions, *, measures_later: bool = False
) -> Backend:
    """llama.cpp's form of a model where that is expected to write faster than our ``own``, which is
    stored; where it is not known it is found out now, or else by ``own.later``."""
    given = _for_llama_cpp(options)
    found = open_where_faster(
        about.path, own.costs, own.store, given, measures_later=measures_later
    )
    if isinstance(found, Opened):
        return found.backend(about)
    if isinstance(own.later, Profile):
        own.later.comparison = found
    else:
        own.later = found
    return own


def _for_llama_cpp(options: ModelOptions) -> ModelOptions:
    given = replace(options, path="", threads=options.threads or cores())
    return replace(given, gpu_layers=0) if options.device == "cpu" else given


def open_by_llama_cpp(
    path: Path,
    options: ModelOptions,
    worker: WorkerProcess | None = None,
    *,
    measures_later: bool = False,
) -> Opened:
    """Open a GGUF file. What forwards cost is measured where it is not known, with
    ``measures_later`` after the first answers, and nothing is drafted until then. ``worker``: see
    ``LlamaCppModel``.

    Raises UnsupportedModel or OutOfMemory.
    """
    model = LlamaCppModel(path, options, worker)
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


class LaterComparison:
    """Whether llama.cpp writes faster than our own forward, found out after the first answers, for
    the next start. A request that comes meanwhile ends it; it begins again later."""

    then = None

    def __init__(
        self, path: Path, own: ForwardCosts, options: ModelOptions, save: Callable[[bool], None]
    ) -> None:
        """``own``: costs of our own forward; ``save`` is given the answer."""
        self._path, self.own, self._options, self._save = path, own, options, save
        self._quiet_s = 0.0
        """For so long nothing comes before it begins."""
        self._is_finished = False

    def go_on(self, interrupted: Callable[[], bool]) -> None:
        """Compare them, unless something comes. Raises AccelError where llama.cpp cannot."""
        if self._is_finished or not self._is_quiet(interrupted):
            return
        if free_bytes() < self._path.stat().st_size:
            return
        worker = WorkerProcess(self._path, self._options)
        found: Future[ForwardCosts] = Future()
        Thread(target=self._measure, args=(worker, found), daemon=True).start()
        while not wait([found], POLL_S).done:
            if interrupted():
                worker.abandon()
                self._quiet_s = min(2 * self._quiet_s + 1.0, MOST_QUIET_S)
                return
        self._is_finished = True
        self._save(typical_rate(found.result()) > typical_rate(self.own))

    def _is_quiet(self, interrupted: Callable[[], bool]) -> bool:
        began = time.monotonic()
        while not interrupted():
            if time.monotonic() - began >= self._quiet_s:
                return True
            time.sleep(POLL_S)
        return False

    def _measure(self, worker: WorkerProcess, found: Future[ForwardCosts]) -> None:
        try:
            found.set_result(open_by_llama_cpp(self._path, self._options, worker).costs)
        except Exception as error:
            found.set_exception(error)
        finally:
            worker.end()


def open_where_faster(
    path: Path,
    own: ForwardCosts,
    own_store: ProfileStore,
    options: ModelOptions,
    *,
    measures_later: bool = False,
) -> Opened | LaterComparison | None:
    """``open_by_llama_cpp`` where that is expected to write faster than our own forward, with its
    costs ``own``; None where it is not, or cannot be. The answer is stored in ``own_store``; where
    it is not known, it is found out now, or else later."""
    try:
        place = find_library()
        size = path.stat().st_size
        if place is None or size < COMPARED_BYTES:
            return None
        key = f"llama.cpp is faster/{options}/{place.path}/{place.path.stat().st_mtime_ns}"
        known = own_store.get(key)
        # Both hold the model for a while.
        if known is False or (known is None and free_bytes() < 2 * size):
            return None
        save = partial(_save_answer, own_store, key, options.threads)
        if known is None and measures_later:
            return LaterComparison(path, own, options, save)
        opened = open_by_llama_cpp(path, options)
    except (AccelError, OSError):
        return None
    is_faster = bool(known) or typical_rate(opened.costs) > typical_rate(own)
    if known is None:
        save(is_faster)
    if is_faster:
        return opened
    opened.model.close()
    return None


def _save_answer(own_store: ProfileStore, key: str, threads: int, is_faster: bool) -> None:
    if can_be_stored(threads):
        own_store.put(key, is_faster)


def _save_measured(
    model: LlamaCppModel, store: ProfileStore, threads: int, costs: ForwardCosts
) -> None:
    if can_be_stored(threads):
        store.put(f"rows/{threads}", costs.to_json())
    model.measured = str(costs)
