"""A text that is far too long is refused before it is cut into tokens, and a long one is cut while
others decode."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace
from typing import Any

import pytest

from accel.errors import AccelError, PromptTooLong
from accel.text.token_counts import CHARACTERS, tokens_beyond
from accel.text.tokenizer import Tokenizer
from lsp_server.engine.scheduler import EngineLoop
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.contract.jobs import (
    COMPLETION,
    AnyJob,
    CompletionJob,
    ContextSnippet,
    EditJob,
    GenerateJob,
)
from lsp_server.tasks import steps as engine_steps
from lsp_server.tasks.steps import LONG_CHARACTERS, Aside, in_place

WAIT_S = 120.0
LINE = "2026-11-28 00:29:26,{0} INFO server.worker: request {0} answered; cache 0x{0:x}\n"
LOG = "".join(map(LINE.format, range(20_000)))
CODE = "".join(f"def step_{n}(value):\n    return value * {n}\n\n\n" for n in range(30_000))
ONE_LINE = LOG.replace("\n", " ")
TOO_LONG: dict[str, AnyJob] = {
    "a log": GenerateJob(text=LOG, max_tokens=2),
    "code": GenerateJob(text=CODE, max_tokens=2),
    "one word": GenerateJob(text="x" * len(LOG), max_tokens=2),
    "one letter over and over, with blanks": GenerateJob(text="a " * len(LOG), max_tokens=2),
    "no English": GenerateJob(text="語を数える。" * 100_000, max_tokens=2),
    "nothing that is shown": GenerateJob(text="\0" * len(LOG), max_tokens=2),
    "tokens": GenerateJob(tokens=[5] * 1_000_000, max_tokens=2),
    "a question": GenerateJob(messages=[("user", LOG)], max_tokens=2),
    "an answer before": GenerateJob(messages=[("user", "a"), ("assistant", LOG)], max_tokens=2),
    "many questions": GenerateJob(messages=[("user", "a"), ("assistant", "b")] * 50_000),
    "pieces": GenerateJob(pieces=[("<a>", False), (LOG, True)], max_tokens=2),
    "the prompt alone": GenerateJob(text=LOG, max_tokens=0),
    "an instruction": EditJob("", "a.py", LOG, "x = 1\n"),
    "a selection of one line": EditJob("", "a.py", "make it short", ONE_LINE),
}
CUT: dict[str, AnyJob] = {
    "before a hole": GenerateJob(text=LOG, suffix="\n", max_tokens=2),
    "after a hole": GenerateJob(text="a = ", suffix=LOG, max_tokens=2),
    "a file beside a hole": GenerateJob(
        *("", "a.py", "a = "), suffix="\n", snippets=[ContextSnippet("b.py", LOG)], max_tokens=2
    ),
    "before a cursor": CompletionJob("", "a.py", LOG, "\n", max_tokens=2),
    "after a cursor": CompletionJob("", "a.py", "a = ", LOG, max_tokens=2),
    "an open file": CompletionJob(
        *("", "a.py", "a = ", "\n"),
        snippets=[ContextSnippet("b.py", LOG)],
        context_tokens=200,
        max_tokens=2,
    ),
    "a prediction": GenerateJob(text="a = ", prediction=LOG, max_tokens=2),
    "before a selection": EditJob("", "a.py", "loud", "x = 1\n", before=LOG, max_tokens=2),
    "after a selection": EditJob("", "a.py", "loud", "x = 1\n", after=LOG, max_tokens=2),
}
"""Jobs of which as much is read as fits."""


@pytest.fixture
def cut(service: EngineService, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters are cut into tokens, call by call."""
    noted: list[int] = []
    encode, beginning = Tokenizer.encode, Tokenizer.encode_beginning

    def noted_encode(self: Tokenizer, text: str) -> Any:
        noted.append(len(text))
        return encode(self, text)

    def noted_beginning(self: Tokenizer, text: str, *, is_first: bool = False) -> Any:
        if self.reads_blanks:
            noted.append(len(text))
        return beginning(self, text, is_first=is_first)

    service.load()
    monkeypatch.setattr(Tokenizer, "encode", noted_encode)
    monkeypatch.setattr(Tokenizer, "encode_beginning", noted_beginning)
    return noted


@pytest.mark.parametrize("name", TOO_LONG)
def test_what_is_far_too_long_is_refused_by_a_beginning(
    service: EngineService, cut: list[int], name: str
) -> None:
    with pytest.raises(PromptTooLong, match="tokens"):
        service.write(TOO_LONG[name])
    assert sum(cut) <= 2 * CHARACTERS * service.engine.max_positions


@pytest.mark.parametrize("name", CUT)
def test_of_texts_around_a_place_no_more_is_cut_into_tokens_than_is_read(
    service: EngineService, cut: list[int], name: str
) -> None:
    written = service.write(CUT[name])
    assert written.tokens <= 2
    assert 0 < written.prompt_tokens < service.engine.max_positions
    assert sum(cut) <= 8 * CHARACTERS * service.engine.max_positions < len(LOG) * 2


def test_no_text_is_refused_that_fits(service: EngineService) -> None:
    """Whatever a text is made of, none is thought to have more tokens than it has."""
    tokenizer = service.engine.tokenizer
    longest = max(range(tokenizer.vocabulary_size), key=lambda n: len(tokenizer.bytes_of(n)))
    texts = [CODE[:60_000], LOG[:60_000], " " * 60_000, "x" * 60_000, "語を数える。" * 9_000]
    texts += ["\n" * 60_000, tokenizer.decode([longest] * 2_000), "<|endoftext|>" * 3_000]
    for text in texts:
        count = len(tokenizer.encode_prompt(text))
        for most in (count, count - 1, count // 2, count // 9):
            assert tokens_beyond(tokenizer, [text], most) <= count
        assert not tokens_beyond(tokenizer, [text], count), text[:20]
        assert tokens_beyond(tokenizer, [text], count // 40), text[:20]


def test_long_texts_are_cut_as_short_ones_are(service: EngineService) -> None:
    """A text of more characters is cut into tokens by another function of the library."""
    tokenizer = service.engine.tokenizer
    texts = [CODE[:9_000], LOG[:9_000], "語を数える。" * 2_000, " " * 9_000]
    for text in (*texts, "<|endoftext|>" * 900):
        expected = tokenizer.fast.encode(text, add_special_tokens=False).ids
        assert tokenizer.encode(text).tolist() == expected


LONG = CODE[:LONG_CHARACTERS] + "\n"
ASIDE: dict[str, AnyJob] = {
    "a text": GenerateJob(text=LONG, max_tokens=2),
    "a question": GenerateJob(messages=[("user", LONG)], max_tokens=2),
    "many tokens": GenerateJob(tokens=[5] * LONG_CHARACTERS, max_tokens=2),
    "a prediction": GenerateJob(text="a = ", prediction=LONG, max_tokens=2),
    "before a hole": GenerateJob(text=LONG, suffix="\n", max_tokens=2),
    "after a hole": GenerateJob(text="a = ", suffix=LONG, max_tokens=2),
    "files beside a hole": GenerateJob(
        *("", "a.py", "a = "), suffix="\n", snippets=[ContextSnippet("b.py", LONG)], max_tokens=2
    ),
    "biases": GenerateJob(text="a = ", logit_bias=[(" b", 1.0)] * 1000, max_tokens=2),
    "a selection": EditJob("", "a.py", "make it loud", LONG, max_tokens=2),
    "an instruction": EditJob("", "a.py", LONG, "x = 1\n", max_tokens=2),
    "before a selection": EditJob("", "a.py", "loud", "x = 1\n", before=LONG, max_tokens=2),
    "after a selection": EditJob("", "a.py", "loud", "x = 1\n", after=LONG, max_tokens=2),
}


@pytest.mark.parametrize("name", ASIDE)
def test_long_texts_are_prepared_aside_and_come_to_the_same(
    service: EngineService, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    job = ASIDE[name]
    steps = service.steps(job, lambda: False)
    assert isinstance(next(steps), Aside)
    steps.close()
    aside = _text(service, job)
    monkeypatch.setattr(engine_steps, "LONG_CHARACTERS", 1 << 30)
    assert _text(service, job) == aside


def _text(service: EngineService, job: AnyJob) -> str:
    try:
        return service.write(job).text
    except AccelError as error:
        return str(error)


@pytest.mark.parametrize("name", ASIDE)
def test_others_are_answered_while_a_long_text_is_prepared(
    service: EngineService, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """However long that takes: here it does not end before the short one is answered."""
    begun, released = threading.Event(), threading.Event()
    outcome = Aside.outcome

    def held(aside: Aside) -> Any:
        begun.set()
        assert released.wait(WAIT_S)
        return outcome(aside)

    monkeypatch.setattr(Aside, "outcome", held)
    monkeypatch.setattr(service, "close", lambda: None)
    incoming: queue.Queue[dict[str, Any] | None] = queue.Queue()
    outgoing: queue.Queue[dict[str, Any]] = queue.Queue()
    loop = EngineLoop(service, incoming.get, outgoing.put)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    short = GenerateJob(text="a = 1\nb = ", max_tokens=2)
    try:
        incoming.put(_frame(1, ASIDE[name]))
        assert begun.wait(WAIT_S)
        incoming.put(_frame(2, short))
        assert _end(outgoing)["id"] == 2
        incoming.put(_frame(3, replace(short, text="c = ")))
        assert _end(outgoing)["id"] == 3
        released.set()
        assert _end(outgoing)["id"] == 1
    finally:
        released.set()
        incoming.put({"op": "end"})
        thread.join(WAIT_S)
    assert not thread.is_alive()


def _frame(number: int, job: AnyJob) -> dict[str, Any]:
    asked = {"op": job.operation, "kind": job.operation, "job": to_json(job)}
    return {**asked, "id": number, "client": "a", "urgency": COMPLETION}


def _end(outgoing: queue.Queue[dict[str, Any]]) -> dict[str, Any]:
    while True:
        frame = outgoing.get(timeout=WAIT_S)
        if frame["event"] in ("result", "error"):
            return frame


def test_a_text_that_is_cancelled_while_it_is_prepared_is_not_written(
    service: EngineService,
) -> None:
    steps = in_place(service.steps(ASIDE["a selection"], lambda: True))
    with pytest.raises(StopIteration) as ended:
        next(steps)
    assert ended.value.value.stopped_by == "cancelled"
