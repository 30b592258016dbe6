"""Changes reach the index in batches, whatever the system tells of them or fails to tell."""

from __future__ import annotations

import errno
import os
import queue
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from seeds import Amount
from small_model import SMALL_MODEL
from text_cases import data_beside

from lsp_server.engine.workspaces import text_tokenizer
from repo_index import folder_watch
from repo_index.datastore import Datastore
from repo_index.indexer import Indexer
from repo_index.source_tree import FolderTree
from repo_index.tokens import TextTokenizer
from repo_index.warming import warm_up
from repo_index.watcher import Watcher
from tests.index.test_indexer import expected_texts, indexed_texts, piece, random_step

DATA = data_beside(__file__)

LONG_WAIT_S = 60.0


def wait_for(condition: Callable[[], bool], seconds: float = LONG_WAIT_S) -> None:
    """Return as soon as ``condition`` holds; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        threading.Event().wait(0.01)


class Followed:
    """A workspace that is indexed and watched, one refresh for each batch."""

    def __init__(self, folder: Path, tokenizer: TextTokenizer, **times: float) -> None:
        self.work, self.store = folder / "work", folder / "store"
        self.work.mkdir(exist_ok=True)
        self.tokenizer = tokenizer
        self.batches: queue.Queue[list[str] | None] = queue.Queue()
        self.seen: list[list[str] | None] = []
        self.indexed: list[str] = []
        tree = FolderTree(self.work)
        self.indexer = Indexer(tree, self.store, tokenizer, threads=1)
        self.watcher = Watcher(tree, self._changed, **times)
        self.watcher.start()
        self.indexer.refresh()

    def _changed(self, paths: list[str] | None) -> None:
        self.seen.append(paths)
        self.indexed += self.indexer.refresh(paths).indexed

    def in_line(self) -> bool:
        return indexed_texts(self.store, self.tokenizer) == expected_texts(
            self.work, self.tokenizer
        )

    def close(self) -> None:
        self.watcher.stop()
        self.indexer.close()


@contextmanager
def followed(folder: Path, tokenizer: TextTokenizer, **times: float) -> Iterator[Followed]:
    place = Followed(folder, tokenizer, **times)
    try:
        yield place
    finally:
        place.close()


def test_changes_of_every_kind_are_followed(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    with followed(tmp_path, tokenizer, quiet=0.02) as place:
        assert place.watcher.problem == ""
        generator = random.Random(20)
        for _ in range(25):
            for _ in range(generator.randint(1, 6)):
                random_step(generator, place.work)
            wait_for(place.in_line)
        assert None not in place.seen


@pytest.mark.long
@pytest.mark.timeout(3000)
def test_many_sequences_are_followed(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    for seed in range(amount(1, 500)):
        folder = tmp_path / str(seed)
        folder.mkdir()
        with followed(folder, tokenizer, quiet=0.02) as place:
            generator = random.Random(seed)
            for _ in range(5):
                for _ in range(generator.randint(1, 20)):
                    random_step(generator, place.work)
                wait_for(place.in_line)
        shutil.rmtree(folder)


def checkout(place: Followed, files: int) -> None:
    """Write many files at once: one batch, and the same index as one made afresh."""
    generator = random.Random(19)
    texts = [piece(generator) for _ in range(50)]
    for i in range(files):
        folder = place.work / f"folder{i % 97}"
        folder.mkdir(exist_ok=True)
        (folder / f"{i}.py").write_text(texts[i % 50] + f"\nnumber = {i}\n")
    wait_for(lambda: place.indexer.status().files == files, 300)
    assert len(place.indexed) == len(set(place.indexed)) == files, "indexed twice"


def test_a_checkout_is_one_batch(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    with followed(tmp_path, tokenizer, quiet=2.0, longest_wait=60.0) as place:
        checkout(place, 600)
        assert len(place.seen) == 1
        assert place.in_line()


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_checkout_of_twenty_thousand_files(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    with followed(tmp_path, tokenizer, quiet=1.0, longest_wait=120.0) as place:
        warm_up(tokenizer)
        slow: list[float] = []
        ended = threading.Event()

        def look() -> None:
            datastore = Datastore(place.store, tokenizer.sha256)
            context = tokenizer.encode(["    def __init__(self, value):\n        self."])[0]
            while not ended.is_set():
                datastore.reload_if_changed()
                snapshot = datastore.snapshot()
                started = time.thread_time()
                snapshot.lookup(context)
                slow.append(time.thread_time() - started)
                ended.wait(0.01)

        reader = threading.Thread(target=look)
        reader.start()
        checkout(place, amount(600, 20_000))
        ended.set()
        reader.join()
        assert place.in_line()
        # By the thread's own clock: how long others hold the processor is not ours to promise.
        assert sorted(slow)[int(len(slow) * 0.95)] < 300e-6


def test_saves_that_an_editor_tells_of_are_visible_at_once(
    tmp_path: Path, tokenizer: TextTokenizer, amount: Amount
) -> None:
    """Write, tell, look up: no quiet time passes, and the event that follows finds it done."""
    saves = amount(20, 1000)
    with followed(tmp_path, tokenizer, quiet=600.0, longest_wait=1200.0) as place:
        for i in range(saves):
            (place.work / "a.py").write_text(f"value = {i}\n")
            place.watcher.feed(["a.py"], at_once=True)
            wait_for(lambda i=i: len(place.indexed) > i)
            assert place.in_line()
            place.indexer.merge()
        assert len(place.indexed) == saves


def test_ignore_rules_that_change_are_obeyed(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    with followed(tmp_path, tokenizer, quiet=0.02) as place:
        (place.work / "made").mkdir()
        (place.work / "made" / "a.py").write_text("a = 1\n")
        wait_for(lambda: place.indexer.status().files == 1)
        (place.work / ".gitignore").write_text("made/\n")
        wait_for(lambda: set(indexed_texts(place.store, tokenizer)) == {".gitignore"})
        (place.work / ".gitignore").unlink()
        wait_for(lambda: set(indexed_texts(place.store, tokenizer)) == {"made/a.py"})
        (place.work / "made" / "b.py").write_text("b = 1\n")
        wait_for(lambda: set(indexed_texts(place.store, tokenizer)) == {"made/a.py", "made/b.py"})


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EMFILE])
def test_a_watch_limit_is_said_and_changes_are_found_by_looking(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    from watchdog.observers.inotify_c import InotifyFD

    add = InotifyFD.add_callback
    added: list[object] = []

    def limited(self: Any, *arguments: Any) -> object:
        if len(added) >= (1 if code == errno.ENOSPC else 0):
            raise OSError(code, os.strerror(code))
        added.append(arguments)
        return add(self, *arguments)

    monkeypatch.setattr(InotifyFD, "add_callback", limited)
    (tmp_path / "work" / "sub").mkdir(parents=True)
    with followed(tmp_path, tokenizer, quiet=0.02, rescan=0.2) as place:
        assert "limit of inotify" in place.watcher.problem
        (place.work / "sub" / "a.py").write_text("a = 1\n")
        wait_for(lambda: place.indexer.status().files == 1)
        assert place.in_line()


def test_network_folders_are_looked_through(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_watch, "remote_file_system", lambda _: "nfs4")
    with followed(tmp_path, tokenizer, quiet=0.02, rescan=0.1) as place:
        assert "nfs4" in place.watcher.problem
        (place.work / "a.py").write_text("a = 1\n")
        wait_for(lambda: place.indexer.status().files == 1)


def test_the_type_of_file_systems_is_told(tmp_path: Path) -> None:
    assert folder_watch.remote_file_system(tmp_path) is None


def test_an_overflow_is_followed_by_a_look_at_everything(
    tmp_path: Path, tokenizer: TextTokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Notices are dropped, then the kernel says that it dropped some."""
    from watchdog.observers.inotify_c import InotifyEvent, InotifyFD, Mask

    with followed(tmp_path, tokenizer, quiet=0.02) as place:
        on_event = folder_watch.InotifyWatch.on_event
        monkeypatch.setattr(folder_watch.InotifyWatch, "on_event", lambda self, event: None)
        (place.work / "deep" / "er").mkdir(parents=True)
        (place.work / "deep" / "er" / "a.py").write_text("a = 1\n")
        threading.Event().wait(0.2)
        assert place.seen == []
        monkeypatch.setattr(folder_watch.InotifyWatch, "on_event", on_event)
        InotifyFD.get_instance().handle_event(InotifyEvent(-1, Mask(0x4000), 0, b""))
        wait_for(lambda: place.indexer.status().files == 1)
        assert None in place.seen
        (place.work / "deep" / "er" / "b.py").write_text("b = 1\n")
        wait_for(lambda: place.indexer.status().files == 2)


_FOLLOWER = DATA["_FOLLOWER"]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_real_overflow(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    """Eight thousand files while the watching process is stopped, more than its queue holds."""
    limit_file = Path("/proc/sys/fs/inotify/max_queued_events")
    files = max(8000, int(limit_file.read_text()) // 3 + 1000)
    (tmp_path / "work").mkdir()
    command = [sys.executable, "-c", textwrap.dedent(_FOLLOWER), tmp_path / "work", tmp_path / "s"]
    process = subprocess.Popen(
        [*map(str, command), str(SMALL_MODEL)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"open\n"
    process.send_signal(signal.SIGSTOP)
    for i in range(files):
        (tmp_path / "work" / f"{i}.py").write_text(f"a = {i}\n")
    process.send_signal(signal.SIGCONT)
    wait_for(lambda: len(indexed_texts(tmp_path / "s", tokenizer)) == files)
    process.stdin.close()
    process.wait(LONG_WAIT_S)
    process.stdout.close()


def test_few_descriptors_are_said(tmp_path: Path) -> None:
    """With hardly any descriptors left, indexing still works or says why it does not."""
    work = tmp_path / "work"
    work.mkdir()
    for i in range(50):
        (work / f"{i}.py").write_text(f"a = {i}\n")
    script = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
    command = [sys.executable, "-c", script + textwrap.dedent(_FOLLOWER), work, tmp_path / "s"]
    done = subprocess.run(
        [*map(str, command), str(SMALL_MODEL)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"open\n"
    assert len(expected_texts(work, text_tokenizer(SMALL_MODEL))) == 50
