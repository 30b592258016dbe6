"""A model's file is opened once in a process for all callers, and never mapped."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from gguf_models import random_module, save_gguf
from small_model import SMALL_MODEL
from text_cases import data_beside

from accel.decoding.engine import Engine
from accel.files.gguf import file as gguf_file
from accel.files.gguf.file import GgufFile
from accel.files.gguf.header import read_header
from accel.models.cpu.quantised.file_blocks import BLOCK_TYPES
from accel.models.model_file import COMPUTED_AS_STORED, FolderModel, model_file
from accel.text.gguf_tokenizer import tokenizer_of

DATA = data_beside(__file__)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "redraft"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    sizes = {"hidden_size": 64, "intermediate_size": 128, "head_dim": 32}
    made = save_gguf(tmp_path / "m.gguf", random_module("qwen2", **sizes), "Q8_0")
    return settled(made)


def settled(path: Path) -> Path:
    """A file whose times are long ago, so that what is read of it may be at hand."""
    long_ago = time.time_ns() - 10 * gguf_file.SETTLED_NS
    os.utime(path, ns=(long_ago, long_ago))
    time.sleep(max(0.0, (path.stat().st_ctime_ns + gguf_file.SETTLED_NS - time.time_ns()) / 1e9))
    return path


def test_a_header_is_read_once_for_all_who_ask(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Any] = []

    def counted(*arguments: Any) -> Any:
        read.append(arguments)
        return read_header(*arguments)

    monkeypatch.setattr(gguf_file, "read_header", counted)
    actual = model_file(path)
    actual.check()
    assert actual.size("int8").weights == actual.parameters > 0
    assert actual.fills
    assert actual.tokenizer.vocabulary_size
    Engine.load(path, threads=1, preloads=False)
    assert model_file(path) is actual
    assert len(read) == 1


def test_a_file_that_changes_is_opened_again(path: Path) -> None:
    before = model_file(path)
    os.utime(path)
    after = model_file(path)
    assert after is not before
    assert after.parameters == before.parameters


def test_one_tokenizer_is_made_for_all_files_of_a_vocabulary(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(path.read_bytes())
    assert model_file(other).tokenizer is model_file(path).tokenizer


def kept_folder(path: Path) -> Path:
    with GgufFile(path) as file:
        return tokenizer_of(file.metadata).folder


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("damage", ["cut", "a changed letter", "gone"])
def test_a_kept_tokenizer_that_is_damaged_is_made_again(path: Path, name: str, damage: str) -> None:
    folder = kept_folder(path)
    whole = {file.name: file.read_bytes() for file in folder.glob("*.json")}
    content = whole[name]
    if damage == "gone":
        (folder / name).unlink()
    else:
        changed = content[:-9] if damage == "cut" else content.replace(b'"sha256"', b'"sha265"')
        changed = changed.replace(b'"[PAD1]"', b'"[PAD!]"') if damage != "cut" else changed
        assert changed != content
        (folder / name).write_bytes(changed)
    assert kept_folder(path) == folder
    assert {file.name: file.read_bytes() for file in folder.glob("*.json")} == whole


def test_a_folder_says_the_same_of_itself_as_its_config() -> None:
    actual = model_file(SMALL_MODEL)
    assert isinstance(actual, FolderModel)
    actual.check()
    assert actual.family == "llama"
    assert actual.fills
    assert actual.size("bf16").token_bytes == actual.token_bytes("bf16", "f16") > 0


def test_types_that_are_computed_as_stored_are_those_of_the_forward() -> None:
    assert set(BLOCK_TYPES) == COMPUTED_AS_STORED


SHRINKING = DATA["SHRINKING"]


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_file_that_shrinks_while_the_daemon_looks_at_it_is_no_crash(
    kind: str, path: Path, tmp_path: Path
) -> None:
    """A mapped page that is gone would end the process by a signal."""
    model, shrinking = path, path
    if kind == "folder":
        model = tmp_path / "folder"
        model.mkdir()
        for file in SMALL_MODEL.iterdir():
            if file.is_file():
                (model / file.name).write_bytes(file.read_bytes())
        shrinking = model / "model.safetensors"
    script = tmp_path / "shrinking.py"
    script.write_text(SHRINKING)
    ended = subprocess.run(
        [sys.executable, str(script), str(shrinking), str(model)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "whole" in ended.stdout
