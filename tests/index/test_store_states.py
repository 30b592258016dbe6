"""Stores of other versions, unwritable folders, clocks and files that play tricks, old stores."""

from __future__ import annotations

import errno
import json
import os
import random
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from repo_index import reading
from repo_index.file_layer import FileLayer
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from repo_index.store import remove_old_stores, usable_folder, workspace_store
from repo_index.tokens import TextTokenizer
from tests.index.store_place import Place, manifest_of
from tests.index.test_indexer import indexed_texts, piece


def test_a_folder_that_cannot_be_written_is_replaced(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    class Unwritable(FileLayer):
        def make_folder(self, folder: Path) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("a = 1\n")
    indexer = Indexer(
        FolderTree(tmp_path / "work"), tmp_path / "store", tokenizer, layer=Unwritable()
    )
    indexer.refresh()
    status = indexer.status()
    assert "cannot be written" in status.problem
    assert Path(status.folder) != tmp_path / "store"
    assert list(indexed_texts(Path(status.folder), tokenizer)) == ["a.py"]
    indexer.close()
    usable, problem = usable_folder(tmp_path / "fine", FileLayer())
    assert (usable, problem) == (tmp_path / "fine", "")


def test_foreign_stores_are_built_again(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    place = Place(tmp_path, tokenizer, 3)
    original = manifest_of(place.store)
    for change in ({"format": 99}, {"tokenizer_hash": "0" * 64}, {"segments": [{"x": 1}]}):
        body = json.dumps({**original, **change}).encode()
        (place.store / "manifest").write_bytes(b"%08x\n" % zlib.crc32(body) + body)
        assert place.served() == {}
        place.refresh()
        assert place.served() == place.expected()
        original = manifest_of(place.store)
    # A version and a byte order that are not ours, in files whose checksums are right.
    for ours, theirs in ((b"REDRAFT\x03", b"REDRAFT\x63"), (b'"<u2"', b'">u2"')):
        segment = next(place.store.glob("*.segment"))
        data = segment.read_bytes()
        assert ours in data
        data = data.replace(ours, theirs)
        body = json.dumps(original).replace(
            f'"crc": {original["segments"][0]["crc"]}',
            f'"crc": {zlib.crc32(data)}',  # type: ignore
        )
        segment.write_bytes(data)
        encoded = body.encode()
        (place.store / "manifest").write_bytes(b"%08x\n" % zlib.crc32(encoded) + encoded)
        assert place.served() == {}
        place.refresh()
        assert place.served() == place.expected()
        original = manifest_of(place.store)


def test_rewrites_that_keep_size_and_time_are_found(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    place = Place(tmp_path, tokenizer, 7)
    for i in range(100):
        (place.work / f"many{i}.py").write_text(f"value = {i:05d}\n")
    place.refresh()
    for i in range(100):
        path = place.work / f"many{i}.py"
        status = path.stat()
        path.write_text(f"value = {99999 - i:05d}\n")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    place.refresh()
    assert place.served() == place.expected()


@pytest.mark.parametrize("days", [-1, 1])
def test_a_clock_that_is_off_hides_nothing(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch, days: int
) -> None:
    real = time.time_ns
    monkeypatch.setattr(reading.time, "time_ns", lambda: real() + days * 86_400 * 10**9)
    place = Place(tmp_path, tokenizer, 8)
    for _ in range(20):
        place.change()
        place.refresh()
        assert place.served() == place.expected()


def test_files_that_change_while_they_are_read(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skipped or retried: never an exception, never half a file."""
    place = Place(tmp_path, tokenizer, 9)
    read_all: Callable[[int, int], bytes] = reading._read_all
    generator = random.Random(9)

    def restless(descriptor: int, limit: int) -> bytes:
        data = read_all(descriptor, limit)
        victim = place.work / f"{generator.randint(0, 5)}.py"
        fate = generator.random()
        if fate < 0.2:
            victim.unlink(missing_ok=True)
        elif fate < 0.5:
            victim.write_text(piece(generator))
        return data

    monkeypatch.setattr(reading, "_read_all", restless)
    for _ in range(60):
        place.change()
        place.refresh()
    monkeypatch.undo()
    place.refresh()
    assert place.served() == place.expected()


def test_old_stores_are_cleaned_up(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    stores = {}
    for name in ("kept", "gone", "old", "open"):
        work = tmp_path / name
        work.mkdir()
        (work / "a.py").write_text("a = 1\n")
        indexer = Indexer(
            FolderTree(work),
            workspace_store(work, tokenizer.sha256),
            tokenizer,
            workspace=str(work),
        )
        indexer.refresh()
        stores[name] = indexer.folder
        if name != "open":
            indexer.close()
    (tmp_path / "gone" / "a.py").unlink()
    (tmp_path / "gone").rmdir()
    (tmp_path / "open" / "a.py").unlink()
    (tmp_path / "open").rmdir()
    for path in (stores["old"], stores["old"] / "lock"):
        os.utime(path, (1, 1))
    removed = remove_old_stores(FileLayer(), now=time.time(), keep=frozenset())
    assert set(removed) == {stores["gone"], stores["old"]}
    assert stores["kept"].is_dir()
    assert stores["open"].is_dir()
