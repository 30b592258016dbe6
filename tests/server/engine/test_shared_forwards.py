"""Requests that share forwards get the texts that each gets alone: on a real model, through the
engine's loop, in random interleavings of jobs of all kinds."""

from __future__ import annotations

import json
import queue
import random
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from seeds import Amount
from small_model import SMALL_DRAFT, SMALL_MODEL
from steady_costs import DTYPE, THREADS, hold_costs, keep_costs
from torch.nn.functional import pad

from accel.errors import Interrupted, InvalidRequest
from accel.execution.forwards import Forward
from accel.execution.runner import PREFILL_ROWS
from accel.execution.session import Session
from accel.models.cpu.matmul import BLOCK
from accel.planning.sharing import LENGTHENED
from accel.verification.sampling import Sampling
from lsp_server.engine.scheduler import EngineLoop
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    PREFETCH,
    PREFILL,
    AnyJob,
    CompletionJob,
    EditJob,
    GenerateJob,
)
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.shared.errors import RedraftError

WAIT_S = 300.0
KV_BUDGET = 6 << 20
"""Of the caches of some six jobs: those of idle ones have to go all the time."""
TEXT = "".join(
    f"def price_of_{n}(count, each):\n    total = count * each\n    return total + {n}\n\n\n"
    for n in range(8)
)
FUNCTION = "def area(width, height):\n    value = width * height\n    return value\n"
DRAWN_TOKENS = 25
"""Of a text that is drawn several times."""


def any_jobs(random: random.Random, count: int) -> list[AnyJob]:
    """Jobs of all kinds, among them texts that are drawn several times from one prompt."""
    jobs: list[AnyJob] = []
    while len(jobs) < count:
        jobs += any_job(random, len(jobs))
    return jobs[:count]


def any_job(random: random.Random, number: int) -> list[AnyJob]:
    """A completion, one of a missing line, an edit, a generation, a prediction or three texts from
    one prompt; greedy or drawn by a seed."""
    path, kind = f"file_{number}.py", random.randrange(6)
    temperature, seed = random.choice([0.0, 0.0, 0.8]), random.randrange(1000)
    tokens, place = random.randint(3, 24), random.randrange(100, len(TEXT) - 150)
    drawn: dict[str, Any] = {"temperature": temperature, "seed": seed, "max_tokens": tokens}
    drawn["owner"] = random.choice(["", "ann"])
    if kind == 0:
        return [CompletionJob(*("", path), TEXT[:place], TEXT[place + 9 :], **drawn)]
    if kind == 1:
        line = TEXT.index("    total", place)
        below = TEXT[TEXT.index("\n", line) :]
        return [CompletionJob(*("", path), f"{TEXT[:line]}    ", below, max_tokens=tokens)]
    if kind == 2:
        drawn["max_tokens"], change = 60, f"rename value to v{number}"
        return [EditJob("", path, change, FUNCTION, language="python", **drawn)]
    # Prompts that begin alike, and name no document, take turns with each other's caches.
    text = TEXT[random.choice([0, 50, place // 2]) : place]
    sampling = Sampling(temperature, seed=seed)
    owned = {"owner": drawn["owner"], "max_tokens": tokens, "sampling": sampling}
    job = GenerateJob(path=random.choice(["", path]), text=text, **owned)
    if kind == 3:
        return [replace(job, prediction=TEXT[place : place + 120])]
    if kind == 4:
        return [job]
    several = replace(job, max_tokens=DRAWN_TOKENS, batch=f"{number}")
    return [replace(several, sampling=Sampling(0.9, seed=seed + each)) for each in range(3)]


def text_of(write: Callable[[], Any]) -> str:
    """The text of a job, or why there is none."""
    try:
        return str(write().text)
    except RedraftError as error:
        return f"{type(error).__name__}: {error}"


def text_alone(service: EngineService, job: AnyJob) -> str:
    """What a job writes that shares no forwards."""
    return text_of(lambda: service.write(job))


class Interleaved:
    """The engine's loop, turn by turn, over jobs that come and are cancelled at random, between
    forwards and within them. It stands in for the service, checks what is planned and computed, and
    has a random part of it computed: what another machine's costs would bring."""

    def __init__(self, service: EngineService, seed: int) -> None:
        self._service, self._random = service, random.Random(seed)
        self.texts: dict[int, str] = {}
        self.cut: dict[int, str] = {}
        """Texts of jobs that were cancelled on their way."""
        self.shared = self.interrupted = 0
        """Forwards of several requests, and those that were interrupted."""
        self._cuts_plans = seed % 2 == 0
        self._arrivals = self._random.choice([0.1, 0.3, 0.9])
        self._loop = EngineLoop(self, lambda: None, self._written)  # type: ignore[arg-type]
        self._left: list[tuple[int, AnyJob]] = []
        self._doomed: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._service, name)

    def run(self, jobs: Sequence[AnyJob], doomed: set[int]) -> None:
        """Have all of these written but for those that are ``doomed``: they may be cancelled."""
        self._left, self._doomed = list(enumerate(jobs)), set(doomed)
        self._random.shuffle(self._left)
        while self._left or self._loop._jobs:
            self._happens()
            if self._loop._jobs:
                self._loop._serve_one_turn()

    def _happens(self) -> int | None:
        """A job may come, another be cancelled; how urgent is what a forward has to end for."""
        urgencies = []
        while self._left and (not self._loop._jobs or self._random.random() < self._arrivals):
            urgencies.append(self._comes(*self._left.pop()))
        for number in sorted(self._doomed & self._loop._jobs.keys()):
            if self._random.random() < 0.2:
                job = self._loop._jobs[number]
                self._doomed.remove(number)
                self._loop._received({"op": "cancel", "id": number})
                if job in self._loop._computed:
                    urgencies.append(job.priority)
        return min(urgencies, default=None)

    def _comes(self, number: int, job: AnyJob) -> int:
        urgency = self._random.choice([COMPLETION, COMPLETION, EDIT, PREFETCH])
        frame = {"op": job.operation, "kind": job.operation, "job": to_json(job), "id": number}
        client = self._random.choice("abcd")
        self._loop._received({**frame, "client": client, "urgency": urgency})
        return urgency

    def planned(self, asked: Sequence[tuple[int, Forward]]) -> list[list[Forward]]:
        """The service's plan, checked; a random part of it."""
        wanted = {id(forward): (urgency, forward.rows) for urgency, forward in asked}
        groups = self._service.planned(asked)
        assert groups
        for group in groups:
            assert len(group) == len({id(forward) for forward in group})
            self._check_plan(group, wanted)
            if self._cuts_plans:
                self._random.shuffle(group)
                del group[self._random.randint(1, len(group)) :]
                for forward in group:
                    forward.rows = self._random.randint(forward.least, forward.rows)
        return groups

    def _check_plan(self, group: list[Forward], wanted: dict[int, tuple[int, int]]) -> None:
        urgency = {id(forward): wanted[id(forward)][0] for forward in group}
        for forward in group:
            assert forward.least <= forward.rows <= wanted[id(forward)][1]
            assert forward.rows <= PREFILL_ROWS[0]
        most_urgent = min(each for each, _ in wanted.values())
        urgent = [forward for forward in group if urgency[id(forward)] == most_urgent]
        assert urgent, "nobody waits for those who are less urgent"
        assert sum(forward.is_prompt for forward in urgent) <= 1
        assert self._seconds(group) <= LENGTHENED * self._seconds(urgent) or group == urgent

    def _seconds(self, group: list[Forward]) -> float:
        rows = sum(forward.rows for forward in group)
        context = sum(forward.rows * forward.session.length for forward in group) // rows
        engines = self._service.model.engines
        (engine,) = (each for each in engines if each.model is group[0].model)
        return engine.planner.costs.prefill_seconds(rows, context)

    def compute(self, forwards: Sequence[Forward]) -> Iterator[tuple[Forward, Any]]:
        """Compute, while something may happen: a forward ends early where that is for somebody more
        urgent than all others in it, and is given to those who asked for it."""
        jobs = {id(job.forward): job for job in self._loop._computed}
        is_ended = self._is_ended_by_what_happens() if self._random.random() < 0.5 else False
        self.shared += len(forwards) > 1
        self.interrupted += is_ended
        for forward, found in self._service.compute(forwards):
            assert isinstance(found, Interrupted) == is_ended
            yield forward, found
            assert jobs[id(forward)].forward is not forward, "what was computed was not taken"

    def _is_ended_by_what_happens(self) -> bool:
        computed = list(self._loop._computed)
        urgency = self._happens()
        rest = [job.priority for job in computed if not job.cancel.is_set()]
        return urgency is not None and all(priority > urgency for priority in rest)

    def _written(self, frame: dict[str, Any]) -> None:
        if frame["event"] == "error":
            self.texts[frame["id"]] = f"{frame['kind']}: {frame['message']}"
        elif frame["event"] == "result" and (result := frame["result"]) is not None:
            texts = self.cut if result["stopped_by"] == "cancelled" else self.texts
            texts[frame["id"]] = result["text"]


def check(service: EngineService, seed: int, count: int, interleavings: int) -> None:
    random_jobs = random.Random(seed)
    jobs = any_jobs(random_jobs, count)
    alone = {number: text_alone(service, job) for number, job in enumerate(jobs)}
    assert len(set(alone.values())) > count // 2
    several = [alone[n] for n, job in enumerate(jobs) if job.max_tokens == DRAWN_TOKENS]
    assert len(set(several)) > len(several) // 2, "a seed draws a text of its own"
    shared = interrupted = 0
    for more in range(interleavings):
        doomed = {number for number in alone if random_jobs.random() < 0.15}
        interleaved = Interleaved(service, seed + more)
        interleaved.run(jobs, doomed)
        shared, interrupted = shared + interleaved.shared, interrupted + interleaved.interrupted
        assert set(alone) - doomed <= set(interleaved.texts)
        for number, text in interleaved.texts.items():
            assert text == alone[number], f"seed {seed + more}, job {number}: {jobs[number]}"
        for number, text in interleaved.cut.items():
            if not isinstance(jobs[number], EditJob):
                assert alone[number].startswith(text), f"seed {seed + more}, cut job {number}"
    assert shared > count * interleavings // 2
    assert interrupted > 0


def widened_draft(folder: Path) -> Path:
    """A model of three million parameters that writes what the small draft writes: its inner layers
    get zeros up to a width that our forward computes."""
    shutil.copytree(SMALL_DRAFT, folder)
    shutil.copy(SMALL_MODEL / "chat_template.jinja", folder)
    config = json.loads((folder / "config.json").read_text())
    more = -config["intermediate_size"] % BLOCK
    config["intermediate_size"] += more
    (folder / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    for name, tensor in weights.items():
        if "mlp" in name:
            rows, columns = (0, more) if "down" in name else (more, 0)
            weights[name] = pad(tensor, (0, columns, 0, rows))
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineService]:
    """A model that computes quickly, loaded, with memory for few caches."""
    folder = widened_draft(tmp_path_factory.mktemp("quick") / "model")
    keep_costs(folder)
    made = EngineService(
        EngineOptions(path=str(folder), dtype=DTYPE, threads=THREADS, common=False)
    )
    made.load()
    hold_costs(made.model.engines)
    made.engine.kv_budget = KV_BUDGET
    assert made.slots > 1
    yield made
    made.close()


@pytest.fixture(scope="module")
def drafting() -> Iterator[EngineService]:
    """A model whose edits a smaller one drafts."""
    keep_costs(SMALL_MODEL)
    options = EngineOptions(
        path=str(SMALL_MODEL), dtype=DTYPE, threads=THREADS, common=False,
        draft_model=str(SMALL_DRAFT),
    )  # fmt: skip
    made = EngineService(options)
    made.load()
    hold_costs(made.model.engines)
    yield made
    made.close()


@pytest.fixture
def dropped(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every cache that is dropped, whether its request is under way."""
    noted: list[bool] = []
    drop = Session.drop

    def noted_drop(session: Session) -> None:
        noted.append(session.is_used)
        drop(session)

    monkeypatch.setattr(Session, "drop", noted_drop)
    return noted


@pytest.mark.parametrize("seed", range(2))
def test_interleaved_jobs_write_what_each_writes_alone(
    quick: EngineService, dropped: list[bool], seed: int, amount: Amount
) -> None:
    check(quick, 1000 * seed, amount(24, 200), amount(3, 50))
    assert dropped
    assert not any(dropped), "no cache goes whose request is under way"


def test_beside_edits_that_take_likely_tokens_all_others_write_their_own(
    drafting: EngineService,
) -> None:
    words = "", "area.py", "Write the loop as a while loop", FUNCTION
    exact = [EditJob(*words, language="python", max_tokens=60)]
    exact.append(replace(exact[0], instruction="Add error handling and logging"))
    lossy = [replace(job, entropy_k=8) for job in exact]
    alone = [text_alone(drafting, job) for job in exact]
    assert [text_alone(drafting, job) for job in lossy] != alone
    for seed in range(3):
        interleaved = Interleaved(drafting, seed)
        interleaved.run([*exact, *lossy], set())
        assert [interleaved.texts[number] for number in range(2)] == alone, f"seed {seed}"
        assert interleaved.shared > 0
    with pytest.raises(InvalidRequest, match="set temperature to 0"):
        drafting.write(replace(lossy[0], temperature=0.5))


def test_what_is_computed_ahead_lengthens_no_forward_that_somebody_waits_for(
    service: EngineService,
) -> None:
    work = [service.steps(job, lambda: False) for job in any_jobs(random.Random(3), 2)]
    first, second = (next(one) for one in work)
    assert isinstance(first, Forward)
    assert isinstance(second, Forward)
    assert service.planned([(EDIT, first), (PREFETCH, second)]) == [[first]]
    assert service.planned([(EDIT, first), (PREFILL, second)]) == [[first]]
    assert service.planned([(PREFILL, second)]) == [[second]]
    for one in work:
        one.close()


def test_the_loop_gives_many_clients_the_texts_of_each_alone(service: EngineService) -> None:
    random_jobs = random.Random(9)
    jobs = any_jobs(random_jobs, 12)
    alone = [text_alone(service, job) for job in jobs]
    incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
    outgoing: queue.Queue[dict[str, Any]] = queue.Queue()
    loop = EngineLoop(service, incoming.get, outgoing.put)
    rows: list[int] = []
    compute = service.compute

    def noted(forwards: Any) -> Any:
        rows.append(len(forwards))
        return compute(forwards)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(service, "compute", noted)
        patch.setattr(service, "close", lambda: None)
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
