"""``/v1/apply`` as Relace's clients ask it, and chats as Morph's do: merged at once, or refused
with the places. What a model writes that is asked then is checked."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from engine_stand_in import EngineStandIn
from openai import OpenAI, UnprocessableEntityError
from served import CLIENT, KEY, Served
from text_cases import data_cases

from lsp_server.shared.contract.jobs import GenerateJob
from lsp_server.team.http_server.application import app
from lsp_server.team.http_server.keys import Keys

CODE = "def area(w, h):\n    return w * h\n\n\ndef edge(w, h):\n    return w + h\n\n\nprint(1)\n"
SNIPPET = "# ... existing code ...\ndef edge(w, h):\n    return 2 * (w + h)\n\n\nprint(1)\n"
MERGED = CODE.replace("w + h", "2 * (w + h)")
TWICE = "a = 1\nb = 2\nd = 4\na = 1\nb = 2\n"
FITS_TWICE = "...\na = 1\nc = 3\nb = 2\n...\n"
ONE_READING = "a = 1\nc = 3\nb = 2\nd = 4\na = 1\nb = 2\n"
CHAT = "<instruction>twice</instruction>\n<code>{}</code>\n<update>{}</update>"


@pytest.mark.parametrize("path", ["/v1/apply", "/v1/code/apply"])
@data_cases("names")
def test_both_spellings_are_taken_and_given(server: Served, path: str, names: Any) -> None:
    asked = dict(zip(names, (CODE, SNIPPET, "the whole edge"), strict=True))
    answer = server.post(path, {**asked, "language": "python", "model": "auto", "stream": False})
    assert answer.status_code == 200
    told = answer.json()
    assert told["merged_code"] == told["mergedCode"] == MERGED
    assert told["how"] == "exact"
    assert told["usage"]["total_tokens"] == 0


def test_line_ends_and_marks_stay(server: Served) -> None:
    code = "\ufeff" + CODE.replace("\n", "\r\n").removesuffix("\r\n")
    answer = server.post("/v1/apply", {"initial_code": code, "edit_snippet": SNIPPET})
    assert answer.json()["merged_code"] == code.replace("w + h", "2 * (w + h)")


def test_a_stream_has_it_in_one(server: Served) -> None:
    asked = {"initial_code": CODE, "edit_snippet": SNIPPET, "stream": True}
    first, last = server.events("/v1/apply", asked)
    assert first[1]["merged_code"] == MERGED
    assert last[1] == "[DONE]"


@pytest.mark.parametrize("asked_model", [False, True, "auto"])
def test_a_refusal_has_the_places(server: Served, asked_model: Any) -> None:
    asked = {"initial_code": TWICE, "edit_snippet": FITS_TWICE, "model": asked_model}
    answer = server.post("/v1/apply", asked)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["code"] == "ambiguous_snippet"
    assert "several places" in error["message"]
    assert [place["first_line"] for place in error["places"]] == [1, 4]
    assert all(place["text"] for place in error["places"])


@data_cases()
def test_what_is_wrong_is_named(server: Served, changes: dict[str, Any], said: str) -> None:
    asked = {"initial_code": CODE, "edit_snippet": SNIPPET, **changes}
    answer = server.post("/v1/apply", asked)
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_a_key_is_wanted(server: Served) -> None:
    asked = {"initial_code": CODE, "edit_snippet": SNIPPET}
    assert CLIENT.post(f"{server.url}/v1/apply", json=asked).status_code == 401


@pytest.mark.parametrize("base", ["/v1", "/v1/apply"])
def test_a_chat_of_a_file_and_a_snippet_is_merged(server: Served, base: str) -> None:
    client = OpenAI(base_url=server.url + base, api_key=KEY, max_retries=0)
    messages: Any = [{"role": "user", "content": CHAT.format(CODE, SNIPPET)}]
    answer = client.chat.completions.create(model="morph-v3-fast", messages=messages)
    assert answer.choices[0].message.content == MERGED
    assert answer.choices[0].finish_reason == "stop"
    chunks = list(client.chat.completions.create(model="m", messages=messages, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == MERGED
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_a_chat_that_is_not_clear_is_refused(server: Served) -> None:
    client = OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0)
    messages: Any = [{"role": "user", "content": CHAT.format(TWICE, FITS_TWICE)}]
    with pytest.raises(UnprocessableEntityError) as refused:
        client.chat.completions.create(model="m", messages=messages)
    body: Any = refused.value.body
    assert [place["first_line"] for place in body["places"]] == [1, 4]


OTHER_CHATS = {
    "a question before it": f"What is this? {CHAT.format('a = 1', 'a = 2')}",
    "a question behind it": f"{CHAT.format('a = 1', 'a = 2')}\nWhat is this?",
    "no update": "<code>a = 1</code>",
    "two borders": CHAT.format("a = 1</code>\n<update>", "a = 2"),
}


@pytest.mark.parametrize("case", OTHER_CHATS)
def test_any_other_chat_is_the_model_s(server: Served, case: str) -> None:
    asked = {"messages": [{"role": "user", "content": OTHER_CHATS[case]}], "max_tokens": 4}
    answer = server.post("/v1/chat/completions", asked)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] > 0


# What a model is asked

MADE_FOR_IT = "/models/FastApply-1.5B-v1.0-Q8_0.gguf"


def asked_of(
    answer: str, tmp_path: Path, loaded: str = MADE_FOR_IT, **fields: Any
) -> tuple[httpx2.Response, list[Any]]:
    """What a server answers whose model writes this, and what the model was asked."""
    engine = EngineStandIn(lambda _: answer, model=loaded)
    keys = tmp_path / "keys"
    keys.write_text(f"ann {KEY}\n")

    async def ask() -> httpx2.Response:
        transport = httpx2.ASGITransport(app(engine, Keys(keys)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            body = {"initial_code": TWICE, "edit_snippet": FITS_TWICE, **fields}
            headers = {"authorization": f"Bearer {KEY}"}
            return await client.post("/v1/apply", json=body, headers=headers)

    return asyncio.run(ask()), engine.jobs


def test_a_model_that_was_made_for_it_is_asked(tmp_path: Path) -> None:
    answer, jobs = asked_of(f"<updated-code>{ONE_READING}</updated-code>", tmp_path)
    assert answer.status_code == 200, answer.text
    assert answer.json()["merged_code"] == ONE_READING
    assert answer.json()["how"] == "model"
    (job,) = jobs
    assert isinstance(job, GenerateJob)
    assert job.messages is not None
    assert [role for role, _ in job.messages] == ["system", "user"]
    assert f"<code>{TWICE}</code>\n\n<update>{FITS_TWICE}</update>" in job.messages[1][1]
    assert job.prediction == f"<updated-code>{TWICE}</updated-code>"


@pytest.mark.parametrize("place", [1, 4])
def test_a_model_may_choose_among_the_places(tmp_path: Path, place: int) -> None:
    lines = TWICE.splitlines(keepends=True)
    chosen = "".join([*lines[:place], "c = 3\n", *lines[place:]])
    answer, _ = asked_of(f"<updated-code>{chosen}</updated-code>", tmp_path)
    assert answer.json()["merged_code"] == chosen


def test_line_ends_of_the_file_are_kept(tmp_path: Path) -> None:
    code = TWICE.replace("\n", "\r\n")
    written = f"<updated-code>\n{ONE_READING}\n</updated-code>\n"
    answer, _ = asked_of(written, tmp_path, initial_code=code)
    assert answer.json()["merged_code"] == ONE_READING.replace("\n", "\r\n")


def test_no_model_is_asked_where_none_is_wanted(tmp_path: Path) -> None:
    answer, jobs = asked_of("never", tmp_path, model=False)
    assert answer.status_code == 422
    assert jobs == []


def test_no_model_is_asked_where_it_is_clear(tmp_path: Path) -> None:
    answer, jobs = asked_of("never", tmp_path, initial_code=CODE, edit_snippet=SNIPPET)
    assert answer.json()["how"] == "exact"
    assert jobs == []


def test_another_model_is_not_asked(tmp_path: Path) -> None:
    answer, jobs = asked_of("never", tmp_path, loaded="/models/any-1.5b.gguf")
    assert (answer.status_code, jobs) == (422, [])


@data_cases()
def test_an_old_text_and_a_new_one_are_fields(
    tmp_path: Path, fields: dict[str, Any], merged: str | None
) -> None:
    given = {"edit_snippet": "", "relace_metadata": {"id": "1"}, "max_tokens": 9, **fields}
    answer, _ = asked_of("never", tmp_path, **given, model=False)
    assert (answer.status_code, answer.json().get("merged_code")) == (
        200 if merged else 422,
        merged,
    )


def test_the_instruction_reaches_a_model_that_was_made_for_it(tmp_path: Path) -> None:
    asked = {"initial_code": TWICE, "edit_snippet": FITS_TWICE, "instruction": "the first"}
    _, (job,) = asked_of("", tmp_path, **asked)
    assert "\n- the first\n\n<code>" in job.messages[1][1]


WRONG = {
    "no tags": ONE_READING,
    "no end": f"<updated-code>{ONE_READING}",
    "words before": f"Here: <updated-code>{ONE_READING}</updated-code>",
    "an empty file": "<updated-code></updated-code>",
    "fences": f"<updated-code>```\n{ONE_READING}```\n</updated-code>",
    "two files": f"<updated-code>{TWICE}</updated-code><updated-code>{TWICE}</updated-code>",
    "a line of its own": f"<updated-code>{ONE_READING}e = 5\n</updated-code>",
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_model_makes_up_is_refused(tmp_path: Path, case: str) -> None:
    answer, jobs = asked_of(WRONG[case], tmp_path)
    assert answer.status_code == 422, json.dumps(answer.json())
    assert len(jobs) == 1
