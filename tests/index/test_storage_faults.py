"""A store that is interrupted, damaged or out of space is the old one, the new one, or built again;
never a mixture, never wrong tokens."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from repo_index import reading
from repo_index.datastore import Datastore
from repo_index.errors import StoreUnwritable
from repo_index.file_layer import FileLayer
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from repo_index.store import remove_old_stores, usable_folder, workspace_store
from repo_index.tokens import TextTokenizer
from tests.index.conftest import DEFAULT_MODEL
from tests.index.faulty_files import Died, DyingFiles, FullDisk
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
        return Indexer.open(
            FolderTree(self.work), self.store, self.tokenizer, layer=layer, threads=1
        )

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


def run_crash_schedules(folder: Path, tokenizer: TextTokenizer, seeds: range) -> None:
    """Each: a change, a refresh or merge that dies at some write, a loss of power, a look."""
    place = Place(folder, tokenizer, seeds.start)
    deaths = 0
    for seed in seeds:
        generator = random.Random(seed)
        before = place.served()
        place.change()
        layer = DyingFiles(generator.randint(0, 50))
        indexer = None
        try:
            indexer = place.open(layer)
            indexer.refresh()
            if generator.random() < 0.5:
                indexer.merge(everything=True)
        except Died:
            deaths += 1
        finally:
            if indexer is not None:
                indexer.close()
        layer.lose_power(generator)
        after = place.expected()
        served = place.served()
        problems = Datastore.open(place.store, tokenizer.sha256).problems
        assert served in (before, after), f"seed {seed}: a mixture"
        assert not problems, f"seed {seed}: {problems}"
        place.refresh()
        assert place.served() == after, f"seed {seed}"
        names = {path.name for path in place.store.iterdir()}
        assert not [name for name in names if name.endswith(".tmp")], f"seed {seed}"
    assert deaths > len(seeds) // 4


def test_a_crash_leaves_the_old_or_the_new_state(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    run_crash_schedules(tmp_path, tokenizer, range(100))


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_five_thousand_crashes(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    run_crash_schedules(tmp_path, tokenizer, range(10_000, 15_000))


def damage(path: Path, kind: str, generator: random.Random) -> None:
    data = bytearray(path.read_bytes())
    if kind == "delete":
        path.unlink()
        return
    if kind == "zero":
        data = bytearray(len(data))
    elif kind == "halve":
        del data[len(data) // 2 :]
    elif kind == "empty":
        data.clear()
    elif kind == "flip":
        data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    elif kind == "append":
        data += b"x"
    # As a backup or another program would: replaced, not written in place under readers.
    other = path.with_name("other")
    other.write_bytes(bytes(data))
    os.replace(other, path)


def run_damage(folder: Path, tokenizer: TextTokenizer, rounds: range) -> None:
    place = Place(folder, tokenizer, rounds.start)
    for seed in rounds:
        generator = random.Random(seed)
        place.change()
        place.refresh()
        truth = place.expected()
        files = sorted(p for p in place.store.iterdir() if p.name != "lock")
        kind = generator.choice(["delete", "zero", "halve", "empty", "flip", "append"])
        victim = generator.choice(files)
        damage(victim, kind, generator)
        served = place.served()
        where = f"seed {seed}: {kind} {victim.name}"
        assert all(truth.get(path) == tokens for path, tokens in served.items()), where
        indexer = place.open()
        if served != truth and kind != "delete":
            assert indexer.damage, where
        indexer.refresh()
        indexer.close()
        assert place.served() == truth, where


def test_damage_is_found_and_rebuilt(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    run_damage(tmp_path, tokenizer, range(80))


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_a_thousand_damages(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    run_damage(tmp_path, tokenizer, range(20_000, 21_000))


def test_a_full_disk_leaves_the_old_index(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    place = Place(tmp_path, tokenizer, 1)
    finished = 0
    said: list[str] = []
    for last in range(60):
        layer = FullDisk(1 << 60)
        indexer = place.open(layer)
        before = place.served()
        place.change()
        layer.left = last
        try:
            indexer.refresh()
            indexer.merge(everything=True)
            finished += 1
        except StoreUnwritable as error:
            said.append(str(error))
            assert place.served() in (before, place.expected()), f"write {last}"
        assert not list(place.store.glob("*.tmp")), f"write {last}"
        named = {e["name"] for e in manifest_of(place.store)["segments"]}
        assert named == {path.name for path in place.store.glob("*.segment")}, f"write {last}"
        layer.mend()
        indexer.refresh()
        indexer.close()
        assert place.served() == place.expected(), f"write {last}"
    assert 0 < finished < 60
    assert all("No space left" in message and "\n" not in message for message in said)


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EROFS])
def test_single_failures_lose_nothing(tmp_path: Path, tokenizer: TextTokenizer, code: int) -> None:
    place = Place(tmp_path, tokenizer, 2)
    for last in range(14):
        layer = FullDisk(1 << 60, code)
        indexer = place.open(layer)
        before = place.served()
        place.change()
        layer.left = last
        try:
            indexer.refresh()
        except StoreUnwritable:
            assert place.served() == before
        indexer.refresh()
        indexer.close()
        assert place.served() == place.expected()


def test_a_folder_that_cannot_be_written_is_replaced(
    tmp_path: Path, tokenizer: TextTokenizer
) -> None:
    class Unwritable(FileLayer):
        def make_folder(self, folder: Path) -> None:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("a = 1\n")
    indexer = Indexer.open(
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


def manifest_of(store: Path) -> dict[str, object]:
    return dict(json.loads((store / "manifest").read_bytes().partition(b"\n")[2]))


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
    segment = next(place.store.glob("*.segment"))
    data = bytearray(segment.read_bytes())
    data[7] = 99
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


_WRITER = """
    import random, sys, time
    from pathlib import Path
    from repo_index.indexer import Indexer
    from repo_index.source_tree import FolderTree
    from repo_index.tokens import TextTokenizer
    work, store, model, seed = sys.argv[1:]
    generator = random.Random(int(seed))
    indexer = Indexer.open(FolderTree(Path(work)), Path(store),
                           TextTokenizer.from_file(Path(model)), threads=1)
    print("open", flush=True)
    while True:
        for _ in range(3):
            path = Path(work, f"{generator.randint(0, 9)}.py")
            path.write_text(f"value = {generator.random()}\\n" * generator.randint(1, 200))
        indexer.refresh()
        indexer.merge(everything=generator.random() < 0.3)
"""


def run_kills(folder: Path, tokenizer: TextTokenizer, rounds: int) -> None:
    place = Place(folder, tokenizer, 4)
    for seed in range(rounds):
        command = [sys.executable, "-c", textwrap.dedent(_WRITER), place.work, place.store]
        writer = subprocess.Popen(
            [*map(str, command), str(DEFAULT_MODEL), str(seed)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        time.sleep(random.Random(seed).uniform(0.02, 0.4))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert not Datastore.open(place.store, tokenizer.sha256).problems, f"seed {seed}"
        started = time.process_time()
        indexer = place.open()
        assert not indexer.damage
        indexer.refresh()
        indexer.close()
        assert time.process_time() - started < 2
        assert place.served() == place.expected(), f"seed {seed}"


def test_killed_writers_leave_a_sound_store(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    run_kills(tmp_path, tokenizer, 3)


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_two_hundred_kills(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    run_kills(tmp_path, tokenizer, 200)


def replace_under_readers(folder: Path, tokenizer: TextTokenizer, replacements: int) -> None:
    place = Place(folder, tokenizer, 5)
    ended = threading.Event()
    failures: list[BaseException] = []
    lookups = 0

    def read() -> None:
        nonlocal lookups
        datastore = Datastore.open(place.store, tokenizer.sha256)
        rng = np.random.default_rng(0)
        try:
            while not ended.is_set():
                datastore.reload_if_changed()
                assert not datastore.problems
                snapshot = datastore.snapshot()
                for part in snapshot.parts:
                    ids = part.segment.file_tokens(0)
                    if len(ids) > 20:
                        at = int(rng.integers(16, len(ids)))
                        snapshot.lookup(ids[at - 16 : at].astype(np.int32))
                        lookups += 1
        except BaseException as error:
            failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    indexer = place.open()
    for i in range(replacements):
        place.change()
        indexer.refresh()
        indexer.merge(everything=i % 2 == 0)
    indexer.close()
    ended.set()
    reader.join()
    assert not failures
    assert lookups > replacements


def test_segments_are_replaced_under_a_reader(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    replace_under_readers(tmp_path, tokenizer, 40)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_five_hundred_replacements(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    replace_under_readers(tmp_path, tokenizer, 500)


_READER = """
    import os, sys
    import numpy as np
    from pathlib import Path
    from repo_index.datastore import Datastore
    store, digest, cut = sys.argv[1:]
    datastore = Datastore.open(Path(store), digest)
    if cut == "cut":
        for path in Path(store).glob("*.segment"):
            os.truncate(path, 0)
    found = datastore.snapshot().lookup(np.arange(16, dtype=np.int32))
    print(len(datastore.problems))
"""


def test_truncation_from_outside_costs_one_reader(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    place = Place(tmp_path, tokenizer, 6)

    def reader(cut: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(_READER), place.store, tokenizer.sha256, cut],
            capture_output=True,
            check=False,
        )

    assert reader("cut").returncode in (0, -signal.SIGBUS)
    second = reader("no")
    assert second.returncode == 0
    assert int(second.stdout) > 0
    place.refresh()
    assert reader("no").stdout == b"0\n"
    assert place.served() == place.expected()


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
        indexer = Indexer.open(
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
