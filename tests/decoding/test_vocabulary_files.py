"""Tables of a vocabulary are on disk the second time, and damage costs only time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest
from small_model import SMALL_MODEL

from accel.drafting import shapes_of
from accel.drafting.copy.candidates import classes_of, token_classes
from accel.drafting.retrieval.token_classes import TokenShapes
from accel.text import vocabulary_files
from accel.text.byte_index import byte_order
from accel.text.tokenizer import Tokenizer
from accel.text.vocabulary_files import VocabularyFiles


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "redraft" / "vocabularies"


def never() -> dict[str, np.ndarray]:
    raise AssertionError("it was made before")


def test_arrays_are_made_once() -> None:
    first = VocabularyFiles("a").arrays("x", lambda: {"n": np.arange(5, dtype=np.int32)})
    second = VocabularyFiles("a").arrays("x", never)
    assert (first["n"] == second["n"]).all()
    assert second["n"].dtype == np.int32


@pytest.mark.parametrize("damage", ["cut", "empty", "other bytes", "a flipped bit"])
def test_damaged_files_are_made_again(cache: Path, damage: str) -> None:
    files = VocabularyFiles("a")
    files.arrays("x", lambda: {"n": np.arange(5000)})
    (path,) = cache.glob("*/x.npz")
    data = path.read_bytes()
    middle = len(data) // 2
    path.write_bytes(
        {
            "cut": data[:middle],
            "empty": b"",
            "other bytes": b"no archive at all",
            "a flipped bit": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        }[damage]
    )
    assert (files.arrays("x", lambda: {"n": np.arange(3)})["n"] == np.arange(3)).all()
    assert (files.arrays("x", never)["n"] == np.arange(3)).all()


def test_objects_are_never_unpickled(cache: Path) -> None:
    files = VocabularyFiles("a")
    files.arrays("x", lambda: {"n": np.arange(3)})
    (path,) = cache.glob("*/x.npz")
    np.savez(path, n=np.array([print], object), allow_pickle=True)
    assert files.arrays("x", lambda: {"n": np.arange(3)})["n"].tolist() == [0, 1, 2]


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in place of the folder")
    made = VocabularyFiles("a").arrays("x", lambda: {"n": np.arange(3)})
    assert made["n"].tolist() == [0, 1, 2]


def test_those_used_longest_ago_go(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary_files, "MOST_FOLDERS", 3)
    names = ["a", "b", "c"]
    for number, name in enumerate(names):
        files = VocabularyFiles(name)
        files.arrays("x", lambda: {"n": np.arange(3)})
        old = time.time() - 2 * vocabulary_files.UNUSED_S + number
        os.utime(files.folder, (old, old))
    VocabularyFiles("a").arrays("x", never)
    VocabularyFiles("d").arrays("x", lambda: {"n": np.arange(3)})
    assert sorted(path.name.split("-")[0] for path in cache.iterdir()) == ["a", "c", "d"]


def test_what_was_kept_of_a_vocabulary_is_what_is_derived() -> None:
    """Of a real vocabulary, made and read again."""
    made, read = (Tokenizer.from_folder(SMALL_MODEL) for _ in range(2))
    table = [
        text if token in read._added else read._spelt(text)  # as its definition spells them
        for token, text in ((n, read.fast.id_to_token(n) or "") for n in range(4096))
    ]
    spelt = [each.encode() if isinstance(each, str) else each for each in table]
    for tokenizer in (made, read):
        assert tokenizer.byte_table[:4096] == spelt
        plain = [
            b"" if token in tokenizer.special_tokens else bytes_
            for token, bytes_ in enumerate(tokenizer.byte_table)
        ]
        actual = tokenizer.byte_index.starting_with(b"re")
        order = byte_order(plain)
        assert actual.tolist() == [n for n in order.tolist() if plain[n].startswith(b"re")]
        assert (classes_of(tokenizer) == token_classes(tokenizer.byte_table)).all()
        shapes = zip(shapes_of(tokenizer), TokenShapes.of(tokenizer.byte_table), strict=True)
        assert all((kept == derived).all() for kept, derived in shapes)
