"""Tokens spell the text byte for byte, and user text is never a control token."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_model import SMALL_MODEL
from tiny_models import byte_tokenizer
from tokenizers import Tokenizer as FastTokenizer
from tokenizers import decoders, models, normalizers

from accel.errors import BrokenModel, ModelNotFound
from accel.text.tokenizer import Tokenizer

EMBEDDED = Tokenizer.from_folder(SMALL_MODEL)


def sentencepiece_like() -> str:
    """A vocabulary like Llama 2's: the space is a mark, bytes fall back, a space is prepended."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", *"abcdefgh()"]
    words += ["\u2581a", "ab", "\u2581\u2581"]
    tokenizer = FastTokenizer(
        models.BPE(
            {word: index for index, word in enumerate(words)},
            [("\u2581", "a"), ("a", "b"), ("\u2581", "\u2581")],
            unk_token="<unk>",
            byte_fallback=True,
            fuse_unk=True,
        )
    )
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return str(tokenizer.to_str())


def composing(*normalizer: normalizers.Normalizer) -> Tokenizer:
    """A tokenizer that composes or takes apart letters for transformers, as those of Qwen."""
    tokenizer = FastTokenizer.from_str(byte_tokenizer())
    tokenizer.normalizer = normalizers.Sequence(list(normalizer))
    return Tokenizer(tokenizer.to_str())


@cache
def made_tokenizers() -> tuple[Tokenizer, ...]:
    return (
        Tokenizer(byte_tokenizer()),
        Tokenizer(sentencepiece_like()),
        composing(normalizers.NFC()),
        composing(normalizers.NFKC(), normalizers.NFD()),
    )


@settings(max_examples=150, deadline=None)
@given(st.text())
@example("cafe\u0301 = '\u212b \ufb01 \u1100\u1161'")
def test_bytes_spell_the_text(text: str) -> None:
    for tokenizer in (EMBEDDED, *made_tokenizers()):
        if tokenizer is made_tokenizers()[1] and "\u2581" in text:
            continue  # SentencePiece writes a space so, and cannot tell the two apart.
        tokens = tokenizer.encode(text)
        assert tokens.dtype == np.int32
        assert tokenizer.decode_bytes(tokens) == text.encode()
        assert tokenizer.decode(tokens) == text
        assert b"".join(tokenizer.bytes_of(int(token)) for token in tokens) == text.encode()


def test_names_of_control_tokens_in_user_text_are_text() -> None:
    token = EMBEDDED.special("<|fim_prefix|>")
    assert token is not None
    for text in ("<|fim_prefix|>", "a = '<|endoftext|>'", "<|mask|><|mask|>"):
        tokens = EMBEDDED.encode(text)
        assert not set(tokens.tolist()) & EMBEDDED.special_tokens
        assert EMBEDDED.decode(tokens) == text
    assert EMBEDDED.encode_with_controls([("a<|fim_prefix|>", False)]).tolist()[-1] == token


def test_control_tokens_not_marked_special_are_found_too() -> None:
    """Qwen2.5-Coder marks its fim tokens as ordinary added tokens."""
    definition = json.loads(byte_tokenizer(specials=["<|fim_prefix|>"]))
    definition["added_tokens"][0]["special"] = False
    tokenizer = Tokenizer(json.dumps(definition))
    assert tokenizer.special("<|fim_prefix|>") == 256
    assert tokenizer.special_tokens == {256}
    assert 256 not in tokenizer.encode("<|fim_prefix|>")


def test_runs_of_spaces_may_be_added_tokens() -> None:
    """GPT-NeoX and others hold white space as added tokens, which are vocabulary."""
    tokenizer = Tokenizer(byte_tokenizer(specials=["    "]))
    assert tokenizer.encode("    x").tolist()[0] == 256
    assert tokenizer.special_tokens == frozenset()
    assert tokenizer.decode(tokenizer.encode("    x")) == "    x"


def test_what_is_not_there() -> None:
    assert EMBEDDED.special("<|no_such_token|>") is None
    assert EMBEDDED.bytes_of(-1) == EMBEDDED.bytes_of(EMBEDDED.vocabulary_size) == b""
    assert EMBEDDED.decode([10**6]) == ""
    assert EMBEDDED.encode("").tolist() == []


def test_the_hash_is_that_of_the_file() -> None:
    assert EMBEDDED.sha256 == Tokenizer.from_folder(SMALL_MODEL).sha256
    assert EMBEDDED.sha256 != Tokenizer(byte_tokenizer()).sha256


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="is not a folder"):
        Tokenizer.from_folder(tmp_path / "nothing")
    with pytest.raises(ModelNotFound):
        Tokenizer.from_folder(tmp_path)
    for content in (b"{", b"[]", b"\xff\xfe", b'{"version": 1}'):
        (tmp_path / "tokenizer.json").write_bytes(content)
        with pytest.raises(BrokenModel) as caught:
            Tokenizer.from_folder(tmp_path)
        assert "\n" not in str(caught.value)


def test_the_opening_is_what_the_model_expects_first() -> None:
    assert EMBEDDED.opening.tolist() == []
    definition = json.loads(byte_tokenizer(specials=["<s>"]))
    definition["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}},
    }
    assert Tokenizer(json.dumps(definition)).opening.tolist() == [256]
