"""The index and the model's side give the same ids."""

from __future__ import annotations

import json

import numpy as np
from small_model import SMALL_MODEL
from text_cases import data_beside

from accel.text.tokenizer import Tokenizer
from repo_index.tokens import TextTokenizer
from tests.index.conftest import source_text, text_tokenizer

DATA = data_beside(__file__)

_TEXTS = DATA["_TEXTS"]


def test_ids_equal_those_of_the_model_side(any_tokenizer: TextTokenizer) -> None:
    definition = any_tokenizer._tokenizer.to_str()
    ours, theirs = text_tokenizer(definition), Tokenizer(definition)
    texts = [*_TEXTS, source_text()[:20_000]]
    for ids, text in zip(ours.encode(texts), texts, strict=True):
        assert np.array_equal(ids, theirs.encode(text)), text[:50]
        assert np.array_equal(ids, ours.encode_with_starts(text).ids)


def test_the_default_model_too(tokenizer: TextTokenizer) -> None:
    theirs = Tokenizer.from_folder(SMALL_MODEL)
    assert tokenizer.sha256 == theirs.sha256
    assert tokenizer.vocabulary_size == theirs.vocabulary_size
    for ids, text in zip(tokenizer.encode(_TEXTS), _TEXTS, strict=True):
        assert np.array_equal(ids, theirs.encode(text))


def test_control_tokens_in_text_are_text(tokenizer: TextTokenizer) -> None:
    """Also where the tokenizer does not mark them as special, as those of Qwen2.5 are not."""
    definition = json.loads(tokenizer._tokenizer.to_str())
    names = {token["content"]: token["id"] for token in definition["added_tokens"]}
    for token in definition["added_tokens"]:
        token["special"] = False
    plain = text_tokenizer(json.dumps(definition))
    for name, number in names.items():
        assert number not in plain.encode([f"x = '{name}'"])[0]


def test_lone_surrogates_are_replaced(tokenizer: TextTokenizer) -> None:
    replaced, expected = tokenizer.encode(["a\ud800b", "a\ufffdb"])
    assert replaced.tolist() == expected.tolist()
