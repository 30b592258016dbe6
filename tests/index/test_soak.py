"""Long use costs no memory, no descriptors and no disk beyond what the files take."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from repo_index.datastore import Datastore
from repo_index.overlay import Overlay
from repo_index.residence import Residence, resident_file_bytes
from repo_index.segment import Segment
from repo_index.segment_file import read_segment
from repo_index.store import folder_bytes
from repo_index.store_writer import StoreWriter
from repo_index.tokens import TextTokenizer
from tests.index.conftest import source_text
from tests.index.test_indexer import expected_texts, indexed_texts, open_indexer, piece


def private_bytes() -> int:
    fields = Path("/proc/self/status").read_text().split("RssAnon:")[1].split()
    return int(fields[0]) << 10


def soak(folder: Path, tokenizer: TextTokenizer, edits: int, reopenings: int) -> None:
    generator = random.Random(27)
    work, store = folder / "work", folder / "store"
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
        datastore = Datastore.open(store, tokenizer.sha256, overlay=overlay)
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
        del datastore
        if turn == reopenings // 3:
            descriptors, memory = len(os.listdir("/proc/self/fd")), private_bytes()
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    assert private_bytes() <= memory * 1.05 + 5_000_000


def test_use_leaves_nothing_behind(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    soak(tmp_path, tokenizer, edits=900, reopenings=9)


@pytest.mark.long
@pytest.mark.timeout(3400)
def test_long_use_leaves_nothing_behind(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    soak(tmp_path, tokenizer, edits=1_000_000, reopenings=100)
    shutil.rmtree(tmp_path)


def test_mapped_pages_are_let_go_of(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    files = {"a": rng.integers(0, 500, 1_500_000).astype(np.int32)}
    writer = StoreWriter(tmp_path, "hash")
    writer.commit(Segment.from_files(files, dtype=np.uint16))
    writer.close()
    segment = read_segment(next(tmp_path.glob("*.segment")), "hash")
    base = resident_file_bytes()
    residence = Residence(limit=4 << 20)
    total = int(segment.order.astype(np.int64).sum())
    assert resident_file_bytes() - base > 5 << 20
    residence.keep_small([segment.mapping, None])
    assert resident_file_bytes() - base < 2 << 20
    assert int(segment.order.astype(np.int64).sum()) == total
