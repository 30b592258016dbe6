"""The decode loop: urgency, turns, cancel between forwards, errors. No model."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from accel.errors import Interrupted
from lsp_server.engine import scheduler as engine_loop
from lsp_server.engine.scheduler import EngineLoop
from lsp_server.engine.turns import MOST_NOTED, Turns
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    EDIT,
    PREFETCH,
    CompletionJob,
    EditJob,
    JobResult,
    Span,
)
from lsp_server.shared.contract.notes import CloseBuffer, Note, note_frame
from lsp_server.shared.contract.status import EngineStatus

FORWARD_S = 0.002
WAIT_S = 60.0
CLOSED = CloseBuffer("/w", "a.py")
HELD = 100
"""The number of a job whose first forward is held."""


class NamedForward:
    """A forward that is asked for by the job of this name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rows = 3


class SlowService:
    """Each forward takes a moment; ``order`` notes who had the turn, ``together`` all of each
    forward. A job writes its name after each."""

    kv_bytes = 0

    def __init__(self, forwards: int = 50, slots: int = 1) -> None:
        self.order: list[str] = []
        self.together: list[list[str]] = []
        self.forwards = forwards
        self.slots = slots
        self.loaded = threading.Event()
        self.told: list[Note] = []
        self.fail_load = False
        self.interrupted = 0
        self.holds, self.released = threading.Event(), threading.Event()
        self.released.set()

    def load(self, told: Callable[[str], None]) -> None:
        if self.fail_load:
            raise ValueError("no such\nmodel")
        told("compiling: 1 of 2 parts")

    def steps(self, job: CompletionJob | EditJob, cancelled: Callable[[], bool]) -> Any:
        return self._steps(job.path, cancelled)

    def _steps(self, name: str, cancelled: Callable[[], bool]) -> Any:
        if name == "broken":
            raise ValueError("broken\njob")
        for number in range(self.forwards):
            if cancelled():
                return result(name * number, "cancelled")
            try:
                yield NamedForward(name)
            except Interrupted:
                continue
            yield [Span(name, "model")]
        return result(name * self.forwards, "length")

    def planned(self, asked: list[tuple[int, NamedForward]]) -> list[list[NamedForward]]:
        return [[forward for _, forward in asked]]

    def compute(self, forwards: list[NamedForward]) -> Iterator[tuple[NamedForward, None]]:
        time.sleep(FORWARD_S)
        names = [forward.name for forward in forwards]
        if "held" in names:
            self.holds.set()
            assert self.released.wait(WAIT_S)
        self.order += names
        self.together.append(names)
        for forward in forwards:
            yield forward, None

    def prefill_steps(self, job: Any, cancelled: Callable[[], bool]) -> Any:
        yield from ()
        return result("", "length")

    def tell(self, note: Note) -> None:
        self.told.append(note)

    def status(self) -> EngineStatus:
        return EngineStatus("ready", model="fake")

    def interrupt(self) -> None:
        self.interrupted += 1

    def warm_up(self, interrupted: Callable[[], bool]) -> None:
        self.order.append("warmed")

    def keep_costs(self) -> bool:
        self.order.append("costs")
        return True

    def save_caches(self, interrupted: Callable[[], bool]) -> None:
        self.order.append("interrupted" if interrupted() else "kept")

    def rest(self) -> None:
        self.order.append("rested")

    def close(self) -> None:
        self.order.append("closed")


def result(text: str, stopped_by: str) -> JobResult:
    return JobResult(text, [Span(text, "model")], len(text), len(text), 0.0, 0.0, {}, stopped_by)


class Harness:
    """A loop on a thread, with queues in place of pipes."""

    def __init__(self, service: SlowService) -> None:
        self.service = service
        self.incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.outgoing: queue.Queue[dict[str, Any]] = queue.Queue()
        self.takes_one = False
        loop = EngineLoop(service, self._read, self.outgoing.put)
        self.loop = loop
        self.thread = threading.Thread(target=loop.run, daemon=True)
        self.thread.start()
        self.seen: list[dict[str, Any]] = []

    def _read(self) -> dict[str, Any] | None:
        """The next frame; the loop has taken the one before, which counts as done."""
        if self.takes_one:
            self.incoming.task_done()
        frame = self.incoming.get()
        self.takes_one = True
        return frame

    def ask(
        self,
        number: int,
        path: str,
        priority: int = COMPLETION,
        client: str = "a",
        patience_s: float = 0.0,
        connection: str | None = None,
        heard: bool = True,
    ) -> None:
        job = {"workspace": "", "path": path, "patience_s": patience_s, "connection": connection}
        if priority == EDIT:
            frame = {
                "op": "edit",
                "kind": "edit",
                "job": {**job, "instruction": "i", "selection": "s"},
            }
        else:
            frame = {
                "op": "complete",
                "kind": "complete",
                "job": {**job, "prefix": "", "suffix": ""},
            }
        told = {"client": client, "urgency": priority, "heard": heard}
        self.incoming.put({**frame, "id": number, **told})

    def ask_batch(self, numbers: range, batch: str = "one") -> None:
        """Several jobs of one request."""
        for number in numbers:
            job = {"path": f"{batch}{number}", "text": "x", "batch": batch}
            frame = {"op": "generate", "kind": "generate", "job": job, "id": number}
            self.incoming.put({**frame, "client": "a", "urgency": EDIT})

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            frame = self.outgoing.get(timeout=WAIT_S)
            self.seen.append(frame)
            if wanted(frame):
                return frame

    def status(self, state: str) -> dict[str, Any]:
        frame = self.until(lambda frame: frame.get("status", {}).get("state") == state)
        return dict(frame["status"])

    def end_of(self, number: int) -> dict[str, Any]:
        ends = ("result", "error")
        for frame in self.seen:
            if frame.get("id") == number and frame["event"] in ends:
                return frame
        return self.until(lambda frame: frame.get("id") == number and frame["event"] in ends)

    def begun(self, number: int) -> None:
        self.until(lambda frame: frame.get("id") == number and frame["event"] == "spans")

    @contextmanager
    def holding(self, priority: int = COMPLETION, number: int = HELD) -> Iterator[None]:
        """A job's first forward lasts until all is taken that comes within the block."""
        service = self.service
        service.holds.clear()
        service.released.clear()
        self.ask(number, "held", priority)
        assert service.holds.wait(WAIT_S)
        yield
        self.incoming.join()
        service.released.set()

    def close(self) -> None:
        self.incoming.put({"op": "end"})
        self.thread.join(WAIT_S)
        assert not self.thread.is_alive()


def wait_until(is_so: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.001)


@pytest.fixture
def harness() -> Iterator[Harness]:
    made = Harness(SlowService())
    yield made
    made.close()


def test_a_job_streams_and_ends(harness: Harness) -> None:
    harness.ask(1, "x")
    assert harness.end_of(1)["result"]["text"] == "x" * 50
    spans = [frame for frame in harness.seen if frame["event"] == "spans"]
    assert len(spans) == 50


def test_what_nobody_hears_is_not_told_on_the_way(harness: Harness) -> None:
    harness.ask(1, "x", heard=False)
    assert harness.end_of(1)["result"]["text"] == "x" * 50
    assert not [frame for frame in harness.seen if frame["event"] == "spans"]


def test_a_completion_goes_between_the_forwards_of_an_edit(harness: Harness) -> None:
    harness.ask(1, "e", EDIT)
    harness.begun(1)
    harness.ask(2, "c")
    harness.end_of(2)
    order = harness.service.order
    first, last = order.index("c"), len(order) - order[::-1].index("c")
    assert set(order[first:last]) == {"c"}, "the completion ran without a break"
    assert harness.end_of(1)["result"]["text"] == "e" * 50


def test_an_edit_goes_before_what_is_fetched_ahead(harness: Harness) -> None:
    with harness.holding(PREFETCH):
        harness.ask(2, "e", EDIT)
    harness.end_of(2)
    assert len([name for name in harness.service.order if name == "held"]) < 50
    assert harness.end_of(HELD)["result"]["stopped_by"] == "length"


@pytest.fixture
def shared() -> Iterator[Harness]:
    """A model that computes eight requests together."""
    made = Harness(SlowService(slots=8))
    yield made
    made.close()


def test_jobs_join_and_leave_with_every_forward(shared: Harness) -> None:
    service = shared.service
    with shared.holding():
        for number in range(1, 4):
            shared.ask(number, "xyz"[number - 1], COMPLETION, "abc"[number - 1])
    for number in (HELD, 1, 2, 3):
        assert shared.end_of(number)["result"]["stopped_by"] == "length"
    assert service.together[0] == ["held"]
    assert sorted(service.together[1]) == ["held", "x", "y", "z"]
    assert len(service.together) == 51, "all that were asked meanwhile shared the forwards"
    assert sorted(service.together[-1]) == ["x", "y", "z"]


def test_no_more_share_a_forward_than_have_slots(shared: Harness) -> None:
    with shared.holding():
        for number in range(1, 12):
            shared.ask(number, "x", COMPLETION, str(number))
    for number in range(1, 12):
        assert shared.end_of(number)["result"]["text"] == "x" * 50
    assert max(map(len, shared.service.together)) == 8


def test_who_waits_too_long_beside_shared_forwards_is_refused(shared: Harness) -> None:
    with shared.holding():
        for number in range(1, 12):
            shared.ask(number, "x", COMPLETION, str(number), patience_s=1e-6)
    ends = [shared.end_of(number) for number in range(1, 12)]
    assert [end["event"] for end in ends] == ["result"] * 7 + ["error"] * 4
    assert {end["kind"] for end in ends[7:]} == {"EngineBusy"}
    assert shared.end_of(HELD)["result"]["stopped_by"] == "length"


def test_where_jobs_are_computed_one_by_one_nobody_is_refused(harness: Harness) -> None:
    with harness.holding():
        harness.ask(1, "x", patience_s=1e-6)
    assert harness.end_of(1)["result"]["text"] == "x" * 50


def test_the_newest_job_of_a_document_goes_first(harness: Harness) -> None:
    with harness.holding():
        for number, path in ((1, "x"), (2, "y"), (3, "x")):
            harness.ask(number, path)
    for number in (1, 2, 3):
        harness.end_of(number)
    ends = [frame["id"] for frame in harness.seen if frame["event"] == "result"]
    assert ends == [HELD, 3, 2, 1]


def test_a_result_says_what_company_its_forwards_had(shared: Harness) -> None:
    with shared.holding():
        shared.ask(1, "x", COMPLETION, "b")
    results = [shared.end_of(number)["result"] for number in (HELD, 1)]
    # The first forward was the held job's alone, the last one the other's.
    assert [one["batched_requests"] for one in results] == [99, 99]
    assert [one["batched_rows"] for one in results] == [150, 150]


def test_a_shared_forward_is_interrupted_only_where_nobody_as_urgent_is_in_it(
    shared: Harness,
) -> None:
    service = shared.service
    shared.ask(1, "e", EDIT, "b")
    shared.ask(2, "f", EDIT, "c")
    shared.begun(1)
    shared.begun(2)
    with shared.holding(EDIT):
        shared.incoming.put({"op": "cancel", "id": 2})
        shared.incoming.put(note_frame(CLOSED))
        shared.incoming.join()
        assert service.interrupted == 0, "others as urgent would lose their forward"
        shared.ask(4, "c", COMPLETION, "d")
        wait_until(lambda: service.interrupted == 1)
    assert shared.end_of(2)["result"]["stopped_by"] == "cancelled"
    for number in (1, HELD, 4):
        assert shared.end_of(number)["result"]["stopped_by"] == "length"


def test_a_forward_in_which_all_are_cancelled_is_interrupted(shared: Harness) -> None:
    shared.service.forwards = 100_000
    shared.ask(1, "x")
    shared.begun(1)
    with shared.holding():
        for number in (1, HELD):
            assert shared.service.interrupted == 0
            shared.incoming.put({"op": "cancel", "id": number})
            shared.incoming.join()
    assert shared.service.interrupted == 1
    for number in (1, HELD):
        assert shared.end_of(number)["result"]["stopped_by"] == "cancelled"


def test_jobs_of_one_request_begin_when_the_first_has_computed_the_prompt(shared: Harness) -> None:
    with shared.holding():
        shared.ask_batch(range(1, 5))
    for number in range(1, 5):
        assert shared.end_of(number)["result"]["stopped_by"] == "length"
    assert shared.service.together[1] == ["held", "one1"]
    assert sorted(shared.service.together[2]) == ["held", "one1", "one2", "one3", "one4"]


def test_no_more_jobs_of_one_request_are_under_way_than_share_a_forward(shared: Harness) -> None:
    """Others would hold memory for prompts of which none is computed."""
    with shared.holding():
        shared.ask_batch(range(1, 21))
    for number in range(1, 21):
        assert shared.end_of(number)["result"]["stopped_by"] == "length"
    forwards: Counter[str] = Counter()
    for names in shared.service.together:
        forwards.update(name for name in names if name != "held")
        assert sum(count < shared.service.forwards for count in forwards.values()) <= 8


def test_jobs_of_one_request_go_on_without_the_first(shared: Harness) -> None:
    with shared.holding():
        shared.ask_batch(range(1, 4))
        shared.incoming.put({"op": "cancel", "id": 1})
    for number in (2, 3):
        assert shared.end_of(number)["result"]["stopped_by"] == "length"
    assert "one1" not in shared.service.order


def test_edits_take_turns(harness: Harness) -> None:
    with harness.holding():
        harness.ask(1, "e", EDIT, "a")
        harness.ask(2, "f", EDIT, "b")
    harness.end_of(1)
    harness.end_of(2)
    order = [name for name in harness.service.order if name in "ef"]
    assert order[10:90].count("e") in range(35, 46)


def test_clients_take_turns_with_their_completions(harness: Harness) -> None:
    with harness.holding():
        for number in range(1, 5):
            harness.ask(number, "abcd"[number - 1], COMPLETION, "busy")
        harness.ask(9, "z", COMPLETION, "quiet")
    for number in (9, 1, 2, 3, 4):
        harness.end_of(number)
    order = harness.service.order
    assert order.index("z") < order.index("c"), "a second client waits for one of the first's"


class PromptService(SlowService):
    """A forward computes a chunk of one prompt. A short prompt is one chunk, others are many; after
    the first chunks it waits for what comes next."""

    HELD = 6

    def _steps(self, name: str, cancelled: Callable[[], bool]) -> Any:
        for _ in range(1 if name.startswith("short") else self.forwards):
            yield NamedForward(name)
        yield [Span(name, "model")]
        return result(name, "end")

    def planned(self, asked: list[tuple[int, NamedForward]]) -> list[list[NamedForward]]:
        most_urgent = min(urgency for urgency, _ in asked)
        return [[next(forward for urgency, forward in asked if urgency == most_urgent)]]

    def compute(self, forwards: list[NamedForward]) -> Iterator[tuple[NamedForward, None]]:
        if len(self.together) == self.HELD:
            self.holds.set()
            assert self.released.wait(WAIT_S)
        yield from super().compute(forwards)


@dataclass(frozen=True)
class Asked:
    """A request of a key by a connection."""

    key: str
    connection: str | None = None
    urgency: int = COMPLETION


LONG_AND_SHORT: dict[str, tuple[list[Asked], Asked, int]] = {
    "one key": ([Asked("a", "1")], Asked("a", "2"), 1),
    "one connection": ([Asked("a", "1")], Asked("a", "1"), 1),
    "no connections": ([Asked("a")], Asked("a"), 1),
    "two keys": ([Asked("a", "1")], Asked("b", "2"), 1),
    "three of one key": ([Asked("a", one) for one in "123"], Asked("a", "4"), 1),
    "three of one connection": ([Asked("a", "1")] * 3, Asked("a", "2"), 1),
    "a busy connection of the same key": ([Asked("a", "1"), Asked("a", "2")], Asked("a", "1"), 2),
    "another key is busy, too": ([Asked("a", "1"), Asked("b", "2")], Asked("a", "3"), 2),
    "a new key": ([Asked("a", "1"), Asked("b", "2")], Asked("c", "3"), 1),
    "four keys": ([Asked(key, key) for key in "abcd"], Asked("a", "5"), 4),
    "long texts": ([Asked("a", "1", EDIT), Asked("a", "2", EDIT)], Asked("a", "1"), 1),
    "all are long texts": ([Asked("a", "1", EDIT)] * 2, Asked("a", "2", EDIT), 1),
    "fetched ahead": ([Asked("a", "1", PREFETCH)] * 3, Asked("a", "1", EDIT), 1),
}
"""Who has long prompts, who a short one, and within how many chunks that is computed."""


@pytest.mark.parametrize("slots", [1, 8])
@pytest.mark.parametrize("name", LONG_AND_SHORT)
def test_a_short_prompt_waits_for_a_turn_of_those_that_take_turns(name: str, slots: int) -> None:
    longs, short, within = LONG_AND_SHORT[name]
    service = PromptService(forwards=30, slots=slots)
    service.released.clear()
    harness = Harness(service)
    for number, asked in enumerate(longs, 1):
        harness.ask(
            *(number, f"long{number}", asked.urgency, asked.key), connection=asked.connection
        )
    assert service.holds.wait(WAIT_S)
    harness.ask(99, "short", short.urgency, short.key, connection=short.connection)
    harness.incoming.join()
    service.released.set()
    for number in (99, *range(1, len(longs) + 1)):
        assert harness.end_of(number)["result"]["stopped_by"] == "end"
    # One chunk was under way.
    after = service.order[PromptService.HELD + 1 :]
    assert after.index("short") < within, after
    harness.close()


def test_short_prompts_one_after_another_leave_turns_to_a_long_one() -> None:
    for key in ("b", "c"):
        service = PromptService(forwards=30, slots=8)
        harness = Harness(service)
        service.HELD = -1
        with harness.holding():
            harness.ask(1, "long", COMPLETION, "b", connection="1")
            for number in range(2, 7):
                harness.ask(number, f"short{number}", COMPLETION, key, connection="2")
        for number in range(1, 7):
            harness.end_of(number)
        turns = [name for name in service.order if name != "held"]
        last = max(turns.index(f"short{number}") for number in range(2, 7))
        assert turns[:last].count("long") >= 4, turns
        harness.close()


def test_of_clients_that_came_long_ago_nothing_is_known() -> None:
    turns = Turns()
    for number in range(3 * MOST_NOTED):
        turns.note("a", str(number))
    assert len(turns._last) <= MOST_NOTED
    assert turns.last("a", "0")[1] == 0
    assert turns.last("a", str(3 * MOST_NOTED - 1))[1] == turns.last("a", "0")[0] > 0


def test_cancel_stops_within_a_forward(harness: Harness) -> None:
    for number in range(1, 21):
        harness.service.order.clear()
        with harness.holding(number=number):
            harness.incoming.put({"op": "cancel", "id": number})
        assert harness.end_of(number)["result"]["stopped_by"] == "cancelled"
        assert harness.service.order == ["held"], "the forward that ran when it was cancelled"


def test_a_forward_is_interrupted_for_a_cancel_and_for_what_is_more_urgent(
    harness: Harness,
) -> None:
    """And for nothing else: it would begin again."""
    service = harness.service
    with harness.holding(EDIT):
        harness.incoming.put(note_frame(CLOSED))
        harness.ask(2, "f", EDIT)
        harness.ask(3, "c", COMPLETION)
        wait_until(lambda: service.interrupted == 1)
        harness.incoming.put({"op": "cancel", "id": 2})
        harness.incoming.put({"op": "cancel", "id": HELD})
        wait_until(lambda: service.interrupted == 2)
    assert harness.end_of(HELD)["result"]["stopped_by"] == "cancelled"


def test_a_cancel_says_how_long_it_waited_for_the_forward(harness: Harness) -> None:
    with harness.holding():
        harness.incoming.put({"op": "cancel", "id": HELD})
    assert harness.end_of(HELD)["forward_s"] > 0
    harness.ask(2, "y")
    assert harness.end_of(2)["forward_s"] == 0


def test_the_service_rests_once_when_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_loop, "KEEP_COSTS_S", 0.01)
    monkeypatch.setattr(engine_loop, "SAVE_CACHES_S", 0.02)
    monkeypatch.setattr(engine_loop, "REST_S", 0.03)
    harness = Harness(SlowService(forwards=2))
    for number in (1, 2):
        harness.ask(number, "x")
        harness.end_of(number)
        deadline = time.monotonic() + WAIT_S
        while harness.service.order.count("rested") < number:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1)
        assert harness.service.order.count("rested") == number
        assert harness.service.order[-3:] == ["costs", "kept", "rested"]
    harness.close()


def test_what_forwards_cost_is_kept_after_the_first_answer_and_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine_loop, "KEEP_COSTS_S", 0.0)
    monkeypatch.setattr(engine_loop, "SAVE_CACHES_S", 0.01)
    harness = Harness(SlowService(forwards=2))
    harness.status("ready")
    deadline = time.monotonic() + WAIT_S
    while "kept" not in harness.service.order:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert "costs" not in harness.service.order
    harness.ask(1, "x")
    harness.end_of(1)
    assert harness.status("ready")["model"] == "fake"
    assert "costs" in harness.service.order
    harness.close()


def test_what_changes_by_itself_is_told(harness: Harness) -> None:
    harness.status("ready")
    harness.service.on_change()
    told = harness.status("ready")
    assert told["model"] == "fake"


def test_a_cancelled_job_does_not_wait_for_a_more_urgent_one(harness: Harness) -> None:
    """It ends without a forward, and who cancelled it may wait for that."""
    harness.ask(1, "p", PREFETCH)
    harness.begun(1)
    harness.ask(2, "c")
    harness.begun(2)
    harness.incoming.put({"op": "cancel", "id": 1})
    assert harness.end_of(1)["result"]["stopped_by"] == "cancelled"
    assert not any(frame.get("id") == 2 and frame["event"] == "result" for frame in harness.seen)
    assert harness.end_of(2)["result"]["text"] == "c" * 50


def test_what_is_cancelled_before_it_begins_costs_nothing(harness: Harness) -> None:
    harness.ask(1, "x")
    harness.begun(1)
    harness.ask(2, "y")
    harness.incoming.put({"op": "cancel", "id": 2})
    assert harness.end_of(2)["result"] is None
    assert "y" not in harness.service.order


def test_a_cancelled_edit_is_not_resumed_by_a_completion(harness: Harness) -> None:
    harness.ask(1, "e", EDIT)
    harness.begun(1)
    harness.incoming.put({"op": "cancel", "id": 1})
    harness.ask(2, "c")
    harness.end_of(1)
    harness.end_of(2)
    order = harness.service.order
    assert "e" not in order[order.index("c") :]


def test_a_failing_job_is_one_error_of_one_line(harness: Harness) -> None:
    harness.ask(1, "broken")
    end = harness.end_of(1)
    assert (end["event"], end["message"], end["kind"]) == ("error", "broken job", "ValueError")
    harness.ask(2, "x")
    assert harness.end_of(2)["event"] == "result"


def test_a_job_that_cannot_be_read_is_answered_with_its_problem(harness: Harness) -> None:
    asked = {"op": "complete", "kind": "complete", "id": 1, "client": "a", "urgency": COMPLETION}
    harness.incoming.put({**asked, "job": {"path": "a.py"}})
    end = harness.end_of(1)
    assert (end["event"], end["kind"]) == ("error", "Unreadable")
    assert "prefix: is missing" in end["message"]
    harness.ask(2, "x")
    assert harness.end_of(2)["event"] == "result"


def test_notes_are_taken_while_a_job_runs(harness: Harness) -> None:
    harness.ask(1, "x")
    harness.begun(1)
    for frame in ({"op": "bad"}, {"op": "close_buffer"}, note_frame(CLOSED)):
        harness.incoming.put(frame)
    wait_until(lambda: harness.service.told == [CLOSED])
    assert 1 in harness.loop._jobs, "the job goes on"
    assert harness.end_of(1)["event"] == "result"


def test_stray_cancels_are_ignored(harness: Harness) -> None:
    for number in range(1000):
        harness.incoming.put({"op": "cancel", "id": number})
    harness.ask(1, "x")
    assert harness.end_of(1)["event"] == "result"


def test_a_model_that_cannot_be_loaded_is_told_and_ends_the_process() -> None:
    service = SlowService()
    service.fail_load = True
    harness = Harness(service)
    failed = harness.status("failed")
    assert failed["message"] == "no such model"
    harness.thread.join(WAIT_S)
    assert not harness.thread.is_alive()


def test_the_end_stops_a_running_job() -> None:
    harness = Harness(SlowService(100_000))
    harness.ask(1, "x")
    harness.begun(1)
    harness.close()
    assert harness.service.order[-1] == "closed"
