"""The engine process's one decode loop: the job with the highest priority gets the next forward.

Between two forwards, and two chunks of a prefill, a job asks whether it is cancelled; there more
urgent jobs are served. Jobs of the same priority take turns by client.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lsp_server.contract.codec import Unreadable, to_json
from lsp_server.contract.jobs import EDIT, PREFILL, AnyJob, JobResult, Span, job_of
from lsp_server.contract.notes import note_of
from lsp_server.errors import RedraftError
from lsp_server.protocol.framing import Frame

if TYPE_CHECKING:
    from lsp_server.engine.service import EngineService

logger = logging.getLogger(__name__)

CHANGED = "changed"
"""What the service sends itself: its status says something else now."""

WARM_S = 0.1
"""Without work for so long, what the first requests would load is loaded."""

MEASURE_S = 0.3
"""Without work for so long after a first answer, the service measures what it left for later."""

SAVE_CACHES_S = 2.0
"""Without work for so long, the service keeps what it has on disk."""

REST_S = 20.0
"""Without work for so long, the service rests."""

Steps = Iterator[list[Span]]


@dataclass(slots=True)
class Job:
    """One request of the daemon."""

    id: int
    operation: str
    job: AnyJob
    priority: int
    client: str
    arrived: float
    cancel: threading.Event = field(default_factory=threading.Event)
    cancelled: float = 0.0
    """When the cancel was read."""
    noticed: float = 0.0
    """When the job saw it: the forward that ran in between had ended."""
    steps: Steps | None = None
    running: bool = False
    """Its step is on the stack now; it cannot be stepped again."""
    last_step: int = 0


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
        self._controls: list[Frame] = []
        self._changed = threading.Condition()
        self._ended = False
        self._clock = itertools.count(1)
        self._last_client_turn: dict[str, int] = {}
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
        self._service.close()

    def _tell_loading(self, message: str) -> None:
        self._tell({"state": "loading", "message": message})

    def _tell_ready(self) -> None:
        self._tell(to_json(self._service.status()))

    def _tell(self, status: dict[str, Any]) -> None:
        """What of the status is told now: what is left out stays as it was."""
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
                self._answer(frame["id"], error=error)
                return
            self._jobs[frame["id"]] = Job(
                frame["id"],
                operation,
                job,
                frame["urgency"],
                frame["client"],
                time.perf_counter(),
            )
            self._interrupt_less_urgent(frame["urgency"])
        else:
            self._controls.append(frame)

    def _interrupt_less_urgent(self, priority: int) -> None:
        """What a more urgent job came for does not wait for the end of a forward."""
        if any(job.running and job.priority > priority for job in self._jobs.values()):
            self._service.interrupt()

    def _cancel(self, job_id: int) -> None:
        """Stop a job within its forward; one that has not begun ends here."""
        job = self._jobs.get(job_id)
        if job is None:
            return
        job.cancelled = time.perf_counter()
        job.cancel.set()
        if job.running:
            self._service.interrupt()
        if job.steps is None and not job.running:
            del self._jobs[job_id]
            self._answer(job_id)

    def _serve_one_turn(self) -> None:
        if not self._wait_for_work():
            _, act = self._idle.pop(0)
            act()
            return
        self._idle = self._when_idle()
        self._serve_controls()
        job = self._most_urgent(PREFILL + 1)
        if job is not None:
            self._step(job)

    def _wait_for_work(self) -> bool:
        """Whether there is work; False when it is time for what is done without any."""
        with self._changed:
            while not self._has_work():
                if not self._changed.wait(self._idle[0][0] if self._idle else None):
                    return False
        return True

    def _when_idle(self) -> list[tuple[float, Callable[[], None]]]:
        """What is done while nothing comes, and after how long. Memory that can be had again
        quickly is given back last."""
        return [
            (WARM_S, self._warm_up),
            (MEASURE_S - WARM_S, self._measure),
            (max(SAVE_CACHES_S - MEASURE_S, 0.0), self._save_caches),
            (max(REST_S - SAVE_CACHES_S, 0.0), self._service.rest),
        ]

    def _warm_up(self) -> None:
        try:
            self._service.warm_up(self._has_work)
        except Exception:
            # Whoever asks for it is told what is wrong.
            logger.exception("a part cannot be warmed up")

    def _measure(self) -> None:
        if self._has_answered and self._service.measure(self._has_work):
            self._tell_ready()

    def _save_caches(self) -> None:
        self._service.save_caches(self._has_work)

    def _has_work(self) -> bool:
        return bool(self._ended or self._controls or self._jobs)

    def _serve_controls(self) -> None:
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

    def _most_urgent(self, below: int) -> Job | None:
        """The job whose turn it is among those more urgent than ``below``, and cancelled ones.

        Those come first: they end at once, without a forward. A completion that has begun is
        finished next: it is short, and its client waits for it.
        """
        with self._changed:
            waiting = [
                job
                for job in self._jobs.values()
                if (job.priority < below or job.cancel.is_set()) and not job.running
            ]
        return min(waiting, key=self._turn, default=None)

    def _turn(self, job: Job) -> tuple[bool, int, bool, int, int]:
        has_started = job.steps is not None and job.priority != EDIT
        fair = job.last_step if job.priority == EDIT else self._last_client_turn.get(job.client, 0)
        return not job.cancel.is_set(), job.priority, not has_started, fair, job.id

    def _cancelled(self, job: Job) -> Callable[[], bool]:
        """The question a job asks between forwards; more urgent jobs are served inside it."""

        def is_stopped() -> bool:
            while not job.cancel.is_set():
                if self._controls:
                    self._serve_controls()
                urgent = self._most_urgent(job.priority)
                if urgent is None:
                    return False
                self._step(urgent)
            job.noticed = job.noticed or time.perf_counter()
            return True

        return is_stopped

    def _step(self, job: Job) -> None:
        """One forward of ``job``, or its end."""
        with self._changed:
            # The reading thread may have ended it since it was chosen.
            if job.id not in self._jobs:
                return
            job.running = True
        job.last_step = next(self._clock)
        self._last_client_turn[job.client] = job.last_step
        try:
            if job.steps is None:
                job.steps = self._begin(job)
            spans = next(job.steps)
            self._write({"id": job.id, "event": "spans", "spans": to_json(spans)})
        except StopIteration as end:
            self._end(job, result=end.value)
        except RedraftError as error:
            self._end(job, error=error)
        except Exception as error:
            logger.exception("%s failed", job.operation)
            self._end(job, error=error)
        finally:
            job.running = False

    def _begin(self, job: Job) -> Steps:
        is_stopped = self._cancelled(job)
        if job.operation == "prefill":
            return self._prefill_steps(job.job, is_stopped)
        return self._service.steps(job.job, is_stopped)

    def _prefill_steps(self, job: AnyJob, is_stopped: Callable[[], bool]) -> Steps:
        tokens = self._service.prefill(job, is_stopped)
        yield []
        return {"tokens": tokens}  # type: ignore[return-value]

    def _end(self, job: Job, result: Any = None, error: Exception | None = None) -> None:
        with self._changed:
            del self._jobs[job.id]
        job.steps = None
        if isinstance(result, JobResult):
            self._has_answered = True
            result = to_json(result)
        forward_s = max(0.0, job.noticed - job.cancelled) if job.noticed else 0.0
        self._answer(job.id, result=result, error=error, forward_s=forward_s)

    def _answer(
        self,
        msg_id: Any,
        result: Any = None,
        error: Exception | None = None,
        forward_s: float = 0.0,
    ) -> None:
        """``forward_s``: how long a cancel waited for the forward that ran."""
        if error is not None:
            kind = type(error).__name__
            self._write({"id": msg_id, "event": "error", "message": _one_line(error), "kind": kind})
        else:
            self._write({"id": msg_id, "event": "result", "result": result, "forward_s": forward_s})


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
