"""GGUF files: what is written is read, and what is damaged is refused in one line."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counted_calls import counted_calls
from damage import refuse_mutations
from gguf_writer import header_of, stored, write_gguf, write_parts
from seeds import Amount
from text_cases import data_beside

from accel.errors import AccelError, BrokenModel, ModelNotFound, UnsupportedModel
from accel.files.gguf import file, header
from accel.files.gguf.dequantise import can_be_read, dequantise
from accel.files.gguf.file import GgufFile
from accel.files.gguf.header import read_header
from accel.files.model_path import state_of

DATA = data_beside(__file__)

METADATA: dict[str, Any] = DATA["METADATA"]
GENERATOR = np.random.default_rng(2)
MATRIX = GENERATOR.standard_normal((5, 64)).astype(np.float32)
TENSORS = {
    "token_embd.weight": stored(MATRIX, "Q8_0"),
    "norm.weight": stored(MATRIX[0]),
    "cube": stored(GENERATOR.standard_normal((2, 3, 32)).astype(np.float32), "F16"),
}


def refusal(path: Path, kind: type[AccelError] = BrokenModel) -> str:
    with pytest.raises(kind) as caught:
        read_all(path)
    return checked(str(caught.value))


def checked(message: str) -> str:
    assert "\n" not in message
    assert ";" in message, "the message says what to do next"
    return message


def read_all(path: Path) -> None:
    with GgufFile(path) as file:
        for name, tensor in file.tensors.items():
            data = file.read(name)
            if can_be_read(tensor.type):
                dequantise(data, tensor.type)


def test_a_header_is_read_once_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_gguf(tmp_path / "m.gguf", METADATA, TENSORS)
    long_ago = time.time_ns() - 10 * file.SETTLED_NS
    os.utime(path, ns=(long_ago, long_ago))
    monkeypatch.setattr(file, "SETTLED_NS", 0)
    read = []

    def counted(*arguments: Any) -> Any:
        read.append(arguments)
        return read_header(*arguments)

    monkeypatch.setattr(file, "read_header", counted)
    for _ in range(3):
        read_all(path)
    assert len(read) == 1
    write_gguf(path, {**METADATA, "general.name": "other"}, TENSORS)
    with GgufFile(path) as changed:
        assert changed.metadata.text("general.name") == "other"
    assert len(read) == 2


@pytest.mark.parametrize("piece", [1, 2, 7, 64])
def test_a_header_that_arrives_in_pieces_is_the_same(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["", "a", "bc", "", "d", "x" * 70, "y"]
    path = write_gguf(tmp_path / "m.gguf", {**METADATA, "own.words": words}, TENSORS)
    monkeypatch.setattr(header, "_START", 8)
    monkeypatch.setattr(header, "_PIECE", piece)
    with path.open("rb", buffering=0) as stream:
        metadata, tensors = read_header(stream, path, path.stat().st_size)
    assert metadata.strings("own.words").decoded() == words
    assert [tensor.name for tensor in tensors] == list(TENSORS)


def test_the_header_of_a_file_that_was_just_written_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    for number in range(50):
        write_gguf(path, {**METADATA, "general.name": f"{number:02}"}, TENSORS)
        with GgufFile(path) as opened:
            assert opened.metadata.text("general.name") == f"{number:02}"


def test_metadata_and_tensors_are_read(tmp_path: Path) -> None:
    with GgufFile(write_gguf(tmp_path / "m.gguf", METADATA, TENSORS)) as file:
        metadata = file.metadata
        assert metadata.text("general.architecture") == "llama"
        assert metadata.integer("llama.block_count", 1, 10) == 1
        assert metadata.number("llama.rope.freq_base") == 10000.0
        assert metadata.flag("tokenizer.ggml.add_bos_token") is False
        assert metadata.strings("tokenizer.ggml.tokens").decoded() == ["a", "Ġb", "é", ""]
        assert metadata.numbers("tokenizer.ggml.token_type").tolist() == [1, 1, 3, 6]  # type: ignore[union-attr]
        assert metadata.text("general.name") is None
        with pytest.raises(BrokenModel, match=r"block_count is not a whole number from 2 to 3;"):
            metadata.integer("llama.block_count", 2, 3)
        assert file.tensors["cube"].shape == (2, 3, 32)
        actual = dequantise(file.read("token_embd.weight"), file.tensors["token_embd.weight"].type)
        assert np.abs(actual - MATRIX).max() < 0.03
        norm = file.read("norm.weight")
    assert norm.tobytes() == MATRIX[0].tobytes(), "what was read stays when the file is closed"


def test_a_split_model_opens_by_any_of_its_files(tmp_path: Path) -> None:
    first = {name: TENSORS[name] for name in ("token_embd.weight",)}
    rest = {name: TENSORS[name] for name in ("norm.weight", "cube")}
    write_parts(tmp_path, METADATA, [first, rest])
    paths = sorted(tmp_path.iterdir())
    for path in paths:
        with GgufFile(path) as file:
            assert file.metadata.text("general.architecture") == "llama"
            assert {name: file.read(name).tobytes() for name in file.tensors} == {
                name: tensor.data for name, tensor in TENSORS.items()
            }
    os.rename(paths[1], tmp_path / "elsewhere")
    assert "give a GGUF file with all its parts" in refusal(paths[0], ModelNotFound)
    state = state_of(paths[0])
    os.rename(tmp_path / "elsewhere", paths[1])
    assert state_of(paths[0]) != state, "a part that was missing is there"
    read_all(paths[0])
    os.rename(paths[0], tmp_path / "alone.gguf")
    assert "is one of 2 files" in refusal(tmp_path / "alone.gguf")


def test_a_file_that_shrinks_after_it_was_opened_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", METADATA, TENSORS)
    with GgufFile(path) as file:
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(BrokenModel, match="became shorter; fetch the file again"):
            file.read("cube")


def test_of_a_long_vocabulary_each_string_that_is_asked_for_is_read_once(tmp_path: Path) -> None:
    tokens = [f"token{n}" for n in range(15_194)]
    merges = [f"left{n} right{n}" for n in range(15_139)]
    metadata = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": merges}
    path = write_gguf(tmp_path / "m.gguf", metadata, {})

    def read() -> None:
        with GgufFile(path) as file:
            assert file.metadata.strings("tokenizer.ggml.merges").decoded() == merges

    assert counted_calls(read) < 4 * len(merges)


@pytest.mark.parametrize("piece", [1, 7, 64, 4096, header._PIECE])
def test_strings_of_all_lengths_are_passed_over_as_one_by_one(
    piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty ones, ones of zeros, and ones that are longer than a byte can say, too."""
    seed = int(time.time_ns()) % (1 << 30)
    print("seed", seed)
    chosen = np.random.default_rng(seed)
    monkeypatch.setattr(header, "_PIECE", piece)

    def string() -> str:
        kind = chosen.integers(12)
        length = int(chosen.integers(250, 600) if kind == 0 else chosen.integers(0, 30))
        letters = "\x00" if kind == 1 else "\x00\x01a\x07" if kind == 2 else "abcĠé"
        return "".join(chosen.choice(list(letters), length))

    for number in range(20):
        lists = {
            f"list.{name}": [string() for _ in range(chosen.integers(1, 60))] for name in "abc"
        }
        path = write_gguf(tmp_path / f"{number}.gguf", METADATA | lists, TENSORS)
        with GgufFile(path) as file:
            assert {name: file.metadata.strings(name).decoded() for name in lists} == lists
            assert file.metadata.strings("tokenizer.ggml.tokens").decoded() == ["a", "Ġb", "é", ""]
            assert (file.read("norm.weight").view(np.float32) == MATRIX[0]).all()


def test_what_cannot_be_a_model_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    assert "give a GGUF file" in refusal(path, ModelNotFound)
    path.write_bytes(b"hello")
    assert "does not begin as a GGUF file does" in refusal(path)
    path.write_bytes(b"")
    assert "is empty" in refusal(path)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert "is a pointer of Git LFS" in refusal(path)
    path.write_bytes(b"<!doctype html><title>Sign in</title>")
    assert "is a web page" in refusal(path)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 1, 0, 0))
    assert "has version 1; convert" in refusal(path, UnsupportedModel)
    path.write_bytes(b"GGUF" + struct.pack(">IQQ", 3, 0, 0))
    assert "is of a big-endian machine; convert" in refusal(path, UnsupportedModel)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0))
    assert "tensors where" in refusal(path)
    whole = write_gguf(path, METADATA, TENSORS).read_bytes()
    path.write_bytes(whole[:-40])
    assert "ends within 'cube'" in refusal(path)


def test_damaged_files_are_refused_in_one_line(tmp_path: Path, amount: Amount) -> None:
    count = amount(200, 10_000)
    path = write_gguf(tmp_path / "m.gguf", METADATA, TENSORS)
    refused = refuse_mutations(path, len(header_of(METADATA, TENSORS)), count, read_all)
    assert count / 2 < refused < count, "some mutations change a name, and no more"
