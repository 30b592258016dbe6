"""The tokenizer: lossless for any text, indent after newline in one token, special tokens."""

from __future__ import annotations

import random
from pathlib import Path

import frozen_corpus
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from accel.training.tokenizer import (
    SPECIAL_TOKENS,
    load_tokenizer,
    save_tokenizer,
    train_tokenizer,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    save_tokenizer(train_tokenizer(frozen_corpus.texts(), 1500), path, 512)
    return path


def _random_text(rng: random.Random) -> str:
    alphabets = (
        "abc _0123",
        "\r\n\t \n",
        "äßéñ",
        "日本語",
        "🙂👩‍👩‍👧",
        "\x00\x7f\u2028\u200d",
        "(){}:=\"'\\",
    )
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(rng.randrange(60)))


def test_any_text_comes_back(folder: Path) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    tokenizer = load_tokenizer(folder)
    for _ in range(1500):
        text = _random_text(rng)
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text, f"seed {seed}"


def test_both_loaders_agree(folder: Path) -> None:
    raw = Tokenizer.from_file(str(folder / "tokenizer.json"))
    fast = AutoTokenizer.from_pretrained(folder)
    text = "def f(a):\r\n\treturn a  # ünïcode\n        x = 12345\n"
    assert fast.encode(text, add_special_tokens=False) == raw.encode(text).ids
    assert fast.decode(fast.encode(text, add_special_tokens=False)) == text
    assert fast.eos_token == "<|endoftext|>"
    assert fast.pad_token == "<|pad|>"


def test_special_tokens_come_first_and_are_single(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    assert [tokenizer.token_to_id(token) for token in SPECIAL_TOKENS] == list(
        range(len(SPECIAL_TOKENS))
    )
    assert tokenizer.encode("a<|fim_middle|>b").ids.count(3) == 1
    assert sum("reserved" in token or "mask" in token for token in SPECIAL_TOKENS) >= 32


def test_newline_and_indent_are_one_token_and_lines_end_at_borders(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    pieces = tokenizer.encode("if x:\n    y()\n        z\n").tokens
    assert "Ċ" + "Ġ" * 4 in pieces
    assert "Ċ" + "Ġ" * 8 in pieces
    assert not [piece for piece in pieces if "Ċ" in piece[1:]]
