"""A begun answer comes after the model's thinking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny_models import byte_tokenizer

from accel.text.chat import chat_tokens, conversation_tokens
from accel.text.thinking import switched_off
from accel.text.tokenizer import Tokenizer

_TURNS = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}"
    "{% endfor %}"
)
_NAMES = ["<|im_start|>", "<|im_end|>", "<think>", "</think>"]


def tokenizer_of(template: str, folder: Path) -> Tokenizer:
    (folder / "tokenizer.json").write_text(byte_tokenizer(specials=_NAMES), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}), "utf-8")
    return Tokenizer.from_folder(folder)


def tail(template: str, folder: Path, question: str = "question") -> str:
    """Return the text between the last message and the answer."""
    tokenizer = tokenizer_of(template, folder)
    text = tokenizer.decode(chat_tokens(tokenizer, question, "ANSWER"))
    return text.rpartition(question)[2].removesuffix("ANSWER").removeprefix("<|im_end|>\n")


SWITCHES = {
    "Qwen3": (
        "A\n{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
        "{% endif %}",
        "A\n<think>\n\n</think>\n\n",
    ),
    "Qwen3.5, 4B and larger": (
        "A\n{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
        "{% else %}<think>\n{% endif %}",
        "A\n<think>\n\n</think>\n\n",
    ),
    "Qwen3.5, smaller": (
        "A\n{% if enable_thinking is defined and enable_thinking is true %}<think>\n"
        "{% else %}<think>\n\n</think>\n\n{% endif %}",
        "A\n<think>\n\n</think>\n\n",
    ),
    "SmolLM3": ("{% if enable_thinking %}<think>\n{% else %}A{% endif %}", "A"),
    "Granite": ("{% if thinking %}<think>{% endif %}A", "A"),
    "DeepSeek-V3.1": (
        "{% if not thinking is defined %}{% set thinking = true %}{% endif %}"
        "{{ '<think>' if thinking else '</think>' }}",
        "</think>",
    ),
    "Command A": ("{% if reasoning %}<|START_THINKING|>{% else %}B{% endif %}", "B"),
    "Seed-OSS": ("{% if thinking_budget == 0 %}<seed:think></seed:think>{% endif %}A", None),
    "by effort": ("{{ reasoning_effort | default('medium') }}", "low"),
    "by an effort of none": (
        "{% if reasoning_effort == 'none' %}A{% else %}<think>\n{% endif %}",
        "A",
    ),
    "a default that thinks": ("{% if enable_thinking | default(true) %}<think>{% endif %}A", "A"),
    "EXAONE": (
        "{{ '<think>\n' if enable_thinking is defined and enable_thinking else "
        "'<think>\n\n</think>\n\n' }}",
        "<think>\n\n</think>\n\n",
    ),
    "another name": ("{% if enable_reasoning is not false %}<reasoning>{% endif %}A", "A"),
    "an effort that it does not know": (
        "{% if reasoning_effort is defined %}{{ raise_exception('unknown') }}{% endif %}A",
        "A",
    ),
}


@pytest.mark.parametrize("case", SWITCHES)
def test_thinking_is_switched_off_where_the_template_can(case: str, tmp_path: Path) -> None:
    template, expected = SWITCHES[case]
    actual = tail(_TURNS + template, tmp_path)
    asked_for = "<seed:think></seed:think>A" if expected is None else expected
    # jinja takes the line break at the end of a template, and those behind its tags.
    assert actual.replace("\n", "") == asked_for.replace("\n", "")


OPEN = {
    "R1": ("<think>\n", "<think>\n\n</think>\n\n"),
    "without a line": ("<think>", "<think>\n\n</think>\n\n"),
    "after a closed one": ("<think></think>B<think>\n", "<think></think>B<think>\n\n</think>\n\n"),
    "a closed one": ("<think>\n\n</think>\n\n", "<think>\n\n</think>\n\n"),
    "closed alone": ("</think>\n", "</think>\n"),
    "thinking": ("<thinking>\n", "<thinking>\n\n</thinking>\n\n"),
    "thought": ("<thought>\n", "<thought>\n\n</thought>\n\n"),
    "reasoning": ("<reasoning>", "<reasoning>\n\n</reasoning>\n\n"),
    "Seed": ("<seed:think>", "<seed:think>\n\n</seed:think>\n\n"),
    "Magistral": ("[THINK]", "[THINK][/THINK]"),
    "Kimi": ("\u25c1think\u25b7", "\u25c1think\u25b7\u25c1/think\u25b7"),
    "Command A": (
        "<|START_THINKING|>",
        "<|START_THINKING|><|END_THINKING|><|START_RESPONSE|>",
    ),
    "Command A, closed": (
        "<|START_THINKING|><|END_THINKING|>",
        "<|START_THINKING|><|END_THINKING|>",
    ),
    "Apertus": ("<|inner_prefix|>", "<|inner_prefix|><|inner_suffix|>"),
    "Gemma": ("<|channel>thought\n", "<|channel>thought\n<channel|>"),
    "gpt-oss": ("<|start|>assistant", "<|start|>assistant<|channel|>final<|message|>"),
    "gpt-oss, thinking": (
        "<|start|>assistant<|channel|>analysis<|message|>",
        "<|start|>assistant<|channel|>analysis<|message|><|end|><|start|>assistant"
        "<|channel|>final<|message|>",
    ),
    "none": ("<|im_start|>assistant\n", "<|im_start|>assistant\n"),
}


@pytest.mark.parametrize("case", OPEN)
def test_thinking_that_the_template_begins_is_closed(case: str, tmp_path: Path) -> None:
    written, expected = OPEN[case]
    assert tail(_TURNS + "{{ " + json.dumps(written) + " }}", tmp_path) == expected


@pytest.mark.parametrize("question", ["what is <think> for?", "<think>", "a </think> b <think>\n"])
def test_a_question_about_thinking_opens_none(question: str, tmp_path: Path) -> None:
    answer = tail(_TURNS + "{{ '<|im_start|>assistant\\n' }}", tmp_path, question)
    assert answer == "<|im_start|>assistant\n"


def test_a_chat_thinks_unless_its_client_says_otherwise(tmp_path: Path) -> None:
    template = _TURNS + "{{ 'A' if enable_thinking is defined else '<think>' }}"
    tokenizer = tokenizer_of(template, tmp_path)
    messages = [("user", "x")]
    assert tokenizer.decode(conversation_tokens(tokenizer, messages)).endswith("<think>")
    tokens = conversation_tokens(tokenizer, messages, {"enable_thinking": False})
    assert tokenizer.decode(tokens).endswith("A")


def test_what_a_template_does_not_name_is_not_set() -> None:
    assert switched_off("{{ messages }} rethinking") == {}
    assert switched_off("{{ thinking }}") == {"thinking": False}
