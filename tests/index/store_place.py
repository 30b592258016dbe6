"""A workspace with its store, and what should be in it."""

from __future__ import annotations

import json
import random
from pathlib import Path

from repo_index.file_layer import FileLayer
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from repo_index.tokens import TextTokenizer
from tests.index.test_indexer import expected_texts, indexed_texts, piece

Texts = dict[str, list[int]]


class Place:
    """A workspace, its store, and what should be in it."""

    def __init__(self, folder: Path, tokenizer: TextTokenizer, seed: int) -> None:
        self.work, self.store = folder / "work", folder / "store"
        self.work.mkdir(parents=True)
        self.tokenizer = tokenizer
        self.generator = random.Random(seed)
        for i in range(6):
            (self.work / f"{i}.py").write_text(piece(self.generator))
        self.refresh()

    def open(self, layer: FileLayer | None = None) -> Indexer:
        return Indexer(FolderTree(self.work), self.store, self.tokenizer, layer=layer, threads=1)

    def refresh(self) -> None:
        indexer = self.open()
        indexer.refresh()
        indexer.close()

    def change(self) -> None:
        for name in self.generator.sample("0123456789", 2):
            (self.work / f"{name}.py").write_text(piece(self.generator))
        gone = self.work / f"{self.generator.randint(0, 9)}.py"
        if gone.exists() and len(list(self.work.iterdir())) > 3:
            gone.unlink()

    def served(self) -> Texts:
        return indexed_texts(self.store, self.tokenizer)

    def expected(self) -> Texts:
        return expected_texts(self.work, self.tokenizer)


def manifest_of(store: Path) -> dict[str, object]:
    return dict(json.loads((store / "manifest").read_bytes().partition(b"\n")[2]))
