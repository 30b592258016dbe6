"""Prompts of chats and edits are the model's own, token for token."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest
from gguf_writer import write_gguf
from golden_prompts import (
    BY_NAME,
    CHAT,
    FILE,
    HOLE,
    QUESTION,
    all_golden,
    edit_question_of,
    hostile_chat,
    hostile_name,
    messages_of,
    raw_prompt,
    rendered,
)
from text_cases import data_beside

from accel.models.model_file import model_file
from accel.text.chat import conversation_tokens
from accel.text.families import Order
from accel.text.prompts import (
    around_hole,
    edit_prompt,
    edit_question,
    fim_beginning,
    fim_prompt,
)
from accel.text.special_tokens import FimFormat
from accel.text.tokenizer import Tokenizer

DATA = data_beside(__file__)

GOLDEN = json.loads(FILE.read_text("utf-8"))


@pytest.fixture
def tokenizer(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Tokenizer:
    """Of a family."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    family = BY_NAME[request.param]
    return model_file(write_gguf(tmp_path / "m.gguf", family.metadata, {})).tokenizer


def shown(tokenizer: Tokenizer, tokens: list[int]) -> list[str]:
    return [tokenizer.bytes_of(token).decode("utf-8", "replace") for token in tokens]


@pytest.mark.parametrize(("tokenizer", "name"), [(n, n) for n in BY_NAME], indirect=["tokenizer"])
def test_a_chat_is_the_models_own(tokenizer: Tokenizer, name: str) -> None:
    actual = conversation_tokens(tokenizer, messages_of(CHAT)).tolist()
    assert shown(tokenizer, actual) == shown(tokenizer, GOLDEN[name]["chat"])
    assert actual == GOLDEN[name]["chat"]


@pytest.mark.parametrize(("tokenizer", "name"), [(n, n) for n in BY_NAME], indirect=["tokenizer"])
def test_an_edit_is_the_models_own(tokenizer: Tokenizer, name: str) -> None:
    instruction, code = QUESTION
    prompt = edit_prompt(tokenizer, instruction, code, language="python", path="a.py")
    actual = prompt.tokens.tolist()
    assert shown(tokenizer, actual) == shown(tokenizer, GOLDEN[name]["edit"])
    assert actual == GOLDEN[name]["edit"]


@pytest.mark.parametrize(("tokenizer", "name"), [(n, n) for n in BY_NAME], indirect=["tokenizer"])
def test_no_message_acts_as_a_control_token(tokenizer: Tokenizer, name: str) -> None:
    control = hostile_name(BY_NAME[name])
    hostile = messages_of(hostile_chat(BY_NAME[name], control))
    actual = conversation_tokens(tokenizer, hostile).tolist()
    assert shown(tokenizer, actual) == shown(tokenizer, GOLDEN[name]["hostile"])
    assert actual == GOLDEN[name]["hostile"]
    plain = messages_of(hostile_chat(BY_NAME[name], "QZ"))
    harmless = conversation_tokens(tokenizer, plain).tolist()
    token = tokenizer.special(control)
    assert actual.count(token) == harmless.count(token)


@pytest.mark.parametrize(("tokenizer", "name"), [(n, n) for n in BY_NAME], indirect=["tokenizer"])
def test_a_prompt_of_a_client_is_read_as_llama_cpp_does(tokenizer: Tokenizer, name: str) -> None:
    actual = tokenizer.encode_prompt(raw_prompt(BY_NAME[name])).tolist()
    assert shown(tokenizer, actual) == shown(tokenizer, GOLDEN[name]["prompt"])
    assert actual == GOLDEN[name]["prompt"]


@pytest.mark.parametrize(("tokenizer", "name"), [(n, n) for n in BY_NAME], indirect=["tokenizer"])
def test_the_parts_of_a_hole_begin_as_llama_cpp_begins_them(
    tokenizer: Tokenizer, name: str
) -> None:
    form = FimFormat(1, 2, 2, Order.PREFIX_FIRST)
    before, after = map(tokenizer.encode_beginning, HOLE)
    actual = around_hole(form, before, after).tolist()
    assert [*actual[: len(before) + 1], 2, *actual[-len(after) - 1 :]] == GOLDEN[name]["hole"]


def test_a_hole_of_codellama_has_its_blanks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write_gguf(tmp_path / "m.gguf", BY_NAME["CodeLlama"].metadata, {})
    tokenizer = model_file(path).tokenizer
    prompt = fim_prompt(tokenizer, "def f(x):\n    re", "\n\nx = 1\n")
    assert prompt.required_prefix == b" re"
    assert shown(tokenizer, prompt.tokens.tolist()) == [
        *("<s>", "\u2581<PRE>", " ", "def", " ", "f", "(", "x", ")", ":", "\n"),
        *("\u2581<SUF>", " ", "\n", "\n", "x", " =", " 1", "\n", "\u2581<MID>", "   "),
    ]
    alone = fim_prompt(tokenizer, "def", "")
    assert shown(tokenizer, alone.tokens.tolist()) == ["<s>", " ", "def"]
    assert alone.required_prefix == b""
    beginning = fim_beginning(tokenizer, "def f(x):\n").tokens.tolist()
    assert beginning == prompt.tokens.tolist()[: len(beginning)]


@pytest.mark.skipif(
    importlib.util.find_spec("llama_cpp") is None, reason="llama-cpp-python is not installed"
)
def test_llama_cpp_and_transformers_agree_with_what_is_frozen() -> None:
    assert len(BY_NAME) >= 12
    assert dict(all_golden()) == GOLDEN


WORDS = DATA["WORDS"]


def test_the_words_of_an_edit_stay_as_they_are() -> None:
    """Models were trained on them."""
    code, before = "def f(x):\n    return x\n", "import os\n"
    question = edit_question(
        "rename x to y", code, before=before, after="f(1)", opening="```python", path="a.py"
    )
    assert question == WORDS
    bare = edit_question("make it fast", "x", before=" \n", after="", opening="````", path="")
    assert bare == (
        "Edit the code as instructed: make it fast\n\nThe code to edit:\n````\nx\n````\n\n"
        "Answer with the whole edited code in one fenced block and nothing else."
    )


VOCABULARIES = os.environ.get("REDRAFT_TEST_VOCABULARIES", "")
"""The folder ``models`` of llama.cpp's sources, or any with ``ggml-vocab-*.gguf``."""


@pytest.mark.skipif(not VOCABULARIES, reason="REDRAFT_TEST_VOCABULARIES names no folder")
def test_published_vocabularies_read_prompts_as_llama_cpp_does() -> None:
    from llama_cpp import Llama

    question = edit_question_of()
    texts = [question, "\n\n x", " x  y\n", f"{question}<think>\n</think>", "é 你好 123\t\r\n"]
    texts += [rendered(family, list(CHAT)) for family in BY_NAME.values()]
    checked = []
    for path in sorted(Path(VOCABULARIES).glob("ggml-vocab-*.gguf")):
        try:
            tokenizer = model_file(path).tokenizer
        except Exception as error:  # kinds that are not read here say so
            print(path.name, error)
            continue
        reference = Llama(str(path), vocab_only=True, verbose=False)
        for text in texts:
            expected = reference.tokenize(text.encode(), add_bos=False, special=True)
            actual = tokenizer.encode_with_controls([(text, False)]).tolist()
            assert actual == expected, (path.name, text)
            plain = reference.tokenize(text.encode(), add_bos=False, special=False)
            assert tokenizer.encode_with_controls([(text, True)]).tolist() == plain, path.name
        checked.append(path.name)
    print("checked", checked)
    assert checked
