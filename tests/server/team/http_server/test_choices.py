"""Several answers in one request: one batch, the prompt computed once, a text for each seed."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from openai import OpenAI
from served import KEY, Served, events_of, metric, stream, wait_until_free
from text_cases import data_cases

PROMPT = "def read_lines(path):\n    with open(path) as file:\n        return"
OTHER = "class Point:\n    def"
CHAT = [{"role": "user", "content": "Say hello, hello, hello."}]
SAMPLED: dict[str, Any] = {"max_tokens": 24, "temperature": 1.0, "seed": 11}


def completed(server: Served, **fields: Any) -> dict[str, Any]:
    answer = server.post("/v1/completions", {"prompt": PROMPT, **SAMPLED, **fields})
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def texts(answer: dict[str, Any]) -> list[str]:
    assert [choice["index"] for choice in answer["choices"]] == [*range(len(answer["choices"]))]
    return [choice["text"] for choice in answer["choices"]]


def test_every_choice_is_the_answer_to_a_request_with_a_seed_of_its_own(server: Served) -> None:
    together = completed(server, n=4, logprobs=1)
    alone = [completed(server, seed=11 + choice, logprobs=1) for choice in range(4)]
    for choice, one in enumerate(alone):
        assert together["choices"][choice] == one["choices"][0] | {"index": choice}
    assert len(set(texts(together))) == 4
    assert texts(completed(server, n=4)) == texts(together)
    unlike = texts(completed(server, n=4, seed=None))
    assert len({*unlike, *texts(together)}) > 4, "without a seed every answer differs"


def test_greedy_choices_are_equal(server: Served) -> None:
    (alone,) = texts(completed(server, temperature=0))
    assert texts(completed(server, temperature=0, n=3)) == [alone] * 3


def test_each_prompt_of_a_list_has_its_choices_one_behind_another(server: Served) -> None:
    together = completed(server, prompt=[PROMPT, OTHER], n=3)
    each = [completed(server, prompt=prompt, n=3) for prompt in (PROMPT, OTHER)]
    assert texts(together) == [*texts(each[0]), *texts(each[1])]
    usage = together["usage"]
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert usage[name] == sum(one["usage"][name] for one in each)
    single = completed(server)["usage"]
    assert each[0]["usage"]["prompt_tokens"] == single["prompt_tokens"], "a prompt counts once"
    assert each[0]["usage"]["completion_tokens"] > single["completion_tokens"]


def test_a_stop_text_ends_each_choice_by_itself(server: Served) -> None:
    free = texts(completed(server, n=4))
    stop = free[2][3:6]
    cut = completed(server, n=4, stop=[stop])
    assert texts(cut) == [text.partition(stop)[0] for text in free]
    assert texts(cut)[2] != free[2]


@pytest.mark.parametrize("n", [2, 5])
def test_choices_stream_beside_each_other(server: Served, n: int) -> None:
    asked = {"prompt": PROMPT, **SAMPLED, "n": n, "logprobs": 1, "ignore_eos": True}
    # Texts that nobody has written before: those are drafted whole.
    asked |= {"seed": 100 * n, "max_tokens": 40}
    options = {"stream": True, "stream_options": {"include_usage": True}}
    *events, (_, cost), (_, done) = server.events("/v1/completions", {**asked, **options})
    whole = server.post("/v1/completions", asked).json()
    assert done == "[DONE]"
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert cost["usage"][name] == whole["usage"][name]
    told = [chunk["choices"][0] for _, chunk in events]
    for number, choice in enumerate(whole["choices"]):
        mine = [one for one in told if one["index"] == number]
        assert "".join(one["text"] for one in mine) == choice["text"]
        assert [one["finish_reason"] for one in mine[:-1]] == [None] * (len(mine) - 1)
        assert mine[-1]["finish_reason"] == choice["finish_reason"]
        offsets = [offset for one in mine for offset in one["logprobs"]["text_offset"]]
        assert offsets == choice["logprobs"]["text_offset"]
    indexes = [one["index"] for one in told]
    ends = [len(indexes) - indexes[::-1].index(number) for number in range(n)]
    assert max(map(indexes.index, range(n))) < min(ends), "all are under way before one has ended"


def test_a_chat_has_choices_too(server: Served) -> None:
    asked = {"messages": CHAT, **SAMPLED, "n": 3}
    whole = server.post("/v1/chat/completions", asked).json()["choices"]
    alone = [
        server.post("/v1/chat/completions", {**asked, "n": 1, "seed": 11 + choice}).json()
        for choice in range(3)
    ]
    assert [choice["message"] for choice in whole] == [
        one["choices"][0]["message"] for one in alone
    ]
    *events, _ = server.events("/v1/chat/completions", {**asked, "stream": True})
    for number, choice in enumerate(whole):
        told = [chunk["choices"][0] for _, chunk in events]
        mine = [one["delta"] for one in told if one["index"] == number]
        assert [delta.get("role") for delta in mine[:2]] == ["assistant", None]
        assert "".join(delta.get("content", "") for delta in mine) == choice["message"]["content"]


def test_the_client_of_openai_gets_its_choices(server: Served) -> None:
    client = OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0)
    answer = client.completions.create(model="any", prompt=[PROMPT, OTHER], n=2, **SAMPLED)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    asked = client.completions.create(model="any", prompt=PROMPT, n=2, stream=True, **SAMPLED)
    streamed = ["", ""]
    for chunk in asked:
        streamed[chunk.choices[0].index] += chunk.choices[0].text
    assert streamed == [choice.text for choice in answer.choices[:2]]


def test_the_prompt_of_all_choices_is_computed_once(server: Served) -> None:
    prompt = [token % 4000 + 100 for token in range(7, 7 * 400, 7)]
    before = [metric(server, f"prompt_tokens{name}_total") for name in ("", "_reused")]
    completed(server, prompt=prompt, n=6, max_tokens=4)
    after = [metric(server, f"prompt_tokens{name}_total") for name in ("", "_reused")]
    asked, reused = (now - then for now, then in zip(after, before, strict=True))
    assert asked == 6 * len(prompt)
    assert reused >= 5 * (len(prompt) - 1)


def test_more_choices_than_places_take_turns(server: Served) -> None:
    places = metric(server, "engine_places")
    together = texts(completed(server, n=2 * places + 3, max_tokens=6))
    assert len(together) == 2 * places + 3
    (last,) = texts(completed(server, seed=11 + 2 * places + 2, max_tokens=6))
    assert together[-1] == last


def test_a_client_that_leaves_ends_all_choices(server: Served) -> None:
    asked = {"prompt": PROMPT, **SAMPLED, "n": 4, "max_tokens": 2000, "ignore_eos": True}
    with stream(server.url, "/v1/completions", {**asked, "stream": True}) as response:
        # An iterator that is let go closes the connection.
        events = events_of(response.iter_lines())
        next(events)
        assert metric(server, "engine_queue") == 4
    wait_until_free(server)
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(
            f"{server.url}/v1/completions",
            json=asked,
            headers=server.headers,
            timeout=httpx2.Timeout(60, read=0.25),
        )
    wait_until_free(server)


@data_cases()
def test_what_is_no_number_of_choices_is_refused(
    server: Served, fields: dict[str, Any], named: str
) -> None:
    for streams in (False, True):
        asked = {"prompt": "x", **SAMPLED, **fields, "stream": streams}
        answer = server.post("/v1/completions", asked)
        assert answer.status_code == 400, answer.text
        assert named in answer.json()["error"]["message"]


def test_other_names_for_the_same_number_of_choices_pass(server: Served) -> None:
    two = texts(completed(server, n=2))
    assert texts(completed(server, n_cmpl=2)) == two
    assert texts(completed(server, n=2, best_of=2)) == two


def test_a_hole_is_filled_several_times(server: Served) -> None:
    asked = {"input_prefix": "a = ", "input_suffix": "\n", "n_predict": 8, "temperature": 0.9}
    each = [server.post("/infill", {**asked, "seed": 5 + n}).json()["content"] for n in range(3)]
    assert len(set(each)) > 1
    for name in ("n_cmpl", "n"):
        several = server.post("/infill", {**asked, "seed": 5, name: 3}).json()
        assert [one["content"] for one in several] == each
        assert [one["index"] for one in several] == [0, 1, 2]
        told = server.events("/infill", {**asked, "seed": 5, name: 3, "stream": True})
        texts = ["", "", ""]
        for _, one in told:
            texts[one["index"]] += one["content"]
        assert texts == each
        assert sum(one["stop"] for _, one in told) == 3
        shown = server.post("/infill", {**asked, name: 2, "response_fields": ["index"]}).json()
        assert shown == [{"index": 0}, {"index": 1}]
        assert server.post("/infill", {**asked, "seed": 5, name: 1}).json()["content"] == each[0]
        for wrong in (0, 129, True, "2"):
            answer = server.post("/infill", {**asked, name: wrong})
            assert answer.status_code == 400
            assert name in answer.json()["error"]["message"]
