"""The ``openai`` package against the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from openai import OpenAI
from served import CHAT_TEMPLATE, KEY, OTHER_KEY, TOOLS_OF_TEMPLATE, Served, chat_model, serving

PROMPT = "def read_lines(path):\n    with open(path) as file:\n        return"
CODE = "def total(values):\n    result = 0\n    for value in values:\n        result += value\n"


@pytest.fixture
def client(server: Served) -> OpenAI:
    return OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0)


def test_the_models_are_listed(client: OpenAI) -> None:
    (model,) = client.models.list().data
    assert model.object == "model"
    assert "/" not in model.id


def test_a_text_in_one_piece_and_streamed_is_the_same(client: OpenAI) -> None:
    whole = client.completions.create(model="any", prompt=PROMPT, max_tokens=24)
    chunks = list(
        client.completions.create(
            model="any",
            prompt=PROMPT,
            max_tokens=24,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    streamed = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
    assert streamed == whole.choices[0].text
    assert whole.usage is not None
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert chunks[-2].choices[0].finish_reason == whole.choices[0].finish_reason


def test_token_ids_go_on_as_text_does_that_spells_them(client: OpenAI) -> None:
    first = client.completions.create(model="any", prompt=[10, 20, 30], max_tokens=4, logprobs=0)
    assert first.usage is not None
    assert first.usage.prompt_tokens == 3


def test_a_seed_repeats_a_text_and_another_seed_changes_it(client: OpenAI) -> None:
    texts = [
        client.completions.create(
            model="any", prompt=PROMPT, max_tokens=24, temperature=1.0, seed=seed
        )
        .choices[0]
        .text
        for seed in (7, 7, 8, 9)
    ]
    assert texts[0] == texts[1]
    assert len(set(texts)) > 1


def test_a_stop_text_is_never_told(client: OpenAI) -> None:
    free = client.completions.create(model="any", prompt=PROMPT, max_tokens=32).choices[0].text
    stop = free[5:9]
    chunks = client.completions.create(
        model="any", prompt=PROMPT, max_tokens=32, stop=[stop, "never there"], stream=True
    )
    streamed = "".join(chunk.choices[0].text for chunk in chunks)
    assert streamed == free[: free.index(stop)]


def test_logprobs_are_of_the_tokens_and_the_likeliest_is_taken(client: OpenAI) -> None:
    answer = client.completions.create(model="any", prompt=PROMPT, max_tokens=12, logprobs=3)
    told = answer.choices[0].logprobs
    assert told is not None
    assert told.tokens is not None
    assert told.token_logprobs is not None
    assert told.top_logprobs is not None
    assert "".join(told.tokens) == answer.choices[0].text
    for token, logprob, likeliest in zip(
        told.tokens, told.token_logprobs, told.top_logprobs, strict=True
    ):
        assert logprob <= 0
        assert len(likeliest) == 3
        assert likeliest[token] == max(likeliest.values()) == logprob


def test_a_suffix_is_filled_in_before(client: OpenAI) -> None:
    answer = client.completions.create(
        model="any",
        prompt="def area(width, height):\n    return ",
        suffix="\n\n\nprint(area(2, 3))\n",
        max_tokens=16,
    )
    assert answer.choices[0].text.strip()


def test_a_prediction_is_counted_and_changes_no_text(client: OpenAI) -> None:
    messages = [{"role": "user", "content": f"repeat:\n{CODE}"}]
    options = {"model": "any", "messages": messages, "max_tokens": 48}
    plain = client.chat.completions.create(**options)  # type: ignore[call-overload]
    predicted = client.chat.completions.create(
        **options, prediction={"type": "content", "content": plain.choices[0].message.content}
    )  # type: ignore[call-overload]
    assert predicted.choices[0].message.content == plain.choices[0].message.content
    details = predicted.usage.completion_tokens_details
    assert details.accepted_prediction_tokens > 10
    assert details.rejected_prediction_tokens >= 0
    assert plain.usage.completion_tokens_details.accepted_prediction_tokens == 0
    foreign = client.chat.completions.create(
        **options, prediction={"type": "content", "content": "zebra " * 20}
    )  # type: ignore[call-overload]
    assert foreign.choices[0].message.content == plain.choices[0].message.content
    assert foreign.usage.completion_tokens_details.rejected_prediction_tokens > 10


def test_a_chat_streams_with_logprobs(client: OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="any",
            messages=[
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "hello"}]},
                {"role": "assistant", "content": "hi"},
                {"role": "user", "content": "again"},
            ],
            max_tokens=12,
            stream=True,
            logprobs=True,
            top_logprobs=2,
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    tokens = [
        token.token
        for chunk in chunks
        if chunk.choices[0].logprobs is not None
        for token in chunk.choices[0].logprobs.content or []
    ]
    assert "".join(tokens) == text
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


def test_what_a_tool_answered_is_told_in_words_where_a_template_knows_no_tools(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    template = chat_model(folder) / "chat_template.jinja"
    template.write_text(CHAT_TEMPLATE.replace(TOOLS_OF_TEMPLATE, ""), encoding="utf-8")
    called: Any = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: Any = [
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "content": "x", "tool_call_id": "1"},
    ]
    with serving(tmp_path, folder) as server:
        client = OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0)
        raw = client.chat.completions.with_raw_response.create(
            model="any", messages=messages, tools=[{"type": "function", "function": {"name": "f"}}]
        )
    assert "left out" in raw.headers["x-redraft-tools"]
    assert raw.parse().choices[0].message.content is not None


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_not_done_is_refused(client: OpenAI, stream: bool) -> None:
    with pytest.raises(openai.BadRequestError, match="best_of has to equal n"):
        client.completions.create(model="any", prompt="x", n=2, best_of=3, stream=stream)
    with pytest.raises(openai.BadRequestError, match="token"):
        client.completions.create(model="any", prompt=[1 << 30], stream=stream)
    with pytest.raises(openai.BadRequestError, match="prompt has"):
        client.completions.create(model="any", prompt="word " * 9000, stream=stream)


def test_a_foreign_key_is_an_authentication_error(server: Served) -> None:
    for key in ("wrong", KEY[:-1], f"{OTHER_KEY}x"):
        with pytest.raises(openai.AuthenticationError):
            OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0).models.list()


def test_client_that_leaves_a_stream_is_no_error(client: OpenAI, server: Served) -> None:
    with client.completions.create(
        model="any", prompt=PROMPT, max_tokens=2000, stream=True
    ) as stream:
        next(iter(stream))
    assert client.completions.create(model="any", prompt=PROMPT, max_tokens=1).choices
    assert "Traceback" not in server.log.read_text()
