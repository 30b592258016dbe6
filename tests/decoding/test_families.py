"""Prompts of every family: exact token ids, from small vocabularies with its special tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from gguf_writer import write_gguf
from small_vocabularies import CONTROL, LETTERS, NORMAL
from text_cases import data_beside, data_cases
from tiny_models import byte_tokenizer

from accel.models.model_file import model_file
from accel.text.families import FAMILIES
from accel.text.format_check import format_problems, template_problems
from accel.text.prompts import fim_beginning, fim_prompt
from accel.text.special_tokens import fim_format_of
from accel.text.tokenizer import Tokenizer

QWEN = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
SEED = ["<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"]


@dataclass
class Snippet:
    path: str
    text: str


@dataclass(frozen=True)
class Case:
    """Special tokens of a vocabulary, the first with the id 256; prompts for the line ``p`` before
    and ``s`` behind the hole in ``c.py``, alone and with ``b.py``, in which ``B`` stands."""

    family: str
    specials: list[str]
    alone: list[int | str]
    files: list[int | str]
    ends: list[str]
    """Names of tokens that end what is written."""
    stop_texts: Sequence[str] = ()


CASES = [Case(**case) for case in data_beside(__file__)["CASES"]]


def ids(tokenizer: Tokenizer, parts: list[int | str]) -> list[int]:
    actual: list[int] = []
    for part in parts:
        actual += [part] if isinstance(part, int) else tokenizer.encode(part).tolist()
    return actual


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.family)
def test_the_prompts_of_a_family_are_those_that_it_was_trained_on(case: Case) -> None:
    tokenizer = Tokenizer(byte_tokenizer(specials=case.specials))
    alone, files = ids(tokenizer, case.alone), ids(tokenizer, case.files)
    form = fim_format_of(tokenizer)
    assert form is not None
    assert form.family == case.family
    assert fim_prompt(tokenizer, "p\n", "s", path="c.py").tokens.tolist() == alone
    prompt = fim_prompt(
        *(tokenizer, "p\n", "s"), path="c.py", repository="repo", snippets=[Snippet("b.py", "B")]
    )
    assert prompt.tokens.tolist() == files
    assert prompt.stop_texts == tuple(case.stop_texts)
    assert prompt.stop_tokens >= {tokenizer.special(name) for name in case.ends}
    assert format_problems(tokenizer) == []


def test_every_family_of_the_table_has_a_case() -> None:
    untried = {family.name for family in FAMILIES} - {case.family for case in CASES}
    assert untried == {"SantaCoder", "Redraft"}


PREFIX_FIRST = [case for case in CASES if isinstance(case.alone[1], str) and case.alone[1] == "p\n"]


@pytest.mark.parametrize("case", PREFIX_FIRST, ids=lambda case: case.family)
def test_a_file_that_is_opened_begins_its_prompt_as_a_completion_does(case: Case) -> None:
    tokenizer = Tokenizer(byte_tokenizer(specials=case.specials))
    options: Any = {"path": "c.py", "repository": "repo", "snippets": [Snippet("b.py", "B")]}
    beginning = fim_beginning(tokenizer, "p = 1\n", **options).tokens.tolist()
    prompt = fim_prompt(tokenizer, "p = 1\n", "s", **options).tokens.tolist()
    assert prompt[: len(beginning)] == beginning


# What metadata says


def gguf(path: Path, names: list[str], control: int = CONTROL, **keys: Any) -> Tokenizer:
    """The tokenizer of a GGUF file, in which the bytes stand behind the ``names``."""
    metadata = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": ["<|endoftext|>", *names, *LETTERS, "".join(LETTERS[254:])],
        "tokenizer.ggml.token_type": [CONTROL] + [control] * len(names) + [NORMAL] * 257,
        "tokenizer.ggml.merges": [" ".join(LETTERS[254:])],
        "tokenizer.ggml.eos_token_id": 0,
    }
    metadata |= {f"tokenizer.ggml.{key}_token_id": value for key, value in keys.items()}
    if template := metadata.pop("tokenizer.ggml.template_token_id", None):
        metadata["tokenizer.chat_template"] = template
    return model_file(write_gguf(path / "m.gguf", metadata, {})).tokenizer


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_tokens_that_metadata_names_are_used_whatever_their_names(tmp_path: Path) -> None:
    names = ["<A>", "<B>", "<C>"]
    for keys in (
        {"fim_pre": 1, "fim_suf": 3, "fim_mid": 2},
        {"prefix": 1, "suffix": 3, "middle": 2},
    ):
        tokenizer = gguf(tmp_path, names, **keys)
        p, s = ids(tokenizer, ["p", "s"])
        prompt = fim_prompt(tokenizer, "p", "s")
        assert prompt.tokens.tolist() == [1, 3, s, 2, p]
        assert prompt.stop_tokens >= {1, 2, 3}
        assert format_problems(tokenizer) == []


def test_tokens_that_metadata_and_the_table_know_have_the_tables_order(tmp_path: Path) -> None:
    tokenizer = gguf(tmp_path, SEED, fim_pre=1, fim_suf=2, fim_mid=3)
    p, s = ids(tokenizer, ["p", "s"])
    assert fim_prompt(tokenizer, "p", "s").tokens.tolist() == [2, s, 1, p, 3]


@pytest.mark.parametrize(
    ("names", "kind", "keys", "problem"),
    [
        (QWEN, NORMAL, {}, "<|fim_prefix|> asks for a hole to be filled and is ordinary text"),
        (QWEN, NORMAL, {"fim_pre": 1}, "(token 1) asks for a hole"),
        (QWEN, CONTROL, {"fim_mid": 9999}, "names token 9999 for the middle of a hole"),
        (QWEN[:2], CONTROL, {}, "and lacks <|fim_middle|>: it cannot fill in the middle"),
        ([], CONTROL, {"template": "<|im_start|>{{ x }}"}, "writes <|im_start|>, of which"),
    ],
)
def test_a_wrong_format_is_said(
    names: list[str], kind: int, keys: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    problems = format_problems(gguf(tmp_path, names, kind, **keys))
    assert any(problem in said for said in problems), problems


def test_tokens_that_are_ordinary_text_are_used_all_the_same(tmp_path: Path) -> None:
    tokenizer = gguf(tmp_path, [*QWEN, "<|file_sep|>"], NORMAL)
    p, s = ids(tokenizer, ["p", "s"])
    prompt = fim_prompt(tokenizer, "p", "s")
    assert prompt.tokens.tolist() == [1, 2, s, 3, p]
    assert prompt.stop_tokens >= {1, 2, 3, 4}


@data_cases()
def test_a_chat_template_is_tried(template: str, problem: str, tmp_path: Path) -> None:
    (said,) = template_problems(gguf(tmp_path, [], template=template))
    assert problem in said


def test_a_sound_chat_template_is_no_problem(tmp_path: Path) -> None:
    template = "<|endoftext|>{{ messages[0].content }}<|endoftext|>"
    tokenizer = gguf(tmp_path, QWEN, template=template)
    assert format_problems(tokenizer) == template_problems(tokenizer) == []
    assert template_problems(gguf(tmp_path, QWEN)) == []
