"""Requests that share forwards get the texts that each gets alone: on a real model, by jobs of all
kinds in random interleavings, and through the engine's loop."""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from accel.forwards import Forward, compute_all
from lsp_server.contract.codec import to_json
from lsp_server.contract.jobs import (
    COMPLETION,
    EDIT,
    PREFETCH,
    PREFILL,
    AnyJob,
    CompletionJob,
    EditJob,
    GenerateJob,
)
from lsp_server.engine.completion import missing_line as fitting
from lsp_server.engine.scheduler import EngineLoop
from lsp_server.engine.service import EngineService
from lsp_server.errors import RedraftError

WAIT_S = 300.0
TEXT = "".join(
    f"def price_of_{n}(count, each):\n    total = count * each\n    return total + {n}\n\n\n"
    for n in range(20)
)
FUNCTION = "def area(width, height):\n    value = width * height\n    return value\n"


def any_job(random: random.Random, number: int) -> AnyJob:
    """A completion, one of a missing line, an edit, a generation or a prediction; greedy or drawn
    by a seed."""
    path, kind = f"file_{number}.py", random.randrange(5)
    temperature, seed = random.choice([0.0, 0.0, 0.8]), random.randrange(1000)
    tokens, place = random.randint(4, 40), random.randrange(100, len(TEXT) - 200)
    drawn: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_tokens": tokens}
    if kind == 0:
        return CompletionJob(*("", path), TEXT[:place], TEXT[place + 9 :], **drawn)
    if kind == 1:
        line = TEXT.index("    total", place)
        below = TEXT[TEXT.index("\n", line) :]
        return CompletionJob(*("", path), f"{TEXT[:line]}    ", below, max_tokens=tokens)
    if kind == 2:
        drawn["max_tokens"] = 120
        return EditJob("", path, f"rename value to v{number}", FUNCTION, language="python", **drawn)
    before = random.randrange(place)
    prediction = TEXT[place : place + 300] if kind == 3 else ""
    text = TEXT[before:place]
    return GenerateJob(path=path, text=text, prediction=prediction, **drawn)


def text_of(write: Callable[[], Any]) -> str:
    """The text of a job, or why there is none."""
    try:
        return str(write().text)
    except RedraftError as error:
        return f"{type(error).__name__}: {error}"


def text_alone(service: EngineService, job: AnyJob) -> str:
    """What a job writes that shares no forwards."""
    write = {CompletionJob: service.complete, EditJob: service.edit, GenerateJob: service.generate}
    return text_of(lambda: write[type(job)](job))  # type: ignore[operator]


class Interleaved:
    """Jobs under way at once, a random part of which is computed with every forward, by a random
    part of the rows that it asks for."""

    def __init__(self, service: EngineService, seed: int) -> None:
        self.service, self.random = service, random.Random(seed)
        self.texts: dict[int, str] = {}
        self.shared = 0
        """Forwards of several requests."""
        self._work: dict[int, tuple[Any, Forward]] = {}
        self._cancelled: set[int] = set()

    def run(self, jobs: list[AnyJob], cancelled: set[int]) -> dict[int, str]:
        """The texts of all jobs but those that are ``cancelled`` on their way."""
        left = list(enumerate(jobs))
        self.random.shuffle(left)
        while left or self._work:
            while left and (len(self._work) < 2 or self.random.random() < 0.3):
                number, job = left.pop()
                self._begin(number, job)
            for number in cancelled & self._work.keys():
                if self.random.random() < 0.1:
                    self._cancelled.add(number)
            self._compute()
        return self.texts

    def _begin(self, number: int, job: AnyJob) -> None:
        self._resume(number, self.service.steps(job, lambda: number in self._cancelled), None)

    def _compute(self) -> None:
        count = self.random.randint(1, max(len(self._work), 1))
        numbers = self.random.sample(sorted(self._work), min(count, len(self._work)))
        forwards = {id(self._work[number][1]): number for number in numbers}
        asked = [self._work[number][1] for number in numbers]
        for forward in asked:
            forward.rows = self.random.randint(forward.least, forward.rows)
        self.shared += len(asked) > 1
        if asked:
            for forward, found in compute_all(asked):
                number = forwards[id(forward)]
                self._resume(number, self._work[number][0], found)

    def _resume(self, number: int, steps: Any, found: Any) -> None:
        self._work.pop(number, None)
        try:
            step = steps.send(found)
            while isinstance(step, list):
                step = next(steps)
            self._work[number] = steps, step
        except StopIteration as end:
            if number not in self._cancelled:
                self.texts[number] = str(end.value.text)
        except RedraftError as error:
            self.texts[number] = f"{type(error).__name__}: {error}"


def check(service: EngineService, seed: int, count: int, interleavings: int) -> None:
    random_jobs = random.Random(seed)
    jobs = [any_job(random_jobs, number) for number in range(count)]
    alone = {number: text_alone(service, job) for number, job in enumerate(jobs)}
    assert len(set(alone.values())) > count // 2
    for more in range(interleavings):
        cancelled = {number for number in alone if random_jobs.random() < 0.1}
        interleaved = Interleaved(service, seed + more)
        texts = interleaved.run(jobs, cancelled)
        assert interleaved.shared > count // 2
        assert set(alone) - cancelled <= set(texts)
        for number, text in texts.items():
            assert text == alone[number], f"seed {seed + more}, job {number}"


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch, service: EngineService) -> EngineService:
    """Weighing lines pays, however busy the machine was when forwards were timed."""
    monkeypatch.setattr(fitting, "MOST_S", 60.0)
    assert service.places > 1
    return service


@pytest.mark.parametrize("seed", range(2))
def test_interleaved_jobs_write_what_each_writes_alone(patient: EngineService, seed: int) -> None:
    check(patient, 1000 * seed, 10, 2)


@pytest.mark.long
def test_200_jobs_in_50_interleavings(patient: EngineService) -> None:
    check(patient, 5, 200, 50)


def test_what_is_computed_ahead_lengthens_no_forward_that_somebody_waits_for(
    service: EngineService,
) -> None:
    work = [service.steps(any_job(random.Random(3), n), lambda: False) for n in range(2)]
    first, second = (next(one) for one in work)
    assert isinstance(first, Forward)
    assert isinstance(second, Forward)
    assert service.planned([(EDIT, first), (PREFETCH, second)]) == [[first]]
    assert service.planned([(EDIT, first), (PREFILL, second)]) == [[first]]
    assert service.planned([(PREFILL, second)]) == [[second]]
    for one in work:
        one.close()


def test_the_loop_gives_many_clients_the_texts_of_each_alone(patient: EngineService) -> None:
    random_jobs = random.Random(9)
    jobs = [any_job(random_jobs, number) for number in range(12)]
    alone = [text_alone(patient, job) for job in jobs]
    incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
    outgoing: queue.Queue[dict[str, Any]] = queue.Queue()
    loop = EngineLoop(patient, incoming.get, outgoing.put)
    rows: list[int] = []
    compute = patient.compute

    def noted(forwards: Any) -> Any:
        rows.append(len(forwards))
        return compute(forwards)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patient, "compute", noted)
        patch.setattr(patient, "close", lambda: None)
        thread = threading.Thread(target=loop.run, daemon=True)
        thread.start()
        for number, job in enumerate(jobs):
            urgency = (COMPLETION, EDIT, PREFETCH)[number % 3]
            frame = {"op": job.operation, "kind": job.operation, "job": to_json(job)}
            incoming.put({**frame, "id": number, "client": str(number), "urgency": urgency})
        texts: dict[int, str] = {}
        while len(texts) < len(jobs):
            frame = outgoing.get(timeout=WAIT_S)
            if frame.get("event") == "result":
                texts[frame["id"]] = frame["result"]["text"]
            elif frame.get("event") == "error":
                texts[frame["id"]] = f"{frame['kind']}: {frame['message']}"
        incoming.put({"op": "end"})
        thread.join(WAIT_S)
    assert not thread.is_alive()
    assert [texts[number] for number in range(len(jobs))] == alone
    assert max(rows) > 4
