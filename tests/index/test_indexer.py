"""An index that followed changes equals one made afresh, for every kind of change."""

from __future__ import annotations

import os
import random
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from seeds import Amount

from repo_index import indexer as indexer_module
from repo_index.datastore import Datastore
from repo_index.errors import StoreLocked, StoreUnwritable
from repo_index.indexer import Indexer
from repo_index.overlay import Overlay
from repo_index.source_tree import FolderTree
from repo_index.tokens import TextTokenizer
from tests.index.conftest import source_text
from tests.index.faulty_files import FullDisk
from tests.token_files import path_of


def open_indexer(workspace: Path, store: Path, tokenizer: TextTokenizer) -> Indexer:
    return Indexer(FolderTree(workspace), store, tokenizer, threads=1)


def indexed_texts(store: Path, tokenizer: TextTokenizer) -> dict[str, list[int]]:
    """Tokens of every living file, as a reader sees them."""
    files: dict[str, list[int]] = {}
    for part in Datastore(store, tokenizer.sha256).snapshot().parts:
        segment = part.segment
        for index, path in enumerate(segment.paths):
            if (len(part.dead) and part.dead[index]) or (
                segment.reasons and segment.reasons[index]
            ):
                continue
            assert path not in files, f"{path} is indexed twice"
            files[path] = segment.file_tokens(index).tolist()
    return files


def expected_texts(workspace: Path, tokenizer: TextTokenizer) -> dict[str, list[int]]:
    tree = FolderTree(workspace)
    texts = {path: tree.read(path) for path, _ in tree.walk()}
    return {
        path: tokenizer.encode([content.text])[0].tolist()
        for path, content in texts.items()
        if not content.reason
    }


_STEPS = ("write", "write", "edit", "remove", "folder", "move", "tree", "ignore", "same")


def piece(generator: random.Random) -> str:
    begin = generator.randint(0, 100_000)
    return source_text()[begin : begin + generator.randint(50, 1500)]


def random_step(generator: random.Random, workspace: Path) -> set[str]:
    """Change something; returns the paths that an event would name."""
    folders = [workspace, *(p for p in workspace.rglob("*") if p.is_dir())]
    files = [p for p in workspace.rglob("*") if p.is_file() and p.name != ".gitignore"]
    folder = generator.choice(folders)
    kind = generator.choice(_STEPS)
    touched = set()
    if kind == "write" or not files:
        target = folder / f"{generator.randint(0, 30)}.{generator.choice(['py', 'txt', 'log'])}"
        if not target.is_dir():
            target.write_text(piece(generator))
            touched = {target}
    elif kind == "edit":
        target = generator.choice(files)
        target.write_text(target.read_text() + piece(generator))
        touched = {target}
    elif kind == "remove":
        target = generator.choice(files)
        target.unlink()
        touched = {target}
    elif kind == "folder":
        target = folder / f"folder{generator.randint(0, 5)}"
        target.mkdir(exist_ok=True)
        touched = {target}
    elif kind == "move":
        source = generator.choice(files + folders[1:])
        target = folder / f"moved{generator.randint(0, 9)}"
        if source not in (target, *target.parents) and not target.exists():
            source.rename(target)
            touched = {source, target}
    elif kind == "tree" and folder != workspace:
        shutil.rmtree(folder)
        touched = {folder}
    elif kind == "ignore":
        target = folder / ".gitignore"
        target.write_text(generator.choice(["*.txt\n", "folder1/\n", "", "!*.txt\n3.py\n"]))
        touched = {target}
    elif kind == "same":
        target = generator.choice(files)
        status = target.stat()
        text = target.read_text()
        target.write_text(text[::-1])
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        touched = {target}
    return {str(p.relative_to(workspace)) for p in touched}


def follow_random_changes(
    seed: int, steps: int, workspace: Path, store: Path, tokenizer: TextTokenizer
) -> None:
    generator = random.Random(seed)
    indexer = open_indexer(workspace, store, tokenizer)
    named: set[str] = set()
    for step in range(steps):
        named |= random_step(generator, workspace)
        action = generator.random()
        if action < 0.5:
            indexer.refresh(named)
        elif action < 0.7:
            indexer.refresh()
        elif action < 0.8:
            indexer.refresh()
            indexer.merge(everything=generator.random() < 0.3)
        elif action < 0.9:
            indexer.close()
            indexer = open_indexer(workspace, store, tokenizer)
            indexer.refresh()
        else:
            continue
        named = set()
        where = f"seed {seed}, step {step}"
        assert indexed_texts(store, tokenizer) == expected_texts(workspace, tokenizer), where
    indexer.close()


def test_random_changes_are_followed(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    for seed in range(amount(4, 500)):
        folder = tmp_path / str(seed)
        (folder / "work").mkdir(parents=True)
        follow_random_changes(seed, 60, folder / "work", folder / "store", tokenizer)
        shutil.rmtree(folder)


def lookups_equal(store: Path, fresh: Path, tokenizer: TextTokenizer) -> None:
    rng = np.random.default_rng(3)
    a = Datastore(store, tokenizer.sha256).snapshot()
    b = Datastore(fresh, tokenizer.sha256).snapshot()
    ids = tokenizer.encode([source_text()])[0]
    for _ in range(200):
        place = int(rng.integers(16, len(ids)))
        found = [
            sorted(
                (int(m.lengths[i]), path_of(s, int(m.files[i])), m.tokens[i].tolist())
                for i in range(len(m))
            )
            for s in (a, b)
            for m in [s.lookup(ids[place - 16 : place], limit=5000)]
        ]
        assert found[0] == found[1]


def test_lookups_after_many_changes_equal_those_of_a_fresh_index(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    generator = random.Random(11)
    indexer = open_indexer(work, tmp_path / "store", tokenizer)
    for _ in range(80):
        indexer.refresh(random_step(generator, work))
        indexer.merge()
    indexer.refresh()
    indexer.close()
    fresh = open_indexer(work, tmp_path / "fresh", tokenizer)
    fresh.refresh()
    fresh.close()
    lookups_equal(tmp_path / "store", tmp_path / "fresh", tokenizer)


def test_a_merge_beside_changes_loses_none_of_them(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    generator = random.Random(5)
    for i in range(40):
        (work / f"{i}.py").write_text(piece(generator))
    indexer = open_indexer(work, tmp_path / "store", tokenizer)
    indexer.refresh()
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        inside.set()
        assert go_on.wait(60)

    (work / "0.py").write_text(piece(generator))
    indexer.refresh(["0.py"])
    merging = threading.Thread(
        target=lambda: indexer._writer.merge(pause=hold, everything=True), daemon=True
    )
    merging.start()
    assert inside.wait(60)
    (work / "1.py").write_text(piece(generator))
    (work / "2.py").unlink()
    (work / "3.py").unlink()
    indexer.refresh(["1.py", "2.py", "3.py"])
    (work / "3.py").write_text(piece(generator))
    indexer.refresh(["3.py"])
    go_on.set()
    merging.join(60)
    assert indexed_texts(tmp_path / "store", tokenizer) == expected_texts(work, tokenizer)
    indexer.close()


def test_unchanged_files_are_not_read_again(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("a = 1\n")
    (work / "b.bin.py").write_bytes(b"\0\1\2")
    for path in work.iterdir():
        os.utime(path, ns=(1, 1))
    indexer = open_indexer(work, tmp_path / "store", tokenizer)
    assert sorted(indexer.refresh().indexed) == ["a.py", "b.bin.py"]
    # Files written just now are looked at once more, since their times may hide a later write.
    import time

    time.sleep(0.1)
    indexer.refresh()
    reads: list[str] = []
    read = indexer.tree.read
    indexer.tree.read = lambda path: reads.append(path) or read(path)  # type: ignore
    assert indexer.refresh().indexed == []
    assert reads == []
    indexer.close()


def test_a_store_has_one_writer(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    (tmp_path / "work").mkdir()
    first = open_indexer(tmp_path / "work", tmp_path / "store", tokenizer)
    with pytest.raises(StoreLocked, match="another process"):
        open_indexer(tmp_path / "work", tmp_path / "store", tokenizer)
    first.close()
    open_indexer(tmp_path / "work", tmp_path / "store", tokenizer).close()


def test_an_open_buffer_stands_for_its_file(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    work, store = tmp_path / "work", tmp_path / "store"
    work.mkdir()
    (work / "a.py").write_text("alpha_one = two + 1\n")
    indexer = open_indexer(work, store, tokenizer)
    indexer.refresh()
    overlay = Overlay(tokenizer)
    datastore = Datastore(store, tokenizer.sha256, overlay=overlay)
    context = tokenizer.encode(["alpha_one ="])[0]

    def follows() -> set[tuple[int, str]]:
        matches = datastore.snapshot().lookup(context)
        ids = tokenizer.encode(["alpha_one = two + 1\n", "alpha_one = three\n"])
        best = matches.lengths == matches.lengths.max(initial=0)
        names = {int(ids[0][len(context)]): "two", int(ids[1][len(context)]): "three"}
        return {
            (int(s), names.get(int(t), "?"))
            for s, t in zip(matches.sources[best], matches.tokens[best, 0], strict=True)
        }

    assert follows() == {(4, "two")}
    overlay.set_buffer("a.py", "alpha_one = three\n")
    assert follows() == {(3, "three")}
    overlay.close_buffer("a.py")
    assert follows() == {(4, "two")}
    (work / "a.py").write_text("alpha_one = three\n")
    indexer.refresh(["a.py"])
    assert follows() == {(4, "two")}
    assert datastore.reload_if_changed()
    assert not datastore.reload_if_changed()
    assert follows() == {(4, "three")}
    indexer.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_many_blocks_are_committed_one_after_another(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Also while the next is encoded; what one of them could not write is raised."""
    monkeypatch.setattr(indexer_module, "_BLOCK_TOKENS", 500)
    monkeypatch.setattr(indexer_module, "_BATCH_CHARACTERS", 1000)
    monkeypatch.setattr(indexer_module, "_SHORT_BATCH_CHARACTERS", 1000)
    work, store = tmp_path / "work", tmp_path / "store"
    work.mkdir()
    generator = random.Random(9)
    for i in range(40):
        (work / f"{i}.py").write_text(piece(generator))
    layer = FullDisk(1 << 60)
    indexer = Indexer(FolderTree(work), store, tokenizer, layer=layer, threads=threads)
    layer.left = 60
    with pytest.raises(StoreUnwritable):
        indexer.refresh()
    kept = indexed_texts(store, tokenizer)
    expected = expected_texts(work, tokenizer)
    assert 0 < len(kept) < len(expected)
    assert all(expected[path] == ids for path, ids in kept.items())
    layer.mend()
    assert len(indexer.refresh().indexed) == len(expected) - len(kept)
    assert indexed_texts(store, tokenizer) == expected
    indexer.close()
