"""The service of an engine process: a model that is loaded at first use, its caches, and the
indexes of the open workspaces. Importing this module loads neither torch nor an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.engine import warming
from lsp_server.engine.caches import Caches
from lsp_server.engine.compiling import CompileTask
from lsp_server.engine.garbage import no_collection, settle
from lsp_server.engine.loaded_model import LoadedModel
from lsp_server.engine.task_runner import TaskRunner
from lsp_server.engine.workspaces import WorkspaceIndexes, lookup_parts
from lsp_server.shared.contract.jobs import COMPLETION, EDIT, AnyJob, JobResult
from lsp_server.shared.contract.notes import (
    CloseBuffer,
    CloseWorkspace,
    ForgetDocument,
    Note,
    OpenWorkspace,
    ReloadIndex,
    SetBuffer,
)
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.contract.status import EngineStatus
from lsp_server.tasks.steps import JobSteps, OnSpans, finished
from lsp_server.tasks.task import Cancelled
from lsp_server.text.surrogates import replace_surrogates
from operating_system.machine import give_back_memory

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.execution.forwards import Forward
    from accel.models.base import Logits


def never() -> bool:
    """Nothing interrupts."""
    return False


class EngineService:
    """Texts for jobs. Not thread-safe: one thread decodes."""

    def __init__(
        self, options: EngineOptions, *, caches: Path | None = None, later: bool = False
    ) -> None:
        """``caches``: the folder for KV caches of documents; None: they are not kept.
        ``later``: greedy completions do not wait for the rest. At the first start edits are not
        drafted until what drafts them is compiled."""
        self.on_change: Callable[[], None] = lambda: None
        """Told by another thread that ``status`` says something else now."""
        self.indexes = WorkspaceIndexes(options.path or None, options.common)
        self._options, self._caches_folder = options, caches
        self._later = later
        self._runner: TaskRunner | None = None
        self._cold_parts: list[Callable[[Cancelled], object]] = []
        """What is left to warm up."""
        self._is_settled = False

    # The model

    def load(self, report: Callable[[str], None] = lambda message: None) -> None:
        """Load the model; ``report`` what takes long. Raises AccelError."""
        if self._runner is None:
            with no_collection():
                self._load(report)

    def _load(self, report: Callable[[str], None]) -> None:
        model = LoadedModel.open(
            self._options, self._parts_to_compile(), report, self.on_change, later=self._later
        )
        self.indexes.share(model.engine.tokenizer)
        megabytes = self._options.disk_cache_megabytes
        self.use(model, Caches.kept(model.engine, megabytes, self._caches_folder))
        self._cold_parts = self._parts_to_warm()

    def use(self, model: LoadedModel, caches: Caches) -> None:
        """Have a model that is loaded already."""
        self._runner = TaskRunner(model, caches, self.indexes)

    @property
    def runner(self) -> TaskRunner:
        """The runner of tasks on the loaded model and its caches."""
        self.load()
        assert self._runner is not None
        return self._runner

    @property
    def model(self) -> LoadedModel:
        """The model, loaded."""
        return self.runner.model

    @property
    def caches(self) -> Caches:
        """The model's caches of documents."""
        return self.runner.caches

    @property
    def engine(self) -> Engine:
        """The engine of the model."""
        return self.model.engine

    def _parts_to_compile(self) -> list[CompileTask]:
        return warming.parts_to_compile(
            self._options, lambda: lookup_parts(self.indexes.tokenizer.vocabulary_size)
        )

    def status(self) -> EngineStatus:
        """Return the engine's status now."""
        if self._runner is None:
            return EngineStatus(model=self._options.path, dtype=self._options.dtype)
        return replace(
            self.model.status(self._options.path),
            kv_bytes=self.engine.kv_bytes,
            kv_budget=self.engine.kv_budget,
            workspaces=tuple(self.indexes.folders),
        )

    @property
    def kv_bytes(self) -> int:
        """Bytes of keys and values."""
        return self.engine.kv_bytes

    def interrupt(self) -> None:
        """Have the job that is decoded now ask whether it goes on. For other threads."""
        if (runner := self._runner) is not None:
            runner.model.engine.interrupt()

    def close(self) -> None:
        """Let go of the model and the indexes."""
        if self._runner is not None:
            self.model.close()
            self.caches.close()
        self.indexes.clear()
        self._runner = None

    # Texts

    def write(
        self, job: AnyJob, cancelled: Cancelled = never, on_spans: OnSpans | None = None
    ) -> JobResult:
        """Write the text of a job, computed alone. ``on_spans`` gets the new spans of every
        forward; the text of an edit replaces the selection. Raises AccelError or RedraftError."""
        return finished(self.steps(job, cancelled), on_spans)

    def steps(self, job: AnyJob, cancelled: Cancelled) -> JobSteps:
        """Write the text of a job; yields after every forward."""
        return self.runner.steps(job, cancelled)

    def prefill_steps(self, job: AnyJob, cancelled: Cancelled) -> JobSteps:
        """Compute the prompt of a job that may come; its result has no text."""
        return self.runner.prefill_steps(job, cancelled)

    @property
    def slots(self) -> int:
        """The number of requests that share a forward."""
        return self.engine.model.capability.requests

    def planned(self, requested: Sequence[tuple[int, Forward]]) -> list[list[Forward]]:
        """Of forwards with their urgency, in the order of their turns, those that are computed
        next: of each model some together, with as many rows as pay."""
        from accel.planning.sharing import Urgent, plan_step

        most_urgent = min(urgency for urgency, _ in requested)
        # What nobody may ever ask for lengthens no forward that somebody waits for.
        requested = [each for each in requested if each[0] in (most_urgent, COMPLETION, EDIT)]
        planned = []
        for engine in self.model.engines:
            group = [Urgent(*each) for each in requested if each[1].model is engine.model]
            if group and min(each.urgency for each in group) == most_urgent:
                planned.append(plan_step(group, engine.planner))
        return planned

    def compute(self, forwards: Sequence[Forward]) -> Iterator[tuple[Forward, Logits | Exception]]:
        """Compute forwards of one model together."""
        from accel.execution.forwards import compute_all

        return compute_all(forwards)

    # Workspaces and documents

    def tell(self, note: Note) -> None:
        """Take a note of the daemon."""
        if isinstance(note, OpenWorkspace):
            self.indexes.open(note.folder, note.store)
        elif isinstance(note, ReloadIndex):
            self.indexes.reload(note.folder, note.store)
        elif isinstance(note, CloseWorkspace):
            self.indexes.forget(note.folder)
            self.caches.close_workspace(note.folder)
        elif isinstance(note, SetBuffer):
            self.indexes.set_buffer(note.folder, note.path, replace_surrogates(note.text))
        elif isinstance(note, CloseBuffer):
            self.indexes.close_buffer(note.folder, note.path)
            self.caches.cross_file.forget(note.folder, note.path)
        elif isinstance(note, ForgetDocument):
            self.caches.forget_document(note.folder, note.path)
        else:
            self.caches.remember(note)

    # While nothing comes

    def warm_up(self, interrupted: Cancelled = never) -> None:
        """Nothing came for a moment: load what requests call, part by part, until something comes.
        A request that comes first loads what it needs itself."""
        while self._cold_parts and not interrupted():
            self._cold_parts.pop(0)(interrupted)
        if not self._cold_parts and not self._is_settled:
            self._is_settled = True
            settle()
            give_back_memory()

    def _parts_to_warm(self) -> list[Callable[[Cancelled], object]]:
        """Yield the parts of ``warm_up``, a second each at most."""
        return [
            lambda _: self.engine.preload(),
            lambda _: warming.warm_up_drafting(),
            lambda _: self.indexes.warm_up(),
            *(partial(self._try, job) for job in warming.jobs()),
            # The next start need not look again where nothing is left.
            lambda _: self._parts_to_compile(),
        ]

    def _try(self, job: AnyJob, interrupted: Cancelled) -> None:
        """A request on caches that go with it; no edit where there is nothing to edit with yet."""
        from accel.errors import AccelError

        if job.operation == "edit" and not self.model.edits_behind.is_over:
            return
        runner = TaskRunner(self.model, Caches(self.engine), self.indexes)
        try:
            finished(runner.steps(job, interrupted), None)
        except AccelError:
            # A model without the special tokens of this job says so when it is asked for it.
            return

    def keep_costs(self) -> bool:
        """Store what forwards cost of late, as nothing came for a moment; return whether the status
        says something else now."""
        return self.model.keep_costs()

    def save_caches(self, interrupted: Cancelled = never) -> None:
        """Nothing came for a moment: save the caches of documents, until something comes."""
        self.caches.save(interrupted)

    def rest(self) -> None:
        """Nothing came for a while: pages of mapped indexes go back to the system, and what was
        freed."""
        for folder in self.indexes.folders:
            self.indexes.datastore(folder).release()
        give_back_memory()
