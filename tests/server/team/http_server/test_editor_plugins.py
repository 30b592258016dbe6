"""Requests as plugins of editors send them."""

from __future__ import annotations

from served import Served, events_of, stream
from text_cases import data_beside

PREFIX = "def area(width, height):\n"
SUFFIX = "\n\n\nprint(area(2, 3))\n"

DATA = data_beside(__file__)
LLAMA_VIM = DATA["LLAMA_VIM"]


def test_llama_vim(server: Served) -> None:
    answer = server.post("/infill", LLAMA_VIM).json()
    assert answer["content"].strip()
    assert set(answer) == set(LLAMA_VIM["response_fields"])  # type: ignore[call-overload]
    assert answer["timings/predicted_n"] > 0


def test_llama_vim_warms_the_cache_with_what_it_will_ask(server: Served) -> None:
    warming = {**LLAMA_VIM, "n_predict": 0, "response_fields": [""]}
    assert server.post("/infill", warming).json() == {}
    assert server.post("/infill", LLAMA_VIM).json()["tokens_cached"] > 0


def test_llama_vscode(server: Served) -> None:
    """No list of fields, and other names are passed over."""
    asked = {
        **{name: value for name, value in LLAMA_VIM.items() if name != "response_fields"},
        "cache_prompt": True,
        "lora": [],
        "t_max_prompt_ms": 0,
    }
    answer = server.post("/infill", asked).json()
    assert answer["content"].strip()
    assert answer["stop"] is True
    assert answer["timings"]["predicted_n"] == answer["tokens_predicted"]


def test_what_llama_vim_sends_ahead_is_computed_in_whole_and_used(server: Served) -> None:
    text = "".join(f"def helper_{i}(a):\n    return a + {i}\n" for i in range(9))
    extra = [{"filename": f"{i}.py", "text": text.replace("helper", f"h{i}")} for i in range(2)]
    asked = {**LLAMA_VIM, "input_extra": extra, "response_fields": []}
    ring = {**asked, "input_prefix": "", "input_suffix": "", "prompt": "", "n_predict": 0}
    ring |= {"samplers": [], "t_max_prompt_ms": 1, "response_fields": [""]}
    assert server.post("/infill", {**asked, "t_max_prompt_ms": 1}).json()["truncated"] is True
    assert server.post("/infill", ring).json() == {}
    answer = server.post("/infill", {**asked, "t_max_prompt_ms": 60_000}).json()
    assert answer["tokens_cached"] > answer["tokens_evaluated"] // 2
    assert answer["truncated"] is False


def test_infill_streams(server: Served) -> None:
    *pieces, (_, last) = server.events("/infill", {**LLAMA_VIM, "stream": True})
    whole = server.post("/infill", LLAMA_VIM).json()["content"]
    assert "".join(piece["content"] for _, piece in pieces) == whole
    assert last["timings/predicted_n"] > 0


def test_minuet_with_a_suffix(server: Served) -> None:
    """minuet-ai.nvim, provider openai_fim_compatible."""
    asked = {
        "model": "any",
        "prompt": f"# language: python\n{PREFIX}    return ",
        "suffix": SUFFIX,
        "stream": True,
        "max_tokens": 56,
        "top_p": 0.9,
        "stop": ["\n\n"],
    }
    events = server.events("/v1/completions", asked)
    assert "".join(told["choices"][0]["text"] for _, told in events[:-1]).strip()
    assert events[-1][1] == "[DONE]"


def test_minuet_with_a_prompt_in_the_names_of_control_tokens(server: Served) -> None:
    """minuet-ai.nvim with a template for llama.cpp."""
    prompt = f"<|fim_prefix|>{PREFIX}    return <|fim_suffix|>{SUFFIX}<|fim_middle|>"
    asked = {"model": "any", "prompt": prompt, "max_tokens": 24, "stream": True}
    events = server.events("/v1/completions", asked)
    assert "".join(told["choices"][0]["text"] for _, told in events[:-1])
    plain = server.post(
        "/v1/completions", {"prompt": prompt.replace("|", ""), "max_tokens": 1}
    ).json()
    named = server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1}).json()
    assert named["usage"]["prompt_tokens"] < plain["usage"]["prompt_tokens"] - 6


def test_zed_inline_assistant(server: Served) -> None:
    """Zed, provider openai_compatible: a chat that streams."""
    asked = {
        "messages": [
            {"role": "system", "content": "You are an expert engineer."},
            {"role": "user", "content": [{"type": "text", "text": f"Rewrite:\n{PREFIX}"}]},
        ],
        "model": "any",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": 24,
        "stop": [],
        "temperature": 0.0,
        "tools": [],
        "prompt_cache_key": "thread",
        "parallel_tool_calls": None,
    }
    with stream(server.url, "/v1/chat/completions", asked) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        events = list(events_of(response.iter_lines()))
    assert events[0][1]["choices"][0]["delta"]["role"] == "assistant"
    assert events[-2][1]["usage"]["completion_tokens"] > 0
    assert events[-1][1] == "[DONE]"


def test_zed_edit_prediction(server: Served) -> None:
    """Zed, edit predictions from an OpenAI-compatible server: the prompt has control tokens."""
    asked = {
        "model": "any",
        "prompt": f"<|fim_prefix|>{PREFIX}    <|fim_suffix|>{SUFFIX}<|fim_middle|>",
        "max_tokens": 24,
        "temperature": 0.0,
        "stop": ["<|endoftext|>", "<|fim_prefix|>"],
        "stream": False,
    }
    answer = server.post("/v1/completions", asked).json()
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["text"]
