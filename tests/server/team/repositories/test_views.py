"""Views of one store: what is mapped is shared, open documents are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_model import SMALL_MODEL

from lsp_server.engine.workspaces import WorkspaceIndexes


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("def price_of(item):\n    return item.price\n")
    return tmp_path / "work"


def test_views_share_what_is_mapped_and_follow_it(folder: Path) -> None:
    from repo_index.indexer import Indexer
    from repo_index.source_tree import FolderTree
    from repo_index.store import workspace_store

    indexes = WorkspaceIndexes(SMALL_MODEL, common=False)
    store = workspace_store(folder, indexes.tokenizer.sha256)
    indexer = Indexer.open(FolderTree(folder), store, indexes.tokenizer, workspace=str(folder))
    indexer.refresh()
    one, other = (indexes.open(name, str(store)) for name in ("one", "other"))
    segments = [view.snapshot().parts[0].segment for view in (one, other)]
    assert segments[0] is segments[1]
    indexes.set_buffer("one", "a.py", "one = 1\n")
    assert [len(view.snapshot().parts) for view in (one, other)] == [2, 1]
    before = other.snapshot()
    (folder / "b.py").write_text("def cost_of(item):\n    return item.cost\n")
    indexer.refresh()
    indexes.reload("one", str(store))
    assert other.snapshot() is not before
    assert set(other.repository_files()) == {"a.py", "b.py"}
    # A store that is named later takes the open documents with it.
    indexes.set_buffer("late", "c.py", "late = 1\n")
    indexes.open("late", str(store))
    assert len(indexes.datastore("late").snapshot().parts) == len(one.snapshot().parts)
    indexes.forget("one")
    assert "one" not in indexes.folders
    assert len(other.snapshot().parts) >= 1
    indexer.close()
