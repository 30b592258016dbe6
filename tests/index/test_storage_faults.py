"""A store that is interrupted, damaged or out of space is the old one, the new one, or built again;
never a mixture, never wrong tokens."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from seeds import Amount
from small_model import SMALL_MODEL
from text_cases import data_beside

from repo_index.datastore import Datastore
from repo_index.errors import StoreUnwritable
from repo_index.tokens import TextTokenizer
from tests.index.faulty_files import Died, DyingFiles, FullDisk
from tests.index.store_place import Place, manifest_of

DATA = data_beside(__file__)


def test_a_crash_leaves_the_old_or_the_new_state(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    """Each: a change, a refresh or merge that dies at some write, a loss of power, a look."""
    seeds = range(amount(40, 5000))
    place = Place(tmp_path, tokenizer, seeds.start)
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
        problems = Datastore(place.store, tokenizer.sha256).problems
        assert served in (before, after), f"seed {seed}: a mixture"
        assert not problems, f"seed {seed}: {problems}"
        place.refresh()
        assert place.served() == after, f"seed {seed}"
        names = {path.name for path in place.store.iterdir()}
        assert not [name for name in names if name.endswith(".tmp")], f"seed {seed}"
    assert deaths > len(seeds) // 4


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


def test_damage_is_found_and_rebuilt(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    rounds = range(amount(40, 1000))
    place = Place(tmp_path, tokenizer, rounds.start)
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
    assert all("free some space" in message and "writable" not in message for message in said)


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


_WRITER = DATA["_WRITER"]


def test_killed_writers_leave_a_sound_store(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    rounds = amount(3, 200)
    place = Place(tmp_path, tokenizer, 4)
    for seed in range(rounds):
        command = [sys.executable, "-c", textwrap.dedent(_WRITER), place.work, place.store]
        writer = subprocess.Popen(
            [*map(str, command), str(SMALL_MODEL), str(seed)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        time.sleep(random.Random(seed).uniform(0.02, 0.4))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        assert not Datastore(place.store, tokenizer.sha256).problems, f"seed {seed}"
        started = time.process_time()
        indexer = place.open()
        assert not indexer.damage
        indexer.refresh()
        indexer.close()
        assert time.process_time() - started < 2
        assert place.served() == place.expected(), f"seed {seed}"


def test_segments_are_replaced_under_a_reader(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    replacements = amount(40, 500)
    place = Place(tmp_path, tokenizer, 5)
    ended = threading.Event()
    failures: list[BaseException] = []
    lookups = 0

    def read() -> None:
        nonlocal lookups
        datastore = Datastore(place.store, tokenizer.sha256)
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


_READER = DATA["_READER"]


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
