"""The datastore of common code: built from folders, added to, resumed, bounded."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from repo_index import indexer as indexer_module
from repo_index.corpus import Corpus, build_common, package_folders, workspace_environments
from repo_index.datastore import Datastore
from repo_index.merging import MergeBuffers, merge_segments
from repo_index.ordering import sort_positions
from repo_index.segment import Segment
from repo_index.store import common_store
from repo_index.tokens import TextTokenizer
from tests.index.test_indexer import indexed_texts, piece


def library(folder: Path, files: int, seed: int) -> Path:
    generator = random.Random(seed)
    for i in range(files):
        path = folder / f"package{i % 3}" / f"{i}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(piece(generator))
    (folder / "tests").mkdir()
    (folder / "tests" / "test_a.py").write_text("a = 1\n")
    (folder / "data.txt").write_text("not python\n")
    return folder


def test_folders_are_added_and_kept(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    one, two = library(tmp_path / "one", 6, 1), library(tmp_path / "two", 5, 2)
    store = tmp_path / "store"
    assert Corpus([one]).build(tokenizer, store).status().files == 6
    status = Corpus([two]).build(tokenizer, store).status()
    assert (status.files, status.segments, status.complete) == (11, 1, True)
    first = indexed_texts(store, tokenizer)
    assert {path.partition("/")[0].rpartition("-")[0] for path in first} == {"one", "two"}
    segments = sorted(store.glob("*.segment"))
    Corpus([one, two]).build(tokenizer, store)
    assert sorted(store.glob("*.segment")) == segments, "unchanged folders were indexed again"
    for path in sorted(one.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    one.rmdir()
    assert Corpus([two]).build(tokenizer, store).status().files == 5


def test_the_same_file_is_indexed_once(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    one = library(tmp_path / "one", 6, 1)
    two = library(tmp_path / "two", 6, 1)
    status = Corpus([one, two]).build(tokenizer, tmp_path / "store").status()
    assert (status.files, status.excluded) == (6, 6)


def test_an_interrupted_build_goes_on(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, store = library(tmp_path / "one", 60, 3), tmp_path / "store"
    monkeypatch.setattr(indexer_module, "_BLOCK_TOKENS", 2000)
    monkeypatch.setattr(indexer_module, "_SHORT_BATCH_CHARACTERS", 3000)
    encoded: list[int] = []
    made_of = tokenizer._tokenizer, tokenizer.sha256, tokenizer.vocabulary_size

    class Stopping(TextTokenizer):
        def encode(self, texts: list[str]) -> list[np.ndarray]:  # type: ignore[type-arg]
            encoded.append(len(texts))
            if sum(encoded) > 40:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        Corpus([folder]).build(Stopping(*made_of), store)
    done = len(indexed_texts(store, tokenizer))
    assert 10 < done < 60
    encoded.clear()

    class Counting(TextTokenizer):
        def encode(self, texts: list[str]) -> list[np.ndarray]:  # type: ignore[type-arg]
            encoded.append(len(texts))
            return super().encode(texts)

    status = Corpus([folder]).build(Counting(*made_of), store).status()
    assert sum(encoded) == 60 - done
    assert (status.files, status.segments, status.complete) == (60, 1, True)


def test_a_limit_of_tokens_is_kept(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer_module, "_SHORT_BATCH_CHARACTERS", 3000)
    folder, store = library(tmp_path / "one", 60, 4), tmp_path / "store"
    status = Corpus([folder]).build(tokenizer, store, max_tokens=3000).status()
    assert 3000 <= status.tokens < 6000
    tokens = Corpus([folder]).build(tokenizer, store, max_tokens=3000).status().tokens
    assert tokens == status.tokens


def test_environments_are_found_by_their_place(tmp_path: Path) -> None:
    work = tmp_path / "work"
    packages = work / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (work / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    (work / ".venv" / "bin").mkdir()
    (work / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
    for given in (work / ".venv", work / ".venv" / "bin" / "python", packages):
        assert package_folders(given) == [packages]
    assert workspace_environments(work) == [packages]
    (work / "venv").symlink_to("/usr")
    (work / "env").mkdir()
    (work / "env" / "pyvenv.cfg").write_text("")
    (work / "env" / "lib").symlink_to("/usr/lib")
    assert workspace_environments(work) == [packages]
    assert package_folders(tmp_path) == []


def test_the_default_is_our_own_library_and_the_workspace_environment(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("repo_index.corpus.standard_library", lambda: tmp_path / "lib")
    library(tmp_path / "lib", 4, 5)
    packages = tmp_path / "work" / ".venv" / "lib" / "python3.11" / "site-packages"
    library(packages, 3, 6)
    (tmp_path / "work" / ".venv" / "pyvenv.cfg").write_text("")
    pauses: list[int] = []
    assert build_common(str(tmp_path / "work"), tokenizer, pause=lambda: pauses.append(1))
    assert len(indexed_texts(common_store(tokenizer.sha256), tokenizer)) == 7
    assert pauses
    datastore = Datastore(None, tokenizer.sha256, common=common_store(tokenizer.sha256))
    ids = datastore.snapshot().parts[0].segment.file_tokens(0)[:16].astype(np.int32)
    assert 5 in datastore.snapshot().lookup(ids).sources


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
def test_merged_segments_equal_one_made_afresh(
    tmp_path: Path, dtype: type[np.unsignedinteger]
) -> None:
    """Also when the working arrays lie in files."""
    rng = np.random.default_rng(9)
    for scratch in (MergeBuffers(), MergeBuffers(tmp_path, in_memory=10)):
        parts = []
        living = {}
        for part, count in enumerate((30, 4, 1, 50)):
            files = {
                f"{part}/{i}": rng.integers(0, 3, rng.integers(0, 90)).astype(np.int32)
                for i in range(count)
            }
            dead = rng.random(count) < (1.0 if part == 2 else 0.3)
            parts.append((Segment.from_files(files, dtype=dtype), dead))
            living |= {p: ids for (p, ids), d in zip(files.items(), dead, strict=True) if not d}
        merged = merge_segments(parts, scratch=scratch)
        fresh = Segment.from_files(living, dtype=dtype)
        assert list(merged.paths) == list(fresh.paths)
        assert np.array_equal(merged.tokens, fresh.tokens)
        assert np.array_equal(merged.starts, fresh.starts)
        assert np.array_equal(merged.order, sort_positions(fresh.tokens))
    assert list(tmp_path.iterdir()) == []
