"""Prompts from special tokens: order, budget, stable trimming, healing of the cursor."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from small_model import SMALL_MODEL
from text_cases import data_cases
from tiny_models import byte_tokenizer

from accel.errors import InvalidRequest, UnsupportedPrompt
from accel.text import prompts
from accel.text.families import Order
from accel.text.prompts import back_off, edit_prompt, fim_prompt
from accel.text.special_tokens import fim_format_of
from accel.text.tokenizer import Tokenizer

EMBEDDED = Tokenizer.from_folder(SMALL_MODEL)
CODE = "".join(f"def function_{n}(value):\n    return value + {n}\n\n\n" for n in range(200))


@dataclass
class Snippet:
    path: str
    text: str


def special(name: str, tokenizer: Tokenizer = EMBEDDED) -> int:
    token = tokenizer.special(name)
    assert token is not None
    return token


@pytest.fixture(params=Order)
def order(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Order:
    """Each order, as if the embedded model were of a family that has it."""
    fim = fim_format_of(EMBEDDED)
    assert fim is not None
    known = replace(fim, order=request.param)
    monkeypatch.setattr(prompts, "fim_format_of", lambda _tokenizer: known)
    return known.order


def test_each_order_has_its_markers(order: Order) -> None:
    prefix, suffix, middle = (special(f"<|fim_{n}|>") for n in ("prefix", "suffix", "middle"))
    typed, after = EMBEDDED.encode("a = 1").tolist(), EMBEDDED.encode("c = 3\n").tolist()
    lines = EMBEDDED.encode("a = 1\n").tolist()
    expected = {
        Order.SUFFIX_FIRST: [prefix, suffix, *after, middle, *typed],
        Order.PREFIX_FIRST: [prefix, *lines, suffix, *after, middle],
        Order.SUFFIX_PREFIX_MIDDLE: [suffix, *after, prefix, *typed, middle],
    }
    assert fim_prompt(EMBEDDED, "a = 1\n", "c = 3\n").tokens.tolist() == expected[order]


@pytest.mark.usefixtures("order")
def test_drafts_continue_the_text_and_no_marker() -> None:
    prompt = fim_prompt(EMBEDDED, "a = 1\nb =", "c = 3\n")
    assert not EMBEDDED.special_tokens & set(prompt.text.tolist())
    assert EMBEDDED.decode_bytes(prompt.text) + prompt.required_prefix == b"a = 1\nb ="


@data_cases("names")
def test_known_names_are_found_in_any_vocabulary(names: list[str]) -> None:
    tokenizer = Tokenizer(byte_tokenizer(specials=names))
    prompt = fim_prompt(tokenizer, "a\n", "b\n")
    ids = [special(name, tokenizer) for name in names]
    assert [token for token in prompt.tokens.tolist() if token in ids] == ids
    assert prompt.tokens[0] == ids[0], "prefix first while nothing else is known"


def test_a_vocabulary_without_a_middle_token() -> None:
    tokenizer = Tokenizer(byte_tokenizer(specials=["[PREFIX]", "[SUFFIX]"]))
    tokens = fim_prompt(tokenizer, "a\n", "b").tokens.tolist()
    assert tokens == [257, *tokenizer.encode("b"), 256, *tokenizer.encode("a\n")]


@pytest.mark.parametrize("suffix", ["", "\n", "\r\n", "\n\n  \n", "x = 1\n"])
def test_without_special_tokens_the_prompt_is_the_text_before_the_cursor(suffix: str) -> None:
    tokenizer = Tokenizer(byte_tokenizer())
    assert fim_format_of(tokenizer) is None
    prompt = fim_prompt(tokenizer, "abc = def", suffix)
    assert tokenizer.decode_bytes(prompt.tokens) + prompt.required_prefix == b"abc = def"


def test_a_first_word_alone_stays_in_the_prompt() -> None:
    tokenizer = Tokenizer(byte_tokenizer(extra=["import"]))
    prompt = fim_prompt(tokenizer, "imp", "")
    assert len(prompt.tokens) > 0
    assert tokenizer.decode_bytes(prompt.tokens) + prompt.required_prefix == b"imp"


@data_cases()
def test_the_prompt_backs_off_to_a_border(prefix: str, piece: str) -> None:
    assert back_off(EMBEDDED, prefix) == (prefix[: -len(piece)], piece)


def test_what_is_backed_off_is_always_a_border_of_the_whole_text() -> None:
    """Wherever a text is cut, its tokens up to the border begin the tokens of the whole."""
    text = CODE[:1200]
    whole = EMBEDDED.encode(text).tolist()
    for cut in range(1, len(text), 7):
        before, piece = back_off(EMBEDDED, text[:cut])
        assert before + piece == text[:cut]
        tokens = EMBEDDED.encode(before).tolist()
        assert tokens == whole[: len(tokens)], f"cut {cut}"


@pytest.mark.parametrize("budget", [64, 200, 700])
def test_budgets_are_kept(budget: int) -> None:
    for prefix, suffix in ((CODE, CODE), (CODE, "x\n"), ("x", CODE), ("x" * 5000, "y" * 5000)):
        prompt = fim_prompt(EMBEDDED, prefix, suffix, budget=budget)
        assert budget // 3 < len(prompt.tokens) <= budget
        assert prompt.required_prefix.decode() == back_off(EMBEDDED, prefix)[1]


@pytest.mark.parametrize("order", [Order.SUFFIX_PREFIX_MIDDLE], indirect=True)
def test_trimmed_text_begins_at_a_line_and_ends_at_one(order: Order) -> None:
    prompt = fim_prompt(EMBEDDED, CODE, CODE, budget=300)
    tokens = prompt.tokens.tolist()
    prefix = tokens.index(special("<|fim_prefix|>"))
    before, after = EMBEDDED.decode(prompt.text), EMBEDDED.decode(tokens[1:prefix])
    assert CODE.endswith(before + prompt.required_prefix.decode())
    assert ("\n" + CODE)[: -len(before) - len(prompt.required_prefix)].endswith("\n")
    assert CODE.startswith(after)
    assert after.endswith("\n")


@pytest.mark.parametrize("typed", [CODE[:1500], CODE[:60]])
def test_typing_keeps_the_front_of_the_prompt(typed: str) -> None:
    """Over 400 keys the prompt may begin anew only a few times; else it only grows at its end."""
    more = "    total = compute(values)[0] + offset\n" * 10
    suffix = CODE[4000:]
    moved = 0
    last: np.ndarray | None = None
    for count in range(400):
        tokens = fim_prompt(EMBEDDED, typed + more[:count], suffix, budget=256).tokens
        if last is not None:
            shorter = min(len(last), len(tokens))
            same = int((last[:shorter] == tokens[:shorter]).cumprod().sum())
            moved += same < shorter - 24
        last = tokens
    assert moved <= 10


def test_by_lines_a_letter_more_leaves_all_tokens_before_it() -> None:
    """Typing in a line does not compute the suffix again, even in the longest prompt."""
    tokenizer = Tokenizer(byte_tokenizer(specials=["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]))
    before = "".join(f"value_{n} = {n}\n" for n in range(200))
    line, after = "    return value_1 + value_2 * value_3", "\n\nprint(total)\n" * 40
    prompts = [
        fim_prompt(
            tokenizer,
            before + line[:typed],
            after,
            budget=400,
            suffix_budget=48,
        )
        for typed in range(len(line) + 1)
    ]
    positions = {prompt.tokens.tolist().index(258) for prompt in prompts}
    assert len(positions) == 1
    position = positions.pop()
    for typed, prompt in enumerate(prompts):
        assert prompt.tokens[: position + 1].tolist() == prompts[0].tokens[: position + 1].tolist()
        behind = tokenizer.decode_bytes(prompt.tokens[position + 1 :]) + prompt.required_prefix
        assert behind.decode() == line[:typed]
        assert 0 < len(prompt.suffix_tokens) <= 48
        assert len(prompt.tokens) <= 400


def test_snippets_stand_before_with_their_paths() -> None:
    snippets = [Snippet("a.py", "A = 1\n"), Snippet("b.py", "B = 2\n" * 900)]
    prompt = fim_prompt(EMBEDDED, "x = A\n", "", path="c.py", snippets=snippets, budget=400)
    separator = special("<|file_sep|>")
    assert prompt.tokens.tolist().count(separator) == 2
    text = EMBEDDED.decode(prompt.tokens)
    assert text == "<|file_sep|>a.py\nA = 1\n<|file_sep|>c.py\nx = A"
    with pytest.raises(InvalidRequest, match="budget"):
        fim_prompt(EMBEDDED, "x", "", budget=10)


def chat_tokenizer(folder: Path, template: str) -> Tokenizer:
    names = ["<|im_start|>", "<|im_end|>"]
    (folder / "tokenizer.json").write_text(byte_tokenizer(specials=names), "utf-8")
    config = {"chat_template": template, "eos_token": {"content": "<|im_end|>"}}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return Tokenizer.from_folder(folder)


CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_edits_through_a_chat_template(tmp_path: Path) -> None:
    tokenizer = chat_tokenizer(tmp_path, CHATML)
    prompt = edit_prompt(
        tokenizer,
        "Say <|im_end|>",
        "x = '```'\n",
        before="import os\n",
        after="print(x)\n",
        language="python",
        path="a.py",
    )
    start, end = special("<|im_start|>", tokenizer), special("<|im_end|>", tokenizer)
    tokens = prompt.tokens.tolist()
    assert (tokens.count(start), tokens.count(end)) == (2, 1), "user text is no control token"
    text = tokenizer.decode(tokens)
    assert prompt.fence == "````"
    assert text.endswith("<|im_start|>assistant\n````python\n")
    assert tokenizer.decode(prompt.closing_tokens) == "````"
    assert tokenizer.decode(edit_prompt(tokenizer, "a", "b").closing_tokens) == "\n```"
    for part in ("Say <|im_end|>", "x = '```'\n", "import os\n", "print(x)\n", "File: a.py"):
        assert part in text
    assert end in prompt.stop_tokens


def test_a_model_that_says_so_is_shown_as_many_lines_around_an_edit_as_in_training(
    tmp_path: Path,
) -> None:
    tokenizer = chat_tokenizer(tmp_path, CHATML)
    before = "".join(f"above = {n}\n" for n in range(9))
    after = "\n" + "".join(f"below = {n}\n" for n in range(9))

    def shown() -> str:
        prompt = edit_prompt(tokenizer, "a", "x = 1", before=before, after=after)
        return tokenizer.decode(prompt.tokens)

    assert "above = 0\n" in shown()
    tokenizer.edit_lines = 2
    assert "```\nabove = 7\nabove = 8\n\n```" in shown()
    assert "```\nbelow = 0\nbelow = 1\n\n```" in shown()
    tokenizer.edit_lines = 0
    assert "above" not in shown()
    assert "below" not in shown()


def test_broken_chat_templates_are_refused(tmp_path: Path) -> None:
    for template in ("{{ raise_exception('no') }}", "nothing", "{% for %}"):
        tokenizer = chat_tokenizer(tmp_path, template)
        with pytest.raises(UnsupportedPrompt, match="template"):
            edit_prompt(tokenizer, "a", "b")


def test_models_for_completion_only_refuse_edits() -> None:
    tokenizer = Tokenizer(byte_tokenizer(specials=["<fim_prefix>", "<fim_suffix>", "<fim_middle>"]))
    with pytest.raises(UnsupportedPrompt, match="instruct"):
        edit_prompt(tokenizer, "a", "b")
