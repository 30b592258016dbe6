"""Somebody else's server: streams that end early, signs of life, small contexts, what is listed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from server_stand_in import KEY, Send, Server, served
from text_cases import data_beside, data_cases

from lsp_server.editor.editing.checks import checked_text
from lsp_server.editor.remote.context_window import ContextWindow, is_about_length
from lsp_server.editor.remote.engine import RemoteEngine
from lsp_server.shared.contract.jobs import EDIT, CompletionJob, EditJob
from lsp_server.shared.errors import EditRefused, EngineFailed, EngineUnavailable, RedraftError
from lsp_server.shared.settings import read_settings

OLD = (
    "def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n"
    "    return result\n"
)
NEW = OLD.replace("result", "whole")
COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
Answer = Callable[[str, Any], Any]
"""Of a path and a body: bytes of a stream, or a status and what is told with it."""


class Stranger(Server):
    """A server that answers as ``answer_with`` says, and lists ``models``."""

    def __init__(self, answer_with: Answer, **models: dict[str, Any]) -> None:
        super().__init__()
        self.answer_with = answer_with
        self.models = models or {"tiny-coder": {}}
        self.told: dict[str, Any] = {}
        """What it answers at other paths."""

    async def answer(self, path: str, body: Any, receive: Any, send: Send) -> None:
        if path == "/v1/models":
            listed = [{"id": name, **more} for name, more in self.models.items()]
            await self.reply(send, {"object": "list", "data": listed})
        elif path in self.told:
            await self.reply(send, self.told[path])
        elif path not in (COMPLETIONS, CHAT, "/infill"):
            await self.reply(send, {"error": {"message": "no such path"}}, 404)
        else:
            answer = self.answer_with(path, body)
            if isinstance(answer, tuple):
                await self.reply(send, answer[1], answer[0])
            else:
                await self.stream(self.parts(answer), receive, send)

    @staticmethod
    async def parts(text: str) -> AsyncIterator[str]:
        for start in range(0, len(text), 50):
            yield text[start : start + 50]

    @property
    def asked_bodies(self) -> list[Any]:
        return [body for _, path, body in self.asked if path in (COMPLETIONS, CHAT, "/infill")]


def sse(data: Any) -> str:
    return f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


def said(path: str, text: str, reason: str | None = "stop", done: bool = True) -> str:
    """A whole answer as a stream."""
    pieces = [text[start : start + 7] for start in range(0, len(text), 7)]
    last = [None] if reason is None else [reason]

    def choice(piece: str, why: str | None) -> Any:
        body = {"delta": {"content": piece}} if path == CHAT else {"text": piece}
        return {"choices": [{"index": 0, **body, "finish_reason": why}]}

    events = [choice(piece, None) for piece in pieces]
    events += [choice("", one) for one in last if one is not None]
    return "".join(map(sse, events)) + (sse("[DONE]") if done else "")


def completion(prefix: str = "def add(a, b):\n    return ", **more: Any) -> CompletionJob:
    return CompletionJob("", "a.py", prefix, "\n\nprint(add(1, 2))\n", "python", **more)


def edit_job(selection: str = OLD, **more: Any) -> EditJob:
    return EditJob("", "a.py", "use whole in place of result", selection, language="python", **more)


@asynccontextmanager
async def engine_of(server: Stranger, **more: Any) -> AsyncIterator[RemoteEngine]:
    """An engine that asks ``server``."""
    async with served(server) as url:
        values = {"server": {"url": url, "key": KEY, **more}}
        engine = RemoteEngine(read_settings(values).settings.server, lambda: None, None)
        yield engine
        await engine.close()


# An answer that did not end

PART = f"```python\n{NEW[: NEW.index('    return')]}"
CUT = {
    "the connection ends": said(CHAT, PART, None, done=False),
    "[DONE] without a reason": said(CHAT, PART, None),
    "content_filter": said(CHAT, PART, "content_filter"),
    "length": said(CHAT, PART, "length"),
    "max_tokens": said(CHAT, PART, "max_tokens"),
    "SAFETY": said(CHAT, PART, "SAFETY"),
    "tool_calls": said(CHAT, PART, "tool_calls"),
    "insufficient resources": said(CHAT, PART, "insufficient_system_resource"),
    "abort": said(CHAT, PART, "abort"),
    "an error event": said(CHAT, PART, None, done=False) + sse({"error": {"message": "no memory"}}),
    "event: error": said(CHAT, PART, None, done=False)
    + 'event: error\ndata: {"message": "lost"}\n\n',
    "an error, then a reason": said(CHAT, PART, None, done=False)
    + sse({"error": "overloaded"})
    + said(CHAT, "", "stop"),
    "an error in the choice": said(CHAT, PART, None, done=False)
    + sse({"choices": [{"delta": {}, "error": {"message": "lost"}, "finish_reason": "error"}]}),
    "half an event": said(CHAT, PART, None, done=False) + 'data: {"choices": [{"delta": {"con',
    "half an event with its end": said(CHAT, PART, None, done=False) + sse('{"choices": [{"de'),
    "a reason in half an event": said(CHAT, PART, "stop", done=False)[:-2],
    "the block closed before it": said(CHAT, f"{PART}```\nAnd", None),
    "a document without its end": json.dumps(
        {"choices": [{"message": {"content": PART}, "finish_reason": "length"}]}
    ),
    "half a document": json.dumps({"choices": [{"message": {"content": PART}}]})[:-9],
    "nothing": "",
    "an html page": "<html><body>Bad gateway</body></html>\n\n",
}


@pytest.mark.parametrize("stream", CUT.values(), ids=CUT)
async def test_an_answer_that_did_not_end_is_no_edit(stream: str) -> None:
    async with engine_of(Stranger(lambda path, body: stream)) as engine:
        with pytest.raises(RedraftError):
            checked_text(OLD, await engine.ask(edit_job(), "c", None, EDIT).future)


async def test_a_broken_answer_is_refused_with_the_servers_reason() -> None:
    async with engine_of(Stranger(lambda path, body: CUT["content_filter"])) as engine:
        with pytest.raises(EditRefused, match="content_filter"):
            await engine.ask(edit_job(), "c", None, EDIT).future


LINES = "a + b\n    x = 1\n    y = 2"
CUT_TEXTS = {
    "the connection ends": said(COMPLETIONS, LINES, None, done=False),
    "[DONE] without a reason": said(COMPLETIONS, LINES, None),
    "content_filter": said(COMPLETIONS, LINES, "content_filter"),
    "length": said(COMPLETIONS, LINES, "length"),
    "an error event": said(COMPLETIONS, LINES, None, done=False) + sse({"error": {"message": "x"}}),
    "half an event": said(COMPLETIONS, LINES, None, done=False) + sse('{"choices": [{"te'),
}


@pytest.mark.parametrize("stream", CUT_TEXTS.values(), ids=CUT_TEXTS)
async def test_a_completion_that_did_not_end_shows_whole_lines(stream: str) -> None:
    async with engine_of(Stranger(lambda path, body: stream)) as engine:
        result = await engine.ask(completion(), "c").future
        assert result.text == "a + b\n    x = 1"
        assert result.stopped_by in ("length", "broken")


async def test_a_line_that_broke_off_is_not_shown() -> None:
    async with engine_of(Stranger(lambda path, body: said(COMPLETIONS, "a + ", None))) as engine:
        with pytest.raises(EngineFailed, match="broke off"):
            await engine.ask(completion(single_line=True), "c").future


# Signs of life, and answers in other shapes

TEXT = "a + b"
WHOLE = said(COMPLETIONS, TEXT)
SHAPES = {
    "plain": WHOLE,
    "data: : keepalive": "data: : keepalive\n\n" + WHOLE,
    "data alone": "data:\n\n" + WHOLE,
    "the field alone": "data\n\n" + WHOLE,
    "event: ping": 'event: ping\ndata: {"type": "ping"}\n\n' + WHOLE,
    "ping without data": "event: ping\n\n" + WHOLE,
    "a comment": ": OPENROUTER PROCESSING\n\n" + WHOLE,
    "a bare colon": ":\n\n:\n" + WHOLE,
    "a word": "data: ping\n\n" + WHOLE,
    "data: null": "data: null\n\n" + WHOLE,
    "data: {}": "data: {}\n\n" + WHOLE,
    "usage alone": sse({"choices": [], "usage": {"prompt_tokens": 1}}) + WHOLE,
    "filter results": sse({"choices": [], "prompt_filter_results": []}) + WHOLE,
    "retry": "retry: 3000\n\n" + WHOLE,
    "id": "id: 7\n" + WHOLE,
    "a mark at the start": "\ufeff" + WHOLE,
    "CRLF": WHOLE.replace("\n", "\r\n"),
    "CR": WHOLE.replace("\n", "\r"),
    "no blank behind the colon": WHOLE.replace("data: ", "data:"),
    "event: message": WHOLE.replace("data: ", "event: completion\ndata: "),
    "in the middle": WHOLE.replace("\n\n", "\n\n: alive\n\ndata:\n\n", 1),
    "no [DONE]": said(COMPLETIONS, TEXT, done=False),
    "events behind [DONE]": WHOLE + sse({"error": {"message": "late"}}),
    "a document": json.dumps({"choices": [{"text": TEXT, "finish_reason": "stop"}]}),
    "an indented document": json.dumps(
        {"choices": [{"text": TEXT, "finish_reason": "stop"}]}, indent=2
    ),
    "a marked document": "\ufeff\n"
    + json.dumps({"choices": [{"text": TEXT, "finish_reason": "stop"}]}),
    "a list of parts": sse(
        {
            "choices": [
                {"delta": {"content": [{"type": "text", "text": TEXT}]}, "finish_reason": "stop"}
            ]
        }
    ),
    "lines of data": 'data: {"choices": [{"text": "a + b",\ndata:  "finish_reason": "stop"}]}\n\n',
}


@pytest.mark.parametrize("stream", SHAPES.values(), ids=SHAPES)
async def test_a_completion_is_read_in_every_shape(stream: str) -> None:
    async with engine_of(Stranger(lambda path, body: stream)) as engine:
        result = await engine.ask(completion(), "c").future
        assert (result.text, result.stopped_by) == (TEXT, "end")


THOUGHTS = {
    "reasoning_content": {"reasoning_content": f"```python\n{OLD}```"},
    "reasoning": {"reasoning": f"```python\n{OLD}```", "content": None},
    "parts": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "```x```"}]}]},
}


@pytest.mark.parametrize("thought", THOUGHTS.values(), ids=THOUGHTS)
async def test_thoughts_beside_the_answer_are_none(thought: dict[str, Any]) -> None:
    thinks = sse({"choices": [{"delta": thought, "finish_reason": None}]})
    answers = iter([thinks + said(CHAT, f"```python\n{NEW}```"), thinks + said(CHAT, "")])
    async with engine_of(Stranger(lambda path, body: next(answers))) as engine:
        assert (await engine.ask(edit_job(), "c", None, EDIT).future).text == NEW
        with pytest.raises(EditRefused, match="without code"):
            await engine.ask(edit_job(), "c", None, EDIT).future


# Contexts

DATA = data_beside(__file__)
REFUSALS = DATA["REFUSALS"]


def small(refusal: str, answer_limit: int = 1 << 20, status: int = 400) -> Answer:
    """A server with room for 1,024 tokens of three and a half characters."""

    def answer(path: str, body: Any) -> Any:
        prompt = body["messages"][0]["content"] if path == CHAT else body["prompt"]
        tokens = int(len(prompt + body.get("suffix", "")) / 3.5)
        asked = body["max_tokens"]
        if asked > answer_limit or (answer_limit > 1024 and tokens + asked > 1024):
            told = refusal.format(prompt=tokens, answer=asked, total=tokens + asked)
            return status, {"error": {"message": told, "code": status}}
        return said(path, f"```python\n{NEW}```" if path == CHAT else "a + b\n\n")

    return answer


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
async def test_a_refusal_for_length_halves_what_is_asked_for(refusal: str) -> None:
    limit = 300 if "300" in refusal else 1 << 20
    server = Stranger(small(refusal, limit))
    async with engine_of(server) as engine:
        around = "# a line of code that stands around\n" * 60
        job = edit_job(before=around, after=around)
        assert (await engine.ask(job, "c", None, EDIT).future).text == NEW
        before = len(server.asked_bodies)
        assert (await engine.ask(job, "c", None, EDIT).future).text == NEW
        assert len(server.asked_bodies) == before + 1, "what was told once is known"
        long = completion("".join(f"value_{i} = {i}\n" for i in range(600)) + "x = ")
        assert (await engine.ask(long, "c").future).text == "a + b"
        assert (await engine.ask(completion(), "c").future).text == "a + b"
        body = server.asked_bodies[-1]
        assert body["suffix"] == "\n\nprint(add(1, 2))\n"
        assert body["prompt"] == completion().prefix


@pytest.mark.parametrize("status", [400, 413, 422, 500])
async def test_one_refusal_changes_nothing_for_the_next(status: int) -> None:
    server = Stranger(small(REFUSALS["vLLM"], status=status))
    async with engine_of(server) as engine:
        long = completion("".join(f"value_{i} = {i}\n" for i in range(600)) + "x = ")
        assert (await engine.ask(long, "c").future).text == "a + b"
        assert all("suffix" in body for body in server.asked_bodies)


async def test_a_refusal_without_words_is_not_held_against_the_next() -> None:
    def answer(path: str, body: Any) -> Any:
        return (400, {}) if len(body["prompt"]) > 3000 else said(path, "a + b\n\n")

    server = Stranger(answer, **{"qwen2.5-coder": {}})
    async with engine_of(server) as engine:
        long = completion("".join(f"value_{i} = {i}\n" for i in range(600)) + "x = ")
        for _ in range(2):
            with pytest.raises(EngineFailed):
                await engine.ask(long, "c").future
        assert (await engine.ask(completion(), "c").future).text == "a + b"
        assert "suffix" in server.asked_bodies[-1]


@data_cases()
async def test_a_field_that_a_server_does_not_take_is_left_out(field: str, told: str) -> None:
    def answer(path: str, body: Any) -> Any:
        return (
            (400, {"error": {"message": told}}) if field in body else said(path, f"```\n{NEW}```")
        )

    server = Stranger(answer)
    async with engine_of(server) as engine:
        for _ in range(2):
            assert (await engine.ask(edit_job(), "c", None, EDIT).future).text == NEW
        assert [field in body for body in server.asked_bodies] == [True, False, False]


@data_cases()
async def test_the_context_is_what_the_server_lists(facts: dict[str, Any]) -> None:
    server = Stranger(small("never asked for too much"), **{"tiny-coder": facts})
    async with engine_of(server) as engine:
        assert (await engine.ask(edit_job(), "c", None, EDIT).future).text == NEW
        (body,) = server.asked_bodies
        assert 300 < body["max_tokens"] < 1024
        with pytest.raises(EditRefused, match="takes 1024 tokens; select fewer lines"):
            await engine.ask(edit_job(OLD * 60), "c", None, EDIT).future


async def test_llama_server_tells_its_context_among_its_properties() -> None:
    server = Stranger(small("never asked for too much"), **{"m.gguf": {"owned_by": "llamacpp"}})
    server.told["/props"] = {"default_generation_settings": {"n_ctx": 1024}, "total_slots": 1}
    async with engine_of(server) as engine:
        assert (await engine.ask(edit_job(), "c", None, EDIT).future).text == NEW
        assert len(server.asked_bodies) == 1


def test_words_about_length_are_told_from_others() -> None:
    for told in REFUSALS.values():
        assert is_about_length(told.format(prompt=900, answer=200, total=1100)), told
    for told in (
        "suffix is not currently supported",
        "model 'x' not found, try pulling it first",
        "Infill is not supported by this model",
        "seed: Extra inputs are not permitted",
        "invalid api key",
    ):
        assert not is_about_length(told)


def test_a_prompt_of_characters_beyond_ascii_has_more_tokens() -> None:
    window = ContextWindow()
    assert window.tokens_of("値" * 100) > 2 * window.tokens_of("x" * 100)


# What is asked


@data_cases()
async def test_models_that_write_no_text_are_not_asked(name: str, facts: dict[str, Any]) -> None:
    both = {name: facts, "some-coder": {}}
    async with engine_of(Stranger(lambda path, body: WHOLE, **both)) as engine:
        await engine.ask(completion(), "c").future
        assert engine.status.model == "some-coder"
    async with engine_of(Stranger(lambda path, body: WHOLE, **{name: facts})) as engine:
        with pytest.raises(EngineUnavailable, match="writes text"):
            await engine.ask(completion(), "c").future


@data_cases()
async def test_the_family_is_what_the_server_says(
    name: str, facts: dict[str, Any], begins: str
) -> None:
    def answer(path: str, body: Any) -> Any:
        refused = {"error": {"message": "suffix is not currently supported"}}
        return (400, refused) if "suffix" in body else WHOLE

    server = Stranger(answer, **{name: facts})
    async with engine_of(server) as engine:
        for _ in range(2):
            await engine.ask(completion(), "c").future
        assert ["suffix" in body for body in server.asked_bodies] == [True, False, False]
        assert server.asked_bodies[-1]["prompt"].startswith(begins)


async def test_ollama_and_lm_studio_say_more_elsewhere() -> None:
    refused = {"error": {"message": "m does not support insert"}}

    def answer(path: str, body: Any) -> Any:
        return (400, refused) if "suffix" in body else WHOLE

    ollama = Stranger(answer, **{"mine:latest": {"owned_by": "library"}})
    ollama.told["/api/show"] = {
        "template": "{{ if .Suffix }}<fim_prefix>{{ .Prompt }}<fim_suffix>{{ .Suffix "
        "}}<fim_middle>{{ end }}",
        "details": {"family": "qwen2"},
        "capabilities": ["completion"],
    }
    studio = Stranger(answer, vectors={"owned_by": "organization_owner"}, mine={"owned_by": "x"})
    studio.told["/api/v0/models"] = {
        "data": [
            {"id": "vectors", "type": "embeddings"},
            {"id": "mine", "type": "llm", "arch": "starcoder2", "loaded_context_length": 512},
        ]
    }
    for server in (ollama, studio):
        async with engine_of(server) as engine:
            await engine.ask(completion(), "c").future
            assert engine.status.model.startswith("mine")
        assert server.asked_bodies[-1]["prompt"].startswith("<fim_prefix>")
