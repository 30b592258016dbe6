"""Long use costs no memory, no descriptors and no disk beyond what the files take."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest
from seeds import Amount

from repo_index import residence
from repo_index.datastore import Datastore, warm_up_changes, warm_up_lookups
from repo_index.file_layer import FileLayer
from repo_index.overlay import Overlay
from repo_index.segment import Segment
from repo_index.segment_file import read_segment, write_segment
from repo_index.store import folder_bytes
from repo_index.store_writer import StoreWriter
from repo_index.tokens import TextTokenizer
from tests.index.conftest import source_text
from tests.index.test_indexer import expected_texts, indexed_texts, open_indexer, piece


def private_bytes() -> int:
    fields = Path("/proc/self/status").read_text().split("RssAnon:")[1].split()
    return int(fields[0]) << 10


def test_use_leaves_nothing_behind(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    edits = amount(900, 1_000_000)
    reopenings = amount(9, 100)
    generator = random.Random(27)
    work, store = tmp_path / "work", tmp_path / "store"
    work.mkdir(parents=True)
    for i in range(30):
        (work / f"{i}.py").write_text(piece(generator))
    overlay = Overlay(tokenizer)
    text = source_text()[:30_000]
    overlay.set_buffer("open.py", text)
    descriptors = memory = 0
    for turn in range(reopenings):
        indexer = open_indexer(work, store, tokenizer)
        indexer.refresh()
        datastore = Datastore(store, tokenizer.sha256, overlay=overlay)
        for step in range(edits // reopenings):
            start = generator.randrange(len(text) - 50)
            text = text[:start] + generator.choice(["x", "\n", "  ", "name_"]) + text[start + 3 :]
            overlay.set_buffer("open.py", text)
            if len(text) < 20_000:
                text = source_text()[:30_000]
            if step % 20 == 0:
                name = f"{generator.randrange(30)}.py"
                (work / name).write_text(piece(generator))
                indexer.refresh([name])
                indexer.merge()
                datastore.reload_if_changed()
                datastore.snapshot().lookup(np.arange(16, dtype=np.int32))
        live = sum(len(ids) * 6 for ids in expected_texts(work, tokenizer).values())
        assert folder_bytes(store) <= 2 * live + 50_000
        assert len(datastore.snapshot().parts) <= 8
        assert indexed_texts(store, tokenizer) == expected_texts(work, tokenizer)
        indexer.close()
        # Both hold the files of their segments open, more or fewer of them.
        del indexer, datastore
        if turn == reopenings // 3:
            descriptors, memory = len(os.listdir("/proc/self/fd")), private_bytes()
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert private_bytes() <= memory * 1.05 + 5_000_000


def resident_file_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[2]) * os.sysconf("SC_PAGE_SIZE")


def test_lookups_map_no_more_than_the_tokens(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    ids = (rng.zipf(1.3, 3_000_000) % 4000).astype(np.int32)
    writer = StoreWriter(tmp_path, "hash")
    writer.commit(Segment.from_files({"a": ids}, dtype=np.uint16))
    writer.close()
    warm_up_lookups(4000)
    warm_up_changes(4000)
    base = resident_file_bytes()
    datastore = Datastore(tmp_path, "hash")
    tokens = datastore.snapshot().parts[0].segment.tokens.nbytes
    for place in rng.integers(16, len(ids), 3000):
        assert len(datastore.snapshot().lookup(ids[place - 16 : place]))
    # The order alone is twice as large. 2 MB: the last folio that tokens lie in.
    assert tokens // 2 < resident_file_bytes() - base < tokens + (2 << 20)
    datastore.release()
    assert resident_file_bytes() - base < 1 << 20
    assert len(datastore.snapshot().lookup(ids[:16]))


def test_more_tokens_than_may_be_mapped_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small segments are mapped, as far as there is room."""
    monkeypatch.setattr(residence, "MAX_MAPPED", 5000)
    monkeypatch.setattr(residence, "SMALL", 100)
    segments = []
    for number, length in enumerate((1000, 4000, 1200, 20)):
        path = tmp_path / f"{number}.segment"
        files = {"a": np.arange(length, dtype=np.int32)}
        write_segment(FileLayer(), path, Segment.from_files(files), "hash")
        segments.append(read_segment(path, "hash"))
    in_memory = Segment.from_files({"b": np.arange(9000, dtype=np.int32)})
    sources = residence.sources_of([*segments, in_memory])
    assert [bool(source[1] >= 0) for source in sources] == [True, True, True, False, False]
    assert [bool(source[2] >= 0) for source in sources] == [False, True, False, False, False]
