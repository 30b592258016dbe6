"""A begun answer comes after the model's thinking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from text_cases import data_beside
from tiny_models import byte_tokenizer

from accel.text.chat import chat_tokens, conversation_tokens, switched_off
from accel.text.tokenizer import Tokenizer

DATA = data_beside(__file__)

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


SWITCHES = DATA["SWITCHES"]


@pytest.mark.parametrize("case", SWITCHES)
def test_thinking_is_switched_off_where_the_template_can(case: str, tmp_path: Path) -> None:
    template, expected = SWITCHES[case]
    actual = tail(_TURNS + template, tmp_path)
    asked_for = "<seed:think></seed:think>A" if expected is None else expected
    # jinja takes the line break at the end of a template, and those behind its tags.
    assert actual.replace("\n", "") == asked_for.replace("\n", "")


OPEN = DATA["OPEN"]


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
    messages = [{"role": "user", "content": "x"}]
    assert tokenizer.decode(conversation_tokens(tokenizer, messages)).endswith("<think>")
    tokens = conversation_tokens(tokenizer, messages, {"enable_thinking": False})
    assert tokenizer.decode(tokens).endswith("A")


def test_what_a_template_does_not_name_is_not_set() -> None:
    assert switched_off("{{ messages }} rethinking") == {}
    assert switched_off("{{ thinking }}") == {"thinking": False}
