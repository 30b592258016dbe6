"""What clients of OpenAI's API, llama.cpp and vLLM send: taken, obeyed, or refused by name."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from served import CLIENT, KEY, Served
from text_cases import data_beside, data_cases

from accel.verification.sampling import Sampling
from lsp_server.engine.service import EngineService
from lsp_server.shared.contract.jobs import GenerateJob

PROMPT = "def read_lines(path):\n    with open(path) as file:\n        return"
CHAT = [{"role": "user", "content": "Say hello, hello, hello."}]
TOKENS = 24


def completed(server: Served, **fields: Any) -> dict[str, Any]:
    answer = server.post("/v1/completions", {"prompt": PROMPT, "max_tokens": TOKENS, **fields})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def text_of(server: Served, **fields: Any) -> str:
    text: str = completed(server, **fields)["choices"][0]["text"]
    return text


def asked(server: Served, method: str, path: str, **headers: str) -> httpx2.Response:
    return CLIENT.request(method, f"{server.url}{path}", headers={**server.headers, **headers})


# Addresses


def test_the_model_is_told_by_its_id(server: Served) -> None:
    (listed,) = server.get("/v1/models").json()["data"]
    assert server.get(f"/v1/models/{listed['id']}").json() == listed


@data_cases("form")
def test_ids_with_slashes_and_ends_of_files_name_the_model(server: Served, form: str) -> None:
    (listed,) = server.get("/v1/models").json()["data"]
    for name in (listed["id"], listed["id"].upper()):
        answer = asked(server, "GET", f"/v1/models/{form.format(name)}")
        assert answer.status_code == 200, answer.text
        assert answer.json()["id"] == form.format(name).replace("%2F", "/")
        assert answer.json()["object"] == "model"


@pytest.mark.parametrize("name", ["gpt-4o", "owner/other", "models", "owner%2Fother"])
def test_other_models_are_not_there(server: Served, name: str) -> None:
    answer = server.get(f"/v1/models/{name}")
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"


@data_cases("path")
def test_slashes_too_many_are_one(server: Served, path: str) -> None:
    assert asked(server, "GET", path).json()["data"]
    posted = path.replace("models", "completions")
    answer = server.post(posted, {"prompt": "x = ", "max_tokens": 1})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "value",
    [
        f"Bearer {KEY}",
        f"Bearer  {KEY}",
        f"Bearer   {KEY}",
        f"bearer {KEY}",
        f"bearer  {KEY}",
        f"BEARER {KEY}",
        f"Bearer \t{KEY}",
    ],
)
def test_a_key_stands_behind_any_bearer(server: Served, value: str) -> None:
    assert asked(server, "GET", "/v1/models", authorization=value).status_code == 200


@pytest.mark.parametrize("value", [f"Bearer{KEY}", f"Bearer {KEY} x", "Bearer", "Bearer x  y"])
def test_anything_else_is_no_key(server: Served, value: str) -> None:
    assert asked(server, "GET", "/v1/models", authorization=value).status_code == 401


# Forms of values


@data_cases()
def test_forms_of_values_say_the_same(
    server: Served, fields: dict[str, Any], same_as: dict[str, Any]
) -> None:
    assert text_of(server, **fields) == text_of(server, **same_as)


@pytest.mark.parametrize("seed", [-1, -1.0, None])
def test_without_a_seed_every_answer_is_another(server: Served, seed: float | None) -> None:
    texts = {text_of(server, seed=seed, temperature=1.5) for _ in range(4)}
    assert len(texts) > 1


@pytest.mark.parametrize(
    "fields",
    [
        *({"max_tokens": 16.5}, {"max_tokens": "16"}, {"max_tokens": True}, {"max_tokens": -3}),
        *({"top_p": 1.1}, {"top_p": -0.1}, {"seed": 1.5}, {"logprobs": 21}, {"logprobs": "x"}),
        *({"stop_token_ids": ["a"]}, {"stop_token_ids": [-1]}, {"stop_token_ids": {}}),
        *({"logit_bias": "x"}, {"logit_bias": [[1]]}, {"logit_bias": {"1": "x"}}),
        *({"logit_bias": {"1": True}}, {"logit_bias": [[1.5, 1]]}, {"logit_bias": {"1": 1e9}}),
        *({"logit_bias": {"99999999": 1}}, {"logit_bias": [[-5, 1]]}, {"logit_bias": [["", 1]]}),
        *({"repetition_penalty": 0}, {"repeat_penalty": -1}, {"presence_penalty": 1e9}),
        *({"repetition_penalty": 1.2, "repeat_penalty": 1.3}, {"repeat_last_n": -2}),
        *({"min_p": 2}, {"ignore_eos": "yes"}, {"samplers": ["magic"]}, {"samplers": "kp"}),
        *({"top_logprobs": 2, "logprobs": False}, {"prompt": []}, {"prompt": None}),
        *({"prompt": ["a", 1]}, {"prompt": [["a"]]}, {"prompt": ["x"] * 129}, {"prompt": 7}),
        *({"prompt": [[1, 2]], "suffix": "b"}, {"prompt": ["a", [1]], "suffix": "b"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("stream", [False, True])
def test_wrong_values_are_refused(server: Served, fields: dict[str, Any], stream: bool) -> None:
    asked = {"prompt": PROMPT, "max_tokens": 2, "stream": stream, **fields}
    answer = server.post("/v1/completions", asked)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_no_tokens_compute_the_prompt_alone(server: Served) -> None:
    told = completed(server, max_tokens=0, prompt="a prompt of its own = ")
    (choice,) = told["choices"]
    assert (choice["text"], choice["finish_reason"]) == ("", "length")
    assert told["usage"]["prompt_tokens"] > 3
    assert told["usage"]["completion_tokens"] == 0
    again = completed(server, max_tokens=1, prompt="a prompt of its own = ")
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] > 3
    chat = server.post("/v1/chat/completions", {"messages": CHAT, "max_tokens": 0}).json()
    assert chat["choices"][0]["message"]["content"] == ""
    events = server.events("/v1/completions", {"prompt": "x", "max_tokens": 0, "stream": True})
    assert events[-2][1]["choices"][0]["finish_reason"] == "length"
    assert events[-1][1] == "[DONE]"


@pytest.mark.parametrize("tokens", [-1, -2, -1.0])
def test_below_no_tokens_are_as_many_as_come(server: Served, tokens: float) -> None:
    free = text_of(server, max_tokens=200)
    stop = free[len(free) // 2 :][:6]
    assert text_of(server, max_tokens=tokens, stop=stop) == free[: free.index(stop)]
    infill = {"input_prefix": PROMPT, "input_suffix": "\n", "n_predict": tokens, "stop": ["\n"]}
    assert server.post("/infill", infill).json()["stop_type"] in ("word", "eos")


@data_cases("content")
def test_messages_without_text_are_empty(server: Served, content: Any) -> None:
    message = {"role": "assistant", "content": content}
    if content == "left out":
        del message["content"]
    asked = {"messages": [*CHAT, message, *CHAT], "max_tokens": 8}
    empty = {"messages": [*CHAT, {"role": "assistant", "content": ""}, *CHAT], "max_tokens": 8}
    answer = server.post("/v1/chat/completions", asked)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"] == server.post("/v1/chat/completions", empty).json()["usage"] | {
        "prompt_tokens_details": answer.json()["usage"]["prompt_tokens_details"]
    }


@data_cases("content")
def test_parts_are_one_text(server: Served, content: Any) -> None:
    whole, parts = (
        server.post(
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": each}], "max_tokens": 8},
        ).json()
        for each in (CHAT[0]["content"], content)
    )
    assert parts["choices"] == whole["choices"]
    assert parts["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]


@data_cases()
def test_messages_that_the_model_cannot_read_are_refused(server: Served, message: Any) -> None:
    answer = server.post("/v1/chat/completions", {"messages": [*CHAT, message], "max_tokens": 2})
    assert answer.status_code == 400, answer.text


# Several prompts


PROMPTS: list[Any] = [PROMPT, "class Point:\n    def", [10, 20, 30], "x = "]


def test_every_prompt_of_a_list_is_answered(server: Served) -> None:
    alone = [completed(server, prompt=[prompt], logprobs=1) for prompt in PROMPTS]
    single = [completed(server, prompt=prompt, logprobs=1) for prompt in PROMPTS]
    together = completed(server, prompt=PROMPTS, logprobs=1)
    assert [choice["index"] for choice in together["choices"]] == [0, 1, 2, 3]
    for number, choice in enumerate(together["choices"]):
        for other in (alone, single):
            assert choice == other[number]["choices"][0] | {"index": number}
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert together["usage"][name] == sum(one["usage"][name] for one in alone)
    ids = completed(server, prompt=[[10, 20, 30], [5]], max_tokens=2)
    assert ids["usage"]["prompt_tokens"] == 4


def test_a_list_of_prompts_streams_by_index(server: Served) -> None:
    asked = {"prompt": PROMPTS, "max_tokens": TOKENS, "stop": ["\n\n"]}
    whole = server.post("/v1/completions", asked).json()
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *events, (_, cost), (_, done) = server.events("/v1/completions", {**asked, **options})
    assert done == "[DONE]"
    assert cost["usage"]["total_tokens"] == whole["usage"]["total_tokens"]
    for number, choice in enumerate(whole["choices"]):
        mine = [told["choices"][0] for _, told in events if told["choices"][0]["index"] == number]
        assert "".join(piece["text"] for piece in mine) == choice["text"]
        reasons = [piece["finish_reason"] for piece in mine]
        assert reasons == [None] * (len(mine) - 1) + [choice["finish_reason"]]


def test_a_bad_prompt_of_a_list_fails_the_answer(server: Served) -> None:
    asked = {"prompt": ["x = ", [1 << 30]], "max_tokens": 2}
    assert server.post("/v1/completions", asked).status_code == 400
    events = server.events("/v1/completions", {**asked, "stream": True})
    assert "token" in events[-1][1]["error"]["message"]


# Log probabilities


@pytest.mark.parametrize("wanted", [False, None])
def test_no_logprobs_are_told_where_none_are_asked_for(server: Served, wanted: Any) -> None:
    assert completed(server, logprobs=wanted)["choices"][0]["logprobs"] is None
    for value in (wanted, 0):
        asked = {"messages": CHAT, "max_tokens": 4, "logprobs": value}
        answer = server.post("/v1/chat/completions", asked).json()
        assert answer["choices"][0]["logprobs"] is None


@data_cases()
def test_logprobs_are_told_as_asked(server: Served, fields: dict[str, Any], likeliest: int) -> None:
    told = completed(server, **fields)["choices"][0]["logprobs"]
    assert [len(one) for one in told["top_logprobs"]] == [likeliest] * len(told["tokens"])
    if fields["logprobs"]:
        asked = {"messages": CHAT, "max_tokens": 4, **fields}
        content = server.post("/v1/chat/completions", asked).json()["choices"][0]["logprobs"]
        assert all(len(one["top_logprobs"]) == likeliest for one in content["content"])


def test_logprobs_are_of_the_model_before_biases_and_penalties(server: Served) -> None:
    free = completed(server, logprobs=0, max_tokens=1)["choices"][0]["logprobs"]
    bias = {"logit_bias": [[" ", 50], ["\n", 50]], "presence_penalty": 2}
    bent = completed(server, logprobs=5, max_tokens=1, **bias)["choices"][0]["logprobs"]
    assert bent["tokens"] != free["tokens"]
    assert bent["token_logprobs"][0] < free["token_logprobs"][0]
    assert bent["top_logprobs"][0][free["tokens"][0]] == free["token_logprobs"][0]


# What does not fit


@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_that_is_too_long_has_openais_code(server: Served, stream: bool) -> None:
    long = "word " * 9000
    for path, fields in (
        ("/v1/completions", {"prompt": long}),
        ("/v1/completions", {"prompt": long, "max_tokens": 0}),
        ("/v1/completions", {"prompt": [1] * 20_000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": long}]}),
    ):
        answer = server.post(path, {**fields, "stream": stream})
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["code"] == "context_length_exceeded"
        assert error["type"] == "invalid_request_error"
        assert "maximum context length" in error["message"]


# Fields that change what is written


DATA = data_beside(__file__)
OBEYED: list[dict[str, Any]] = DATA["OBEYED"]


SAMPLING_FIELDS = {item.name for item in dataclasses.fields(Sampling)} - {"logit_bias"}


def job_of(fields: dict[str, Any]) -> GenerateJob:
    """What ``fields`` ask for, as the engine takes it."""
    names = {"repeat_penalty": "repetition_penalty", "repeat_last_n": "last_tokens"}
    names |= {"stop_token_ids": "stop_tokens", "ignore_eos": "ignore_end", "n_indent": "min_indent"}
    values = {names.get(name, name): value for name, value in fields.items()}
    if "repeat_penalty" in fields:
        values.setdefault("last_tokens", 64)
    if values.get("last_tokens") == -1:
        values["last_tokens"] = 1 << 30
    bias = values.pop("logit_bias", [])
    pairs = list(bias.items()) if isinstance(bias, dict) else bias
    values["logit_bias"] = [
        (int(named) if str(named).isdigit() else named, None if value is False else value)
        for named, value in pairs
    ]
    drawn = {name: values.pop(name) for name in list(values) if name in SAMPLING_FIELDS}
    values["sampling"] = Sampling(**drawn)
    return GenerateJob(**{"text": PROMPT, "max_tokens": TOKENS, "plain": True, **values})


@pytest.mark.parametrize("fields", OBEYED, ids=str)
def test_what_is_asked_is_obeyed_as_a_local_engine_does_without_drafts(
    server: Served, local: EngineService, fields: dict[str, Any]
) -> None:
    expected = local.write(job_of(fields)).text
    drafted = local.write(replace(job_of(fields), plain=False)).text
    streamed = server.events(
        "/v1/completions", {"prompt": PROMPT, "max_tokens": TOKENS, **fields, "stream": True}
    )
    told = "".join(told["choices"][0]["text"] for _, told in streamed[:-1])
    assert text_of(server, **fields) == drafted == told == expected


def test_what_is_asked_changes_the_text(server: Served) -> None:
    """Otherwise the test above would say little."""
    free = text_of(server)
    changed = [fields for fields in OBEYED[:10] if text_of(server, **fields) != free]
    assert len(changed) >= 7


def test_a_stop_token_ends_the_text_before_itself(server: Served, local: EngineService) -> None:
    free = text_of(server)
    tokens = local.engine.tokenizer.encode(free).tolist()
    for token in (tokens[3], tokens[6]):
        stopped = completed(server, stop_token_ids=[token])["choices"][0]
        first = tokens.index(token)
        assert stopped["text"] == local.engine.tokenizer.decode(tokens[:first])
        assert stopped["finish_reason"] == "stop"


def test_ends_that_are_ignored_are_not_written(server: Served, local: EngineService) -> None:
    """Whatever ends a text is made likely; then it is never chosen."""
    ends = sorted(local.engine.end_tokens)
    likely = {"logit_bias": {str(token): 1000 for token in ends}}
    ended = completed(server, **likely)
    assert (ended["choices"][0]["text"], ended["choices"][0]["finish_reason"]) == ("", "stop")
    going_on = completed(server, ignore_eos=True, **likely)
    assert going_on["usage"]["completion_tokens"] == TOKENS
    assert going_on["choices"][0]["finish_reason"] == "length"


def test_a_line_that_is_less_indented_ends_the_text(server: Served) -> None:
    for fields in ({"prompt": PROMPT}, {"prompt": "if a:\n    if b:\n        return 1\n"}):
        free = text_of(server, **fields, max_tokens=80)
        lines = free.split("\n")
        least = 8
        expected = [lines[0]]
        for line in lines[1:]:
            if line.strip() and len(line) - len(line.lstrip(" \t")) < least:
                break
            expected.append(line)
        assert text_of(server, **fields, max_tokens=80, n_indent=least) == "\n".join(expected)


def test_samplers_that_are_left_out_do_not_count(server: Served) -> None:
    sampled = {"temperature": 1.5, "seed": 4}
    limited = {**sampled, "top_k": 2, "presence_penalty": 2.0}
    free = text_of(server, **sampled)
    assert text_of(server, **limited) != free
    assert text_of(server, **limited, samplers=["temperature", "top_p"]) == free
    named = ["penalties", "top_k", "temperature"]
    assert text_of(server, **limited, samplers=named) == text_of(server, **limited)


@data_cases()
def test_what_cannot_be_done_is_refused_by_name(server: Served, name: str, value: Any) -> None:
    for path, asked in (
        ("/v1/completions", {"prompt": "x", "max_tokens": 1}),
        ("/v1/chat/completions", {"messages": CHAT, "max_tokens": 1}),
        ("/infill", {"input_prefix": "x", "input_suffix": "", "n_predict": 1}),
    ):
        for stream in (False, True):
            answer = server.post(path, {**asked, name: value, "stream": stream})
            assert answer.status_code == 400, (path, answer.text)
            assert name in answer.json()["error"]["message"]


HARMLESS: list[tuple[str, Any]] = DATA["HARMLESS"]


def test_every_field_that_changes_nothing_passes(server: Served) -> None:
    passing = dict(HARMLESS)
    assert text_of(server, **passing) == text_of(server)
    offered = {"tools": [{"type": "function"}], "tool_choice": "none"}
    answers = [
        server.post("/v1/chat/completions", {"messages": CHAT, "max_tokens": 8, **more}).json()
        for more in ({}, passing, offered)
    ]
    assert len({answer["choices"][0]["message"]["content"] for answer in answers}) == 1
