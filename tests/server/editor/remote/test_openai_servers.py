"""Other servers: asked by OpenAI's protocol or by llama.cpp's, without drafts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from server_stand_in import KEY, Send, Server, served
from text_cases import data_cases

from lsp_server.editor.remote.engine import RemoteEngine
from lsp_server.editor.remote.fim_texts import family_of, fim_text
from lsp_server.shared.contract.jobs import (
    EDIT,
    PREFILL,
    CompletionJob,
    ContextSnippet,
    EditJob,
    Span,
)
from lsp_server.shared.errors import EditRefused, EngineFailed, EngineUnavailable, NothingToContinue
from lsp_server.shared.settings import read_settings

CODE = "def total(prices):\n    return "


class OtherServer(Server):
    """A server of which only the routes in ``routes`` are there."""

    def __init__(self, *routes: str, owner: str = "somebody", takes_suffix: bool = True) -> None:
        super().__init__()
        self.routes = routes
        self.owner = owner
        self.takes_suffix = takes_suffix
        self.facts: dict[str, Any] = {}
        """What is said of each model."""
        self.models = ["qwen2.5-coder:1.5b", "other"]
        self.text = ["sum(", "prices)\n", "\n\ndef more():\n"]
        self.answer_text = ["Here:\n```python\n", "def total(rows):\n", "    return 1\n", "```\n"]
        self.reason = "stop"

    async def answer(self, path: str, body: Any, receive: Any, send: Send) -> None:
        if path == "/v1/models":
            listed = [{"id": name, "owned_by": self.owner, **self.facts} for name in self.models]
            await self.reply(send, {"object": "list", "data": listed})
        elif path not in self.routes:
            await self.reply(send, {"error": {"message": "no such path"}}, 404)
        elif "suffix" in body and not self.takes_suffix:
            await self.reply(send, {"error": {"message": "suffix is not supported"}}, 400)
        else:
            await self.stream(self.chunks(path), receive, send)

    async def chunks(self, path: str) -> AsyncIterator[str]:
        pieces = self.answer_text if "chat" in path else self.text
        for number, text in enumerate(pieces):
            yield f"data: {json.dumps(_chunk(path, text, None))}\n\n"
            if number == 1:
                await self.pause.wait()
        yield f"data: {json.dumps(_chunk(path, '', self.reason))}\n\n"
        yield "data: [DONE]\n\n"


def _chunk(path: str, text: str, reason: str | None) -> Any:
    if path == "/infill":
        stop = "limit" if reason == "length" else "eos"
        return {"content": text, "stop": bool(reason), "stop_type": stop if reason else "none"}
    if "chat" in path:
        return {"choices": [{"delta": {"content": text}, "finish_reason": reason}]}
    return {"choices": [{"text": text, "finish_reason": reason}]}


def completion(**more: Any) -> CompletionJob:
    return CompletionJob("/home/u/work", "shop.py", CODE, "\n\n\nprint(1)\n", "python", **more)


def edit_job(selection: str = "def total(prices):\n    return 1\n") -> EditJob:
    return EditJob("/home/u/work", "shop.py", "rename prices", selection, language="python")


@asynccontextmanager
async def engine_of(server: OtherServer, **more: Any) -> AsyncIterator[RemoteEngine]:
    """An engine that asks ``server``."""
    async with served(server) as url:
        values = {"server": {"url": f"{url}/v1", "key": KEY, **more}}
        engine = RemoteEngine(read_settings(values).settings.server, lambda: None, None)
        yield engine
        await engine.close()


async def test_llama_server_is_asked_by_infill() -> None:
    server = OtherServer("/infill", "/v1/completions", owner="llamacpp")
    async with engine_of(server) as engine:
        snippets = [ContextSnippet("/home/u/lib.py", "x = 1\n")]
        spans: list[Span] = []
        job = completion(snippets=snippets, context_tokens=-1)
        result = await engine.ask(job, "c", spans.extend).future
        assert result.text == "sum(prices)"
        assert "".join(span.text for span in spans).startswith("sum(prices)")
        (body,) = server.bodies("/infill")
        assert (body["input_prefix"], body["input_suffix"]) == (CODE, "\n\n\nprint(1)\n")
        assert body["input_extra"] == [{"filename": "lib.py", "text": "x = 1\n"}]
        assert body["stream"] is True
        assert engine.status.server["drafted"] is False
        assert "undrafted" in engine.status.server_note
        assert engine.status.model == "qwen2.5-coder:1.5b"


async def test_in_a_small_window_most_of_the_room_is_for_the_text_before_the_cursor() -> None:
    server = OtherServer("/v1/completions")
    server.facts = {"max_model_len": 2048}
    async with engine_of(server) as engine:
        job = replace(completion(), prefix="x = 1\n" * 4000, suffix="y = 2\n" * 4000)
        await engine.ask(job, "c").future
        body = server.bodies("/v1/completions")[-1]
        whole = len(body["prompt"]) + len(body["suffix"])
        assert 0 < 2 * len(body["suffix"]) < len(body["prompt"])
        assert whole < 8000


async def test_others_get_prompt_and_suffix_and_stop_where_the_block_ends() -> None:
    server = OtherServer("/v1/completions")
    async with engine_of(server, model="other") as engine:
        result = await engine.ask(completion(), "c").future
        assert (result.text, result.stopped_by) == ("sum(prices)", "stop")
        body = server.bodies("/v1/completions")[0]
        assert (body["prompt"], body["suffix"]) == (CODE, "\n\n\nprint(1)\n")
        assert body["model"] == "other"
        server.text = ["sum(prices)"]
        for _ in range(3):
            before = len(server.connections)
            assert (await engine.ask(completion(), "c").future).stopped_by == "end"
        assert len(server.connections) == before, "a connection is kept"
        server.text = ["sum(prices)\n", "more"]
        single = await engine.ask(completion(single_line=True), "c").future
        assert single.text == "sum(prices)"
        assert engine.status.fills


async def test_a_server_without_suffix_gets_the_models_own_form_once_it_has_refused() -> None:
    server = OtherServer("/v1/completions", takes_suffix=False)
    async with engine_of(server) as engine:
        for _ in range(2):
            assert (await engine.ask(completion(), "c").future).text == "sum(prices)"
        first, second, third = server.bodies("/v1/completions")
        assert "suffix" in first
        assert second == third
        assert second["prompt"].startswith("<|fim_prefix|>def total")
        assert second["prompt"].endswith("print(1)\n<|fim_middle|>")
        assert engine.status.fills


async def test_a_model_of_no_known_form_goes_on_from_the_prefix_and_the_status_says_so() -> None:
    server = OtherServer("/v1/completions", takes_suffix=False)
    server.models = ["mystery-7b"]
    async with engine_of(server) as engine:
        assert (await engine.ask(completion(), "c").future).text == "sum(prices)"
        assert server.bodies("/v1/completions")[-1]["prompt"] == CODE
        assert not engine.status.fills


async def test_an_edit_is_asked_in_chat_and_put_into_the_selection() -> None:
    server = OtherServer("/v1/chat/completions")
    async with engine_of(server) as engine:
        shown: list[Span] = []
        job = edit_job("def total(prices):\r\n    return 1  \r\n")
        result = await engine.ask(job, "c", shown.extend, EDIT).future
        # What did not change keeps its line end and its blanks.
        assert result.text == "def total(rows):\r\n    return 1  \r\n"
        assert "".join(span.text for span in shown) == "def total(rows):\n    return 1\n"
        (body,) = server.bodies("/v1/chat/completions")
        assert "rename prices" in body["messages"][0]["content"]
        assert "/home" not in str(body)


async def test_answers_without_code_and_empty_documents_are_refused() -> None:
    server = OtherServer("/v1/chat/completions", "/v1/completions")
    server.answer_text = ["I will not."]
    async with engine_of(server) as engine:
        with pytest.raises((EngineFailed, EditRefused), match="without code"):
            await engine.ask(edit_job(), "c", None, EDIT).future
        with pytest.raises(NothingToContinue):
            await engine.ask(CompletionJob("", "a.py", "", ""), "c").future
        assert await engine.prefill(completion(), "c", PREFILL).future is None


@data_cases()
async def test_a_cancel_closes_the_connection(operation: str, path: str) -> None:
    server = OtherServer(path, owner="llamacpp" if path == "/infill" else "somebody")
    server.pause.clear()
    async with engine_of(server) as engine:
        begun = asyncio.Event()
        if operation == "edit":
            call = engine.ask(edit_job(), "c", lambda _: begun.set(), EDIT)
        else:
            call = engine.ask(completion(), "c", lambda _: begun.set())
        await begun.wait()
        call.cancel()
        await server.closed.wait()
        assert await call.future is None


@pytest.mark.parametrize(("path", "owner"), [("/v1/completions", "x"), ("/infill", "llamacpp")])
async def test_a_text_that_was_cut_by_its_length_says_so_and_shows_whole_lines(
    path: str, owner: str
) -> None:
    server = OtherServer(path, owner=owner)
    server.reason = "length"
    async with engine_of(server) as engine:
        for pieces, shown in ((["sum("], ""), (["sum(\n", "        prices"], "sum(")):
            server.text = pieces
            result = await engine.ask(completion(), "c").future
            assert (result.text, result.stopped_by) == (shown, "length")


async def test_a_model_that_is_not_there_is_told_with_those_that_are() -> None:
    async with engine_of(OtherServer("/v1/completions"), model="missing") as engine:
        with pytest.raises(EngineUnavailable, match=r"one of qwen2\.5-coder:1\.5b, other"):
            await engine.ask(completion(), "c").future


async def test_a_server_that_is_none_is_told() -> None:
    server = OtherServer()
    server.models = []
    async with engine_of(server) as engine:
        with pytest.raises(EngineUnavailable, match="no model that Redraft can ask"):
            await engine.ask(completion(), "c").future


@data_cases()
def test_forms_are_known_by_the_names_of_models(model: str, prompt: str | None) -> None:
    family = family_of([model])
    assert (None if family is None else fim_text(family, "a", "b")) == prompt
