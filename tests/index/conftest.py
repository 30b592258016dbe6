"""Tokenizers and texts for the index tests, all made here."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from functools import cache

import numpy as np
import pytest
from small_model import SMALL_MODEL
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from accel.text.tokenizer import Tokenizer as ModelTokenizer
from lsp_server.engine import workspaces
from repo_index.tokens import TextTokenizer

_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_INDENTING = (
    r"\n[ \t]*|[^\s\p{L}\p{N}_]?[\p{L}_]+|[ ]?[\p{L}_]+|\p{N}{1,2}|[ ]?[^\s\p{L}\p{N}_]+|[ \t]+|\s+"
)


@cache
def source_text() -> str:
    """Some 150 kB of Python source of the standard library."""
    return "\n".join(inspect.getsource(module) for module in (ast, inspect, textwrap, json))


def text_tokenizer(definition: str) -> TextTokenizer:
    """Of the content of a ``tokenizer.json``."""
    made = ModelTokenizer(definition)
    return TextTokenizer(made.fast, made.sha256, made.vocabulary_size)


def trained(kind: str) -> TextTokenizer:
    tokenizer = Tokenizer(models.BPE())
    special = ["<|file_sep|>", "<|fim_prefix|>"]
    if kind == "whole":
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        )
        trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=special, max_token_length=9)
        lines = [line for line in source_text().splitlines() if line.isascii()]
        tokenizer.train_from_iterator(lines, trainer)
        return text_tokenizer(tokenizer.to_str())
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=kind == "gpt2")
    pattern = {"qwen": _QWEN, "indenting": _INDENTING}.get(kind)
    tokenizer.pre_tokenizer = (
        pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), byte_level])
        if pattern
        else byte_level
    )
    if kind == "qwen":
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1200,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator([source_text()], trainer)
    return text_tokenizer(tokenizer.to_str())


@pytest.fixture(scope="session", params=["indenting", "qwen", "gpt2", "whole"])
def any_tokenizer(request: pytest.FixtureRequest) -> TextTokenizer:
    return trained(request.param)


@pytest.fixture(scope="session")
def tokenizer() -> TextTokenizer:
    return workspaces.text_tokenizer(SMALL_MODEL)


@pytest.fixture(scope="session", autouse=True)
def _printed_seed_state() -> None:
    np.set_printoptions(threshold=40)
