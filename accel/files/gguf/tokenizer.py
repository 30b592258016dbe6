"""A ``tokenizer.json`` out of the vocabulary of a GGUF file.

Source: the format of the tokenizers library (its BPE model and the steps around it).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from accel.errors import BrokenModel
from accel.files.gguf.header import shown
from accel.files.gguf.metadata import AGAIN
from accel.files.gguf.vocabulary import NAMED, TokenType, Vocabulary

VERSION = 5
"""Counts changes of what is made here."""

_SPACE = "\u2581"
_TAKE_NO_BLANKS = ("<unk>", "<s>", "<|endoftext|>")
"""Of the tokens of a vocabulary whose others do."""


def tokenizer_json(vocabulary: Vocabulary, path: Path) -> str:
    """Return the definition of a tokenizer. ``path`` is the file that messages name. Raises
    BrokenModel or UnsupportedModel."""
    tokenizer = (
        _sentencepiece(vocabulary) if vocabulary.kind == "llama" else _byte_level(vocabulary)
    )
    definition = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(vocabulary),
        **tokenizer,
    }
    text = json.dumps(definition, ensure_ascii=False)
    try:
        Tokenizer.from_str(text)
    except Exception as error:  # the library raises plain Exception
        raise BrokenModel(
            f"{path}: its vocabulary makes no tokenizer ({shown(str(error))})", AGAIN
        ) from error
    return text


def _byte_level(vocabulary: Vocabulary) -> dict[str, Any]:
    pre_tokenizer = vocabulary.pre_tokenizer
    assert pre_tokenizer is not None, "a byte-level vocabulary has one"
    splits = [
        {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
        for pattern in pre_tokenizer.patterns
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    begins = (
        pre_tokenizer.begins if vocabulary.adds_beginning is None else vocabulary.adds_beginning
    )
    return {
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [*splits, {**byte_level, "use_regex": False}],
        },
        "post_processor": _beginning(vocabulary, begins=begins),
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            **_bpe(vocabulary),
            "ignore_merges": pre_tokenizer.ignores_merges,
            "merges": vocabulary.merges.decoded(),
        },
    }


def _sentencepiece(vocabulary: Vocabulary) -> dict[str, Any]:
    normalizers: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    ]
    if vocabulary.adds_space:
        normalizers.insert(0, {"type": "Prepend", "prepend": _SPACE})
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": None,
        "post_processor": _beginning(vocabulary, begins=vocabulary.adds_beginning is not False),
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                *(strip if vocabulary.adds_space else []),
            ],
        },
        "model": {
            **_bpe(vocabulary),
            "unk_token": vocabulary.text_of(vocabulary.unknown) or None,
            "fuse_unk": True,
            "byte_fallback": True,
            "merges": _merges_by_score(vocabulary),
        },
    }


def _merges_by_score(vocabulary: Vocabulary) -> list[list[str]]:
    """Return all pairs of tokens that make a token, in the order of its score: SentencePiece makes
    the token with the highest score first, from any two parts."""
    normal = vocabulary.types == TokenType.NORMAL
    tokens = {text: token for token, text in enumerate(vocabulary.tokens) if normal[token]}
    order = np.argsort(-vocabulary.scores, kind="stable")
    merges = []
    for token in order.tolist():
        text = vocabulary.tokens[token]
        if not normal[token]:
            continue
        pairs = [(text[:cut], text[cut:]) for cut in range(1, len(text))]
        merges += [list(pair) for pair in pairs if pair[0] in tokens and pair[1] in tokens]
    return merges


def _bpe(vocabulary: Vocabulary) -> dict[str, Any]:
    texts = vocabulary.tokens
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {text or f"[EMPTY_{token}]": token for token, text in enumerate(texts)},
    }


def _added_tokens(vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Return tokens that stand for their whole name. Which of them a user's text may hold is
    decided by who reads the definition: white space and single letters."""
    controls = {*vocabulary.end_tokens, *vocabulary.fim_tokens.values(), vocabulary.beginning}
    return [
        {
            "id": token,
            "content": vocabulary.tokens[token],
            "single_word": False,
            "lstrip": False,
            "rstrip": vocabulary.takes_blanks and vocabulary.tokens[token] not in _TAKE_NO_BLANKS,
            "normalized": False,
            "special": bool(vocabulary.types[token] != TokenType.USER_DEFINED) or token in controls,
        }
        for token in np.flatnonzero(np.isin(vocabulary.types, NAMED)).tolist()
        if vocabulary.tokens[token]
    ]


def _beginning(vocabulary: Vocabulary, *, begins: bool) -> dict[str, Any] | None:
    token = vocabulary.beginning
    if not begins or token is None:
        return None
    name = vocabulary.text_of(token)
    first = {"SpecialToken": {"id": name, "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {
        "type": "TemplateProcessing",
        "single": [first, text],
        "pair": [first, text, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {name: {"id": name, "ids": [token], "tokens": [name]}},
    }
