"""The engine process's one decode loop: a turn is one forward over the rows of all jobs under way.

A job is work that asks for its forwards (``engine.steps``). In every turn those whose turn it is
are advanced to their next forward, and what they ask for is computed together; so jobs join and
leave with every forward, and a completion never waits for more than one. A model that computes
requests one by one serves the most urgent job alone. Of one priority clients take turns, then the
connections of a client, then its jobs. What a job makes of long texts before its first forward is
made in another thread. Where forwards are shared and there are more jobs than share them, one that
has waited for its first turn as long as it may is refused. Of the jobs of one request
(``GenerateJob.batch``) no more are under way than share a forward, and those after the first begin
once that has written something: then its prompt is computed.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lsp_server.engine.turns import Turns
from lsp_server.shared.contract.codec import Unreadable, to_json
from lsp_server.shared.contract.jobs import EDIT, AnyJob, JobResult, job_of
from lsp_server.shared.contract.notes import note_of
from lsp_server.shared.errors import EngineBusy, RedraftError
from lsp_server.shared.processes.framing import Frame
from lsp_server.tasks.steps import Aside, JobSteps

if TYPE_CHECKING:
    from accel.execution.forwards import Forward
    from lsp_server.engine.service import EngineService

logger = logging.getLogger(__name__)

CHANGED = "changed"
"""What the service sends itself: its status says something else now."""

KV_STEP = 16 << 20
"""Bytes by which caches grow or shrink before that is told."""

WARM_S = 0.1
"""Without work for so long, what the first requests would load is loaded."""

KEEP_COSTS_S = 2.0
"""Without work for so long, longer than between keys, the service stores what forwards cost."""

SAVE_CACHES_S = 2.0
"""Without work for so long, the service keeps what it has on disk."""

REST_S = 20.0
"""Without work for so long, the service rests."""


@dataclass(slots=True)
class Job:
    """One request of the daemon."""

    id: int
    operation: str
    job: AnyJob
    priority: int
    client: str
    arrived: float
    place: int
    """In the queue, among jobs of the same rank."""
    cancel: threading.Event = field(default_factory=threading.Event)
    cancelled: float = 0.0
    """When the cancel was read."""
    noticed: float = 0.0
    """When the job saw it: the forward that ran in between had ended."""
    steps: JobSteps | None = None
    forward: Forward | None = None
    """What it waits for."""
    is_aside: bool = False
    """Its texts are prepared in another thread."""
    is_heard: bool = True
    """Somebody reads its spans as they are written."""
    prepared: list[Any] = field(default_factory=list)
    """What was made of them, until it goes on with that."""
    has_begun: bool = False
    has_written: bool = False
    last_step: int = 0
    batched_requests: int = 0
    """Of its forwards: requests that were computed in them, itself among them, and rows."""
    batched_rows: int = 0


class EngineLoop:
    """Reads frames on one thread, decodes on another, and answers in frames."""

    def __init__(
        self,
        service: EngineService,
        read: Callable[[], Frame | None],
        write: Callable[[Frame], None],
    ) -> None:
        self._service = service
        self._read = read
        self._write = write
        self._jobs: dict[int, Job] = {}
        self._computed: list[Job] = []
        """Those whose rows are computed now."""
        self._controls: list[Frame] = []
        self._changed = threading.Condition()
        self._ended = False
        self._turns = Turns()
        self._aside = ThreadPoolExecutor(1, "aside")
        self._told_kv_bytes = 0
        self._has_answered = False
        """Whether a text was written since the model was loaded."""
        self._idle = self._when_idle()
        service.on_change = lambda: self._received({"op": CHANGED})

    def run(self) -> None:
        """Load the model and serve until the other side closes or says ``end``."""
        threading.Thread(target=self._read_frames, name="frames", daemon=True).start()
        self._tell_loading("loading the model")
        try:
            self._service.load(self._tell_loading)
        except Exception as error:
            logger.exception("the model cannot be loaded")
            self._tell(_load_failure(error))
            return
        self._tell_ready()
        while not self._ended:
            self._serve_one_turn()
        self._aside.shutdown(cancel_futures=True)
        self._service.close()

    def _tell_loading(self, message: str) -> None:
        self._tell({"state": "loading", "message": message})

    def _tell_ready(self) -> None:
        self._tell(to_json(self._service.status()))

    def _tell_memory(self) -> None:
        """Tell how much the caches take, where that is other than was told by ``KV_STEP``."""
        kv_bytes = self._service.kv_bytes
        if abs(kv_bytes - self._told_kv_bytes) >= KV_STEP:
            self._told_kv_bytes = kv_bytes
            self._tell({"kv_bytes": kv_bytes})

    def _tell(self, status: dict[str, Any]) -> None:
        """Report changed fields of the status; the others stay as they were."""
        self._write({"event": "status", "status": status})

    def _read_frames(self) -> None:
        while (frame := self._read()) is not None and frame["op"] != "end":
            self._received(frame)
        with self._changed:
            self._ended = True
            for job in self._jobs.values():
                job.cancel.set()
            self._changed.notify()

    def _received(self, frame: Frame) -> None:
        with self._changed:
            self._take(frame)
            self._changed.notify()

    def _take(self, frame: Frame) -> None:
        operation = frame["op"]
        if operation == "cancel":
            self._cancel(frame["id"])
        elif operation in ("complete", "edit", "generate", "prefill"):
            try:
                job = job_of(frame)
            except (KeyError, Unreadable) as error:
                self._answer(frame["id"], error)
                return
            self._enqueue(
                Job(
                    frame["id"],
                    operation,
                    job,
                    frame["urgency"],
                    frame["client"],
                    time.perf_counter(),
                    frame["id"],
                    is_heard=frame.get("heard", True),
                )
            )
            # The running forward gives way, unless a job as urgent takes part in it.
            if self._computed and all(job.priority > frame["urgency"] for job in self._computed):
                self._service.interrupt()
        else:
            self._controls.append(frame)

    def _enqueue(self, job: Job) -> None:
        """The newest of those that wait for one document takes the place of the oldest."""
        for other in self._jobs.values():
            if not other.has_begun and _is_of_same_document(other, job):
                job.place, other.place = sorted((job.place, other.place))
        self._jobs[job.id] = job

    def _cancel(self, job_id: int) -> None:
        """Stop a job, within its forward unless a job as urgent shares it; a job that has not begun
        ends at once."""
        job = self._jobs.get(job_id)
        if job is None:
            return
        job.cancelled = time.perf_counter()
        job.cancel.set()
        others = [other for other in self._computed if not other.cancel.is_set()]
        if job in self._computed and all(other.priority > job.priority for other in others):
            self._service.interrupt()
        if not job.has_begun:
            del self._jobs[job_id]
            self._answer(job_id)

    def _serve_one_turn(self) -> None:
        if not self._wait_for_work():
            _, act = self._idle.pop(0)
            act()
            return
        self._idle = self._when_idle()
        self._serve_controls()
        jobs = self._whose_turn_it_is()
        for job in jobs:
            if job.steps is None:
                self._begin(job)
            elif job.prepared:
                self._resume(job, job.prepared.pop())
            elif job.cancel.is_set():
                self._resume(job, _interrupted())
        self._compute([job for job in jobs if job.forward is not None])

    def _wait_for_work(self) -> bool:
        """Return whether there is work; False when it is time for what is done without any."""
        with self._changed:
            while not self._has_work():
                if not self._changed.wait(self._idle[0][0] if self._idle else None):
                    return False
        return True

    def _when_idle(self) -> list[tuple[float, Callable[[], None]]]:
        """Do the work of idle times, each after its delay. Memory that is quick to regain is given
        back last."""
        save_caches = partial(self._service.save_caches, self._has_work)
        return [
            (WARM_S, self._warm_up),
            (KEEP_COSTS_S - WARM_S, self._keep_costs),
            (max(SAVE_CACHES_S - KEEP_COSTS_S, 0.0), save_caches),
            (max(REST_S - SAVE_CACHES_S, 0.0), self._service.rest),
        ]

    def _warm_up(self) -> None:
        try:
            self._service.warm_up(self._has_work)
        except Exception:
            # Whoever asks for it is told what is wrong.
            logger.exception("a part cannot be warmed up")

    def _keep_costs(self) -> None:
        if self._has_answered and self._service.keep_costs():
            self._tell_ready()

    def _has_work(self) -> bool:
        if self._ended or self._controls:
            return True
        return any(not job.is_aside for job in list(self._jobs.values()))

    def _serve_controls(self) -> None:
        if not self._controls:
            return
        with self._changed:
            frames, self._controls = self._controls, []
        for frame in frames:
            if frame["op"] == CHANGED:
                self._tell_ready()
                continue
            try:
                self._service.tell(note_of(frame))
            except Exception:
                logger.exception("%s failed", frame["op"])

    def _whose_turn_it_is(self) -> list[Job]:
        """As many jobs as share forwards, and cancelled ones.

        Those come first: they end at once, without a forward. A completion that has begun is
        finished next: it is short, and its client waits for it.
        """
        with self._changed:
            jobs = self._ready()
        if len(jobs) > self._service.slots:
            jobs.sort(key=lambda job: (*self._rank(job), *self._turn(job)))
            served = sum(job.cancel.is_set() for job in jobs) + self._service.slots
            if self._service.slots > 1:
                self._refuse_impatient(jobs[served:])
            del jobs[served:]
        return sorted(jobs, key=lambda job: (*self._rank(job)[:2], *self._turn(job)))

    def _ready(self) -> list[Job]:
        """Return all jobs but those that wait for others of their batch or are prepared aside."""
        firsts: dict[str, Job] = {}
        under_way: Counter[str] = Counter()
        for job in self._jobs.values():
            firsts.setdefault(job.job.batch, job)
            under_way[job.job.batch] += job.has_begun
        ready = []
        for job in self._jobs.values():
            batch = job.job.batch
            if job.is_aside:
                continue
            if batch and not job.has_begun and firsts[batch] is not job:
                if not firsts[batch].has_written or under_way[batch] >= self._service.slots:
                    continue
                under_way[batch] += 1
            ready.append(job)
        return ready

    def _refuse_impatient(self, waiting: list[Job]) -> None:
        now = time.perf_counter()
        with self._changed:
            refused = [
                job
                for job in waiting
                if not job.has_begun and 0 < job.job.patience_s < now - job.arrived
                # The reading thread may have ended it.
                if self._jobs.pop(job.id, None) is not None
            ]
        for job in refused:
            message = "more requests than are served at once; try again in a moment"
            self._answer(job.id, EngineBusy(message))

    def _rank(self, job: Job) -> tuple[bool, int, bool]:
        # Where one is computed at a time prompts take turns; a text is written to its end.
        has_started = job.has_written or (job.has_begun and self._service.slots > 1)
        return not job.cancel.is_set(), job.priority, job.priority == EDIT or not has_started

    def _turn(self, job: Job) -> tuple[int, ...]:
        return *self._turns.last(job.client, job.job.connection or ""), job.last_step, job.place

    def _begin(self, job: Job) -> None:
        """Advance a job to its first forward."""
        with self._changed:
            # The reading thread may have ended it since it was chosen.
            if job.id not in self._jobs:
                return
            job.has_begun = True

        def is_stopped() -> bool:
            if job.cancel.is_set():
                job.noticed = job.noticed or time.perf_counter()
            return job.cancel.is_set()

        if job.operation == "prefill":
            job.steps = self._service.prefill_steps(job.job, is_stopped)
        else:
            job.steps = self._service.steps(job.job, is_stopped)
        self._resume(job, None)

    def _compute(self, jobs: list[Job]) -> None:
        """One forward over the rows of these jobs."""
        waiting = {id(job.forward): job for job in jobs}
        requests = [(job.priority, job.forward) for job in jobs if job.forward is not None]
        if not requests:
            return
        for forwards in self._service.planned(requests):
            self._computed = [waiting[id(forward)] for forward in forwards]
            for forward, logits in self._service.compute(forwards):
                self._computed = []
                job = waiting[id(forward)]
                job.batched_requests += len(forwards)
                job.batched_rows += forward.rows
                job.last_step = self._turns.note(job.client, job.job.connection or "")
                self._resume(job, logits)

    def _prepare(self, job: Job, aside: Aside) -> None:
        """Have texts prepared while others decode; the job goes on with what is made of them."""

        def work() -> None:
            outcome = aside.outcome()
            with self._changed:
                job.prepared.append(outcome)
                job.is_aside = False
                self._changed.notify()

        job.is_aside = True
        self._aside.submit(work)

    def _resume(self, job: Job, answer: Any) -> None:
        """Give a job what it waited for, and advance it to its next forward, or to its end."""
        steps, job.forward = job.steps, None
        assert steps is not None, "a job that has ended is not resumed"
        try:
            step = steps.throw(answer) if isinstance(answer, Exception) else steps.send(answer)
            while isinstance(step, list):
                job.has_written = True
                if job.is_heard:
                    self._write({"id": job.id, "event": "spans", "spans": to_json(step)})
                step = next(steps)
            if isinstance(step, Aside):
                self._prepare(job, step)
            else:
                job.forward = step
        except StopIteration as end:
            self._end(job, end.value)
        except RedraftError as error:
            self._end(job, error)
        except Exception as error:
            logger.exception("%s failed", job.operation)
            self._end(job, error)

    def _end(self, job: Job, outcome: JobResult | Exception) -> None:
        with self._changed:
            del self._jobs[job.id]
        job.steps = None
        if isinstance(outcome, JobResult):
            self._has_answered = self._has_answered or job.has_written
            requests, rows = job.batched_requests, job.batched_rows
            outcome = replace(outcome, batched_requests=requests, batched_rows=rows)
        self._tell_memory()
        forward_s = max(0.0, job.noticed - job.cancelled) if job.noticed else 0.0
        self._answer(job.id, outcome, forward_s)

    def _answer(
        self, msg_id: Any, outcome: JobResult | Exception | None = None, forward_s: float = 0.0
    ) -> None:
        """The end of a job; of one that has not begun there is no result. ``forward_s``: how long
        a cancel waited for the forward that ran."""
        answer = {"id": msg_id, "event": "result", "forward_s": forward_s}
        if isinstance(outcome, Exception):
            kind, message = type(outcome).__name__, _one_line(outcome)
            answer = {"id": msg_id, "event": "error", "message": message, "kind": kind}
        else:
            answer["result"] = to_json(outcome)
        self._write(answer)


def _is_of_same_document(job: Job, other: Job) -> bool:
    def document(job: Job) -> tuple[str, ...]:
        path = job.job.path
        return (job.client, job.operation, job.job.workspace, path) if path else ()

    return document(job) == document(other) != ()


def _interrupted() -> Exception:
    """Return the error for a job whose forward is not computed."""
    from accel.errors import Interrupted

    return Interrupted("the job was cancelled before its forward")


def _load_failure(error: Exception) -> dict[str, Any]:
    """Errors that name a remedy are of the model's files; others may pass."""
    remedy = getattr(error, "remedy", None)
    return {
        "state": "failed",
        "message": _one_line(getattr(error, "cause", error)),
        "remedy": remedy or "",
        "lasting": remedy is not None,
    }


def _one_line(error: BaseException | str) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:500]
