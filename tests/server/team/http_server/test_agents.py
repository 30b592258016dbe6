"""What coding agents and local clients ask: tools and their answers in chats and responses, answers
by a schema, Ollama's API, addresses without ``/v1``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from engine_stand_in import EngineStandIn
from openai import OpenAI
from openai.types.responses import Response
from served import CLIENT, KEY, Served, events_of
from text_cases import data_beside, data_cases

from lsp_server.team.http_server.application import app
from lsp_server.team.http_server.keys import Keys
from lsp_server.team.http_server.tool_calls import calls_in

DATA = data_beside(__file__)
EDIT = DATA["EDIT"]
TOOLS = [{"type": "function", "function": EDIT}]
ARGUMENTS = {"path": "a.py", "line": 3}
HERMES = f'<tool_call>\n{{"name": "edit", "arguments": {json.dumps(ARGUMENTS)}}}\n</tool_call>'
QWEN = (
    "<tool_call>\n<function=edit>\n<parameter=path>\na.py\n</parameter>\n"
    "<parameter=line>\n3\n</parameter>\n</function>\n</tool_call>"
)
ASKED = {"role": "user", "content": "Change line 3."}


def asked_of(
    written: str, path: str, body: Any, tmp_path: Path, *, method: str = "POST", **status: Any
) -> tuple[httpx2.Response, list[Any]]:
    """What a server answers whose model writes this, and what the model was asked."""
    engine = EngineStandIn(lambda _: written, **{"takes_tools": True, **status})
    keys = tmp_path / "keys"
    keys.write_text(f"ann {KEY}\n")

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app(engine, Keys(keys)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            headers = {"x-api-key": KEY}
            return await client.request(method, path, json=body, headers=headers)

    return asyncio.run(ask()), engine.jobs


# Calls in texts

BOTH = [("hermes", HERMES), ("qwen", QWEN)]


@pytest.mark.parametrize(("form", "text"), BOTH)
def test_calls_are_found_in_texts(form: str, text: str) -> None:
    content, (call, other) = calls_in(f"I change it.\n{text}\n{text}", TOOLS)
    assert content == "I change it."
    assert (call.name, json.loads(call.arguments)) == ("edit", ARGUMENTS), form
    assert call.id != other.id


@pytest.mark.parametrize(
    "text",
    [
        *("no call", HERMES[:-3], "<tool_call>\n{\n</tool_call>", "<tool_call>5</tool_call>"),
        *("<tool_call></tool_call>", '<tool_call>{"name": 5}</tool_call>', "</tool_call>"),
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert calls_in(text, TOOLS) == (text, [])


# Chats


@pytest.mark.parametrize(("form", "text"), BOTH)
def test_a_chat_calls_a_function(tmp_path: Path, form: str, text: str) -> None:
    body = {"messages": [ASKED], "tools": TOOLS, "tool_choice": "auto"}
    answer, (job,) = asked_of(f"Yes.\n{text}", "/v1/chat/completions", body, tmp_path)
    (choice,) = answer.json()["choices"]
    assert choice["finish_reason"] == "tool_calls", form
    assert choice["message"]["content"] == "Yes."
    (call,) = choice["message"]["tool_calls"]
    assert (call["type"], call["function"]["name"]) == ("function", "edit")
    assert json.loads(call["function"]["arguments"]) == ARGUMENTS
    assert job.tools == TOOLS
    streamed, _ = asked_of(
        f"Yes.\n{text}", "/v1/chat/completions", {**body, "stream": True}, tmp_path
    )
    *chunks, done = [told for _, told in events_of(iter(streamed.text.splitlines()))]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Yes."
    (calls,) = [delta["tool_calls"] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["index"] == 0
    assert json.loads(calls[0]["function"]["arguments"]) == ARGUMENTS
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert done == "[DONE]"


def test_a_conversation_with_tools_reaches_the_template(tmp_path: Path) -> None:
    function = {"name": "edit", "arguments": json.dumps(ARGUMENTS)}
    called = {"id": "c1", "type": "function", "function": function}
    messages = [
        *({"role": "developer", "content": "Be brief."}, ASKED),
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "done"}]},
    ]
    more = {"reasoning_effort": "low", "chat_template_kwargs": {"a": 1}, "store": True}
    body = {"messages": messages, "tools": TOOLS, **more}
    _, (job,) = asked_of("ok", "/v1/chat/completions", body, tmp_path)
    system, _, assistant, tool = job.messages
    assert system == {"role": "system", "content": "Be brief."}
    assert assistant["tool_calls"][0]["function"]["arguments"] == ARGUMENTS
    assert tool == {"role": "tool", "content": "done", "tool_call_id": "c1"}
    assert job.template_values == {"reasoning_effort": "low", "a": 1}
    _, (job,) = asked_of("ok", "/v1/chat/completions", body, tmp_path, takes_tools=False)
    assert [message["role"] for message in job.messages] == ["system", "user", "assistant", "user"]
    assert '"name": "edit"' in job.messages[2]["content"]
    assert "done" in job.messages[3]["content"]


@data_cases()
def test_thinking_is_switched_off(tmp_path: Path, fields: Any, thinks: bool) -> None:
    body = {"messages": [ASKED], **fields}
    _, (job,) = asked_of("ok", "/v1/chat/completions", body, tmp_path)
    assert job.thinks is thinks
    assert job.template_values.get("reasoning_effort") != "none"


def test_tools_that_a_model_does_not_know_are_left_out(tmp_path: Path) -> None:
    body = {"messages": [ASKED], "tools": TOOLS}
    for stream in (False, True):
        answer, (job,) = asked_of(
            "ok", "/v1/chat/completions", {**body, "stream": stream}, tmp_path, takes_tools=False
        )
        assert answer.status_code == 200
        assert "left out" in answer.headers["x-redraft-tools"]
        assert job.tools == []


# Responses


def response_events(text: str) -> Iterator[dict[str, Any]]:
    for number, (name, told) in enumerate(events_of(iter(text.splitlines()))):
        assert (told["type"], told["sequence_number"]) == (name, number)
        yield told


@pytest.mark.parametrize("text", ["Hello.", HERMES, f"Yes.\n{QWEN}", ""])
def test_responses(tmp_path: Path, text: str) -> None:
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "edit", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "done"},
    ]
    body = {
        "model": "any",
        "instructions": "Be brief.",
        "input": history,
        "tools": [{"type": "function", **EDIT, "strict": False}, {"type": "web_search"}],
        "store": False,
        "include": [],
        "parallel_tool_calls": True,
        "reasoning": {"effort": "low"},
    }
    answer, (job,) = asked_of(text, "/v1/responses", body, tmp_path)
    assert answer.status_code == 200, answer.text
    assert [each["role"] for each in job.messages] == ["system", "user", "assistant", "tool"]
    assert job.tools == TOOLS
    whole = answer.json()
    parsed = Response.model_validate(whole)
    content, calls = calls_in(text, TOOLS)
    assert parsed.output_text == content
    called = [item for item in whole["output"] if item["type"] == "function_call"]
    assert [(item["name"], json.loads(item["arguments"])) for item in called] == [
        (call.name, ARGUMENTS) for call in calls
    ]
    streamed, _ = asked_of(text, "/v1/responses", {**body, "stream": True}, tmp_path)
    events = list(response_events(streamed.text))
    assert events[0]["type"] == "response.created"
    assert events[-1]["type"] == "response.completed"
    deltas = [told["delta"] for told in events if told["type"] == "response.output_text.delta"]
    assert "".join(deltas) == content
    ends = [told["item"] for told in events if told["type"] == "response.output_item.done"]
    assert ends == events[-1]["response"]["output"]
    begun = [told for told in events if told["type"] == "response.output_item.added"]
    assert len(begun) == len(ends)


def test_openais_package_reads_responses(server: Served) -> None:
    client = OpenAI(base_url=f"{server.url}/v1", api_key=KEY)
    whole = client.responses.create(model="any", input="Say hello.", max_output_tokens=8)
    assert whole.status == "incomplete"
    assert whole.usage is not None
    assert whole.usage.output_tokens == 8
    with client.responses.stream(model="any", input="Say hello.", max_output_tokens=8) as stream:
        kinds = [told.type for told in stream]
    assert kinds[-1] == "response.incomplete"
    assert "response.output_text.delta" in kinds


@data_cases()
def test_responses_that_cannot_be_made(tmp_path: Path, changes: Any, said: str) -> None:
    answer, _ = asked_of("", "/v1/responses", {"input": "hi", **changes}, tmp_path)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


# Schemas

SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["ann", "ben"]}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("temperature", [0.0, 1.3])
def test_an_answer_fits_its_schema(server: Served, temperature: float) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    asked = {"messages": [ASKED], "max_tokens": 60, "temperature": temperature, "seed": 3}
    body = {**asked, "response_format": form}
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 200, answer.text
    (choice,) = answer.json()["choices"]
    assert choice["finish_reason"] == "stop"
    told = json.loads(choice["message"]["content"])
    assert set(told) == {"name", "old"}
    predicted = {"prediction": {"type": "content", "content": '{"name": "ben", "old": true}'}}
    drafted = server.post("/v1/chat/completions", {**body, **predicted}).json()
    assert drafted["choices"][0]["message"] == choice["message"]
    llama_cpp = {"prompt": "x", "n_predict": 60, "json_schema": SCHEMA}
    assert set(json.loads(server.post("/completion", llama_cpp).json()["content"])) == set(told)


NAMED = {"type": "function", "function": {"name": "choose"}}
CHOOSE = {"name": "choose", "parameters": {"$ref": "#/$defs/x", "$defs": {"x": SCHEMA}}}


@pytest.mark.parametrize("choice", ["required", NAMED, {"type": "function", "name": "choose"}])
def test_a_call_that_has_to_be_made_is_made(server: Served, choice: Any) -> None:
    tools = [{"type": "function", "function": CHOOSE}]
    tools += [] if choice == "required" else TOOLS
    body = {"messages": [ASKED], "max_tokens": 99, "tools": tools, "tool_choice": choice}
    answer = server.post("/v1/chat/completions", body)
    assert answer.status_code == 200, answer.text
    (chosen,) = answer.json()["choices"]
    (call,) = chosen["message"]["tool_calls"]
    assert (chosen["message"]["content"], chosen["finish_reason"]) == (None, "tool_calls")
    assert call["function"]["name"] == "choose"
    assert set(json.loads(call["function"]["arguments"])) == {"name", "old"}
    flat = {"type": "function", **CHOOSE}
    asked = {"input": "Choose.", "max_output_tokens": 99, "tools": [flat], "tool_choice": choice}
    (item,) = server.post("/v1/responses", asked).json()["output"]
    assert (item["type"], item["name"]) == ("function_call", "choose")


@pytest.mark.parametrize("choice", ["any", {"function": {"name": "other"}}, {"function": 5}, 5])
def test_calls_of_nothing_are_refused(tmp_path: Path, choice: Any) -> None:
    body = {"messages": [ASKED], "tools": TOOLS, "tool_choice": choice}
    answer, jobs = asked_of("", "/v1/chat/completions", body, tmp_path)
    assert (answer.status_code, jobs) == (400, [])
    body["tool_choice"] = "required"
    answer, jobs = asked_of("", "/v1/chat/completions", body, tmp_path, takes_tools=False)
    assert "chat template has no tools" in answer.json()["error"]["message"]


def test_a_schema_that_cannot_be_followed_is_refused(server: Served) -> None:
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "no such type"}}}
    asked = {"messages": [ASKED], "max_tokens": 4, "response_format": form}
    answer = server.post("/v1/chat/completions", asked)
    assert answer.status_code == 400
    assert "schema" in answer.json()["error"]["message"]


# Ollama


def lines(answer: httpx2.Response) -> list[Any]:
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def test_ollamas_chats(tmp_path: Path) -> None:
    body = {"model": "any", "messages": [ASKED], "tools": TOOLS, "options": {"num_predict": 9}}
    answer, (job,) = asked_of(f"Yes.\n{HERMES}", "/api/chat", body, tmp_path)
    told = lines(answer)
    assert "".join(each["message"]["content"] for each in told) == "Yes."
    (calls,) = [each["message"]["tool_calls"] for each in told if "tool_calls" in each["message"]]
    assert calls == [{"function": {"name": "edit", "arguments": ARGUMENTS}}]
    assert (told[-1]["done"], told[-1]["done_reason"]) == (True, "stop")
    assert job.max_tokens == 9
    (whole, _) = asked_of("ok", "/api/chat", {**body, "stream": False}, tmp_path)
    assert whole.json()["message"] == {"role": "assistant", "content": "ok"}
    loaded, jobs = asked_of("", "/api/chat", {"model": "any"}, tmp_path)
    assert (loaded.json()["done_reason"], jobs) == ("load", [])


def test_ollamas_generation(tmp_path: Path) -> None:
    body = {"model": "any", "prompt": "x = ", "suffix": "\n", "stream": False}
    answer, (job,) = asked_of("1", "/api/generate", body, tmp_path)
    assert (answer.json()["response"], answer.json()["done"]) == ("1", True)
    assert (job.text, job.suffix) == ("x = ", "\n")
    _, (job,) = asked_of("1", "/api/generate", {"prompt": "hi", "system": "s"}, tmp_path)
    assert [each["role"] for each in job.messages] == ["system", "user"]
    _, (job,) = asked_of("1", "/api/generate", {"prompt": "hi"}, tmp_path, chats=False)
    assert job.text == "hi"
    _, (job,) = asked_of("{}", "/api/generate", {"prompt": "hi", "format": "json"}, tmp_path)
    assert "%json" in job.grammar


def test_ollamas_models_and_errors(tmp_path: Path) -> None:
    def told(path: str, method: str = "GET", **body: Any) -> Any:
        answer, _ = asked_of("", path, body, tmp_path, method=method, max_tokens=2048)
        return answer.json()

    (model,) = told("/api/tags")["models"]
    assert model["name"] == model["model"] == "m"
    shown = told("/api/show", "POST", model="m")
    assert shown["model_info"]["redraft.context_length"] == 2048
    assert shown["capabilities"] == ["completion", "insert", "tools"]
    assert told("/api/version")["version"]
    assert told("/api/generate", "POST", prompt=5)["error"].startswith("prompt is a text")
    assert isinstance(told("/api/nothing")["error"], str)


# Addresses


def test_addresses_without_a_version(tmp_path: Path) -> None:
    for path, body in (
        ("/chat/completions", {"messages": [ASKED]}),
        ("/completions", {"prompt": "x"}),
        ("/responses", {"input": "hi"}),
    ):
        answer, _ = asked_of("ok", path, body, tmp_path)
        assert answer.status_code == 200, answer.text
    listed, _ = asked_of("", "/models", None, tmp_path, method="GET")
    assert listed.json()["data"][0]["id"] == "m"
    props, _ = asked_of("", "/props", None, tmp_path, method="GET", max_tokens=2048)
    assert props.json()["default_generation_settings"]["n_ctx"] == 2048


def test_a_wrong_address_is_told_the_right_ones(tmp_path: Path) -> None:
    answer, _ = asked_of("", "/v1/embeddings", {}, tmp_path)
    assert answer.status_code == 404
    message = answer.json()["error"]["message"]
    for route in ("POST /v1/chat/completions", "POST /v1/responses", "POST /api/chat"):
        assert route in message


def test_a_key_by_another_header(server: Served) -> None:
    url = f"{server.url}/v1/models"
    assert CLIENT.get(url, headers={"x-api-key": KEY}).status_code == 200
    assert CLIENT.get(url, headers={"x-api-key": "wrong"}).status_code == 401
