"""Completions of one client against an engine that writes when the test says so."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from staged_engine import PREFIX, SUFFIX, Session, settle, texts

from lsp_server.editor.completion import provider as provider_module
from lsp_server.editor.completion.provider import Answer
from lsp_server.editor.completion.request import CompletionRequest
from lsp_server.shared.contract.jobs import AcceptedText
from lsp_server.shared.errors import EngineUnavailable


async def test_what_the_model_writes_is_shown_and_kept(session: Session) -> None:
    asked = session.ask()
    await settle()
    session.fresh[0].end("path.join(path)")
    assert texts(await asked) == ["path.join(path)"]
    for typed in ("p", "path.", "path.join(pat"):
        answer = await session.ask(typed)
        assert answer is not None
        assert answer.texts == ["path.join(path)"[len(typed) :]]
        assert answer.without_model
    assert len(session.fresh) == 1


async def test_typing_what_is_being_written_joins_the_generation(session: Session) -> None:
    first = session.ask()
    await settle()
    session.fresh[0].write("path.")
    second = session.ask("pa")
    await settle()
    assert await first is None
    session.fresh[0].end("join(path)")
    assert texts(await second) == ["th.join(path)"]
    assert len(session.fresh) == 1
    assert not session.fresh[0].cancelled


async def test_typing_ahead_of_the_model_waits_for_it(session: Session) -> None:
    session.ask()
    await settle()
    second = session.ask("path.j")
    await settle()
    session.fresh[0].write("path")
    await settle()
    session.fresh[0].end(".join(path)")
    assert texts(await second) == ["oin(path)"]
    assert len(session.fresh) == 1


async def test_typing_something_else_starts_anew(session: Session) -> None:
    first = session.ask()
    await settle()
    session.fresh[0].write("path.")
    second = session.ask("x")
    await settle()
    assert await first is None
    assert session.fresh[0].cancelled
    session.fresh[1].end("yz()")
    assert texts(await second) == ["yz()"]


async def test_a_joined_generation_that_turns_away_is_started_anew(session: Session) -> None:
    session.ask()
    await settle()
    second = session.ask("sy")
    await settle()
    session.fresh[0].write("path")
    await settle()
    assert session.fresh[0].cancelled
    session.fresh[1].end("stem()")
    assert texts(await second) == ["stem()"]


async def test_a_cancelled_request_stops_the_engine_and_its_lines_are_kept(
    session: Session,
) -> None:
    asked = session.ask(prefix="def f():\n    ")
    await settle()
    session.fresh[0].write("one()\n    two()\n    thr")
    asked.cancel()
    await settle()
    assert asked.cancelled()
    assert session.fresh[0].cancelled
    again = await session.ask(prefix="def f():\n    one")
    assert texts(again) == ["()\n    two()"]


async def test_a_generation_that_another_request_waits_for_is_not_stopped(session: Session) -> None:
    first = session.ask()
    await settle()
    second = session.ask("p")
    first.cancel()
    await settle()
    assert not session.fresh[0].cancelled
    session.fresh[0].end("path")
    assert texts(await second) == ["ath"]


async def test_documents_do_not_disturb_each_other(session: Session) -> None:
    first, second = session.ask(), session.ask(document="e")
    await settle()
    session.fresh[0].end("path")
    session.fresh[1].end("sep")
    assert texts(await first) == ["path"]
    assert texts(await second) == ["sep"]


async def test_taking_a_part_keeps_the_rest(session: Session) -> None:
    asked = session.ask()
    await settle()
    session.fresh[0].end("path.join(path)")
    assert texts(await asked) == ["path.join(path)"]
    session.provider.accepted(
        CompletionRequest("d", "d.py", "/w", "python", PREFIX, SUFFIX), "path"
    )
    assert texts(await session.ask("path")) == [".join(path)"]
    assert len(session.fresh) == 1


async def test_asking_by_hand_gives_several_different_ones(session: Session) -> None:
    asked = session.ask(invoked=True)
    for text in ("path", "sep", "path"):
        await settle()
        session.fresh[-1].end(text)
    assert texts(await asked) == ["path", "sep"]
    seeds = [(one.job.temperature > 0, one.job.seed) for one in session.fresh]
    assert seeds == [(False, 0), (True, 1), (True, 2)]


async def test_however_slow_the_machine_there_is_another_one_by_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provider_module, "ALTERNATIVES_S", -1.0)
    session = Session(completion={"alternatives": 9})
    asked = session.ask(invoked=True)
    for text in ("path", "path", "sep"):
        await settle()
        session.fresh[-1].end(text)
    assert texts(await asked) == ["path", "sep"]


async def test_one_line_in_the_middle_of_a_line_and_several_on_an_empty_one(
    session: Session,
) -> None:
    session.ask(prefix="x = fo", document="a")
    session.ask(prefix="def f():\n    ", document="b")
    session.ask(prefix="x = f(", suffix=", 2)\n", document="c", invoked=True)
    await settle()
    assert [one.job.single_line for one in session.fresh] == [True, False, True]


async def test_the_prompt_is_computed_once_the_cursor_rests(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "REST_S", 0.02)
    ask = CompletionRequest("d", "d.py", "", "python", PREFIX, SUFFIX)
    for _ in range(5):
        session.provider.rest("d", lambda: ask)
    await asyncio.sleep(0.1)
    assert len(session.engine.prefills) == 1
    session.provider.rest("d", lambda: ask)
    session.ask()
    await asyncio.sleep(0.1)
    assert len(session.engine.prefills) == 1, "a request makes it needless"


OPENED = CompletionRequest("d", "d.py", "", "python", "", "import os\n\nx = 1\n")


async def test_a_document_is_read_when_it_is_opened(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "OPENED_S", 0.0)
    session.provider.opened("d", lambda: OPENED)
    await settle()
    (job,) = session.engine.warmed
    assert job.opening
    assert (job.prefix, job.suffix) == (OPENED.suffix, OPENED.suffix)
    session.ask()
    await settle()
    assert len(session.engine.cancelled_prefills) == 1, "a request does not wait for it"
    assert len(session.fresh) == 1


async def test_a_request_right_after_opening_makes_reading_needless(session: Session) -> None:
    session.provider.opened("d", lambda: OPENED)
    session.ask()
    await asyncio.sleep(2 * provider_module.OPENED_S)
    assert session.engine.prefills == []


async def test_where_the_cursor_is_counts_once_after_opening(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "OPENED_S", 0.0)
    monkeypatch.setattr(provider_module, "REST_S", 0.0)
    placed = replace(OPENED, prefix="import os\n", suffix="\nx = 1\n")
    session.provider.opened("d", lambda: OPENED)
    await settle()
    for _ in range(3):
        session.provider.placed("d", lambda: placed)
        await settle()
    assert [job.opening for job in session.engine.warmed] == [True, False]
    assert session.engine.warmed[-1].prefix == placed.prefix
    assert len(session.engine.cancelled_prefills) == 1, "the second takes the first one's place"


async def test_of_many_documents_the_last_are_read(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_module, "OPENED_S", 0.0)
    for name in map(str, range(9)):
        session.provider.opened(name, partial(replace, OPENED, document=name))
        await settle()
    cancelled = len(session.engine.cancelled_prefills)
    assert len(session.engine.prefills) - cancelled == provider_module.MOST_WARMING
    session.provider.close("8")
    assert len(session.engine.cancelled_prefills) == cancelled + 1


async def test_what_was_accepted_is_known_again_when_it_is_undone(session: Session) -> None:
    ask = CompletionRequest("d", "d.py", "/w", "python", PREFIX, SUFFIX)
    session.provider.accepted(ask, "path.join(path)")
    assert texts(await session.ask()) == ["path.join(path)"]
    assert session.fresh == []
    taken = AcceptedText("/w", "d.py", PREFIX[-256:], "path.join(path)")
    assert session.engine.told == [taken]


async def test_where_blocks_are_never_taken_single_lines_are_asked_for(session: Session) -> None:
    for _ in range(60):
        session.rates.learn("python", True, False)
    session.ask(prefix="def f():\n    ", document="a")
    session.ask(prefix="def f():\n    ", document="b", invoked=True)
    session.ask(prefix="def f():\n    ", document="c", language="go")
    await settle()
    assert [one.job.single_line for one in session.fresh] == [True, False, False]


async def test_a_client_that_leaves_stops_its_work(session: Session) -> None:
    session.ask()
    await settle()
    session.provider.close_all()
    assert session.fresh[0].cancelled


async def test_a_model_that_does_not_come_is_a_reason_not_a_wait() -> None:
    session = Session(completion={"timeoutMs": 50})
    answer = await session.ask()
    assert answer == Answer([], "loading the model")


async def test_an_engine_that_dies_is_a_reason_and_the_next_request_starts_anew(
    session: Session,
) -> None:
    asked = session.ask()
    await settle()
    session.fresh[0].call.future.set_exception(EngineUnavailable("the engine process ended"))
    assert await asked == Answer([], "the engine process ended")
    again = session.ask()
    await settle()
    session.fresh[1].end("path")
    assert texts(await again) == ["path"]


async def test_an_engine_that_refuses_is_not_asked(session: Session) -> None:
    session.engine.refused = "no such model"
    assert await session.ask() == Answer([], "no such model")
    assert session.engine.requests == []
