"""The indexer leaves where nothing changes, another process watches, and no change is lost."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from small_model import SMALL_MODEL
from text_cases import data_cases

from lsp_server.index import client as indexer_client
from lsp_server.index.client import IndexerClient, WorkspaceState
from lsp_server.index.watching import may_count
from repo_index.source_tree import FolderTree
from tests.index.test_indexer_process import Daemon, ready
from tests.index.test_watcher import wait_for

OPTIONS: dict[str, Any] = {"exclude": ["generated/"], "max_file_bytes": 1 << 20, "common": "none"}
LEAVES_S = 0.4
PATIENCE_S = 400


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for kind in ("DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    monkeypatch.setenv("REDRAFT_INDEXER_LEAVES_S", str(LEAVES_S))
    folder = tmp_path / "work"
    for name in ("a.py", "b.py", "deep/c.py", "deep/d.py", "gone/e.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"name = '{name}'\n")
    return folder


# With processes


class Indexed:
    """A workspace of a client, whose indexer comes and goes."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.told = folder, list[str]()
        self.client = IndexerClient(lambda _, what: self.told.append(what))
        self.client.open_workspace(str(folder), str(SMALL_MODEL), OPTIONS)

    @property
    def state(self) -> WorkspaceState:
        found = self.client.find(str(self.folder), str(SMALL_MODEL))
        assert found is not None
        return found

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: {self.state}"
            await asyncio.sleep(0.02)

    async def until_away(self, what: str) -> None:
        await self.until(lambda: self.client._is_away, f"away after {what}")

    async def until_found(self, before: tuple[int, int], what: str) -> None:
        """Until the index is another one."""
        await self.until(lambda: (self.state.files, self.state.tokens) != before, what)

    @property
    def numbers(self) -> tuple[int, int]:
        return self.state.files, self.state.tokens


@pytest_asyncio.fixture
async def indexed(work: Path) -> AsyncIterator[Indexed]:
    found = Indexed(work)
    await found.until(lambda: found.state.state == "ready", "ready")
    yield found
    await found.client.close()


def moved_in(folder: Path) -> None:
    beside = folder.parent / "beside"
    (beside / "inner").mkdir(parents=True)
    (beside / "inner" / "moved.py").write_text("moved = 1\n" * 3)
    beside.rename(folder / "beside")


def many(folder: Path) -> None:
    for number in range(300):
        place = folder / f"checkout{number % 7}"
        place.mkdir(exist_ok=True)
        (place / f"m{number}.py").write_text(f"number = {number}\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a file is made": lambda folder: (folder / "new.py").write_text("new = 1\n"),
    "a file is written": lambda folder: (folder / "a.py").write_text("a = 'another one'\n"),
    "a file grows": lambda folder: (folder / "b.py").open("a").write("more = 1\n"),
    "a file is replaced": lambda folder: (
        (folder / "c~").write_text("replaced = 'by another'\n"),
        (folder / "c~").replace(folder / "deep" / "c.py"),
    ),
    "a file is deleted": lambda folder: (folder / "deep" / "d.py").unlink(),
    "a folder is deleted": lambda folder: shutil.rmtree(folder / "gone"),
    "a folder is moved in": moved_in,
    "a folder is moved away": lambda folder: (folder / "beside").rename(folder.parent / "out"),
    "a file becomes ignored": lambda folder: (folder / ".gitignore").write_text("new.py\n"),
    "a file counts again": lambda folder: (folder / ".gitignore").unlink(),
    "a file is made deep below": lambda folder: (
        (folder / "x" / "y").mkdir(parents=True),
        (folder / "x" / "y" / "z.py").write_text("z = 1\n"),
    ),
    "a branch is checked out": many,
}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_what_changes_while_it_is_away_is_found(indexed: Indexed) -> None:
    for what, change in CHANGES.items():
        await indexed.until_away(what)
        assert indexed.state.state == "ready"
        before = indexed.numbers
        indexed.told.clear()
        change(indexed.folder)
        await indexed.until_found(before, what)
        assert "progress" not in indexed.told
    assert indexed.state.files == 1 + 2 + 1 + 1 + 300


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_an_editor_that_asks_brings_it_back(indexed: Indexed, tmp_path: Path) -> None:
    await indexed.until_away("the start")
    client, folder = indexed.client, str(indexed.folder)
    pid = client.pid
    assert pid is not None
    about = psutil.Process(pid)
    assert any("lsp_server.index.watching" in word for word in about.cmdline())
    assert about.memory_info().rss < 60 << 20, "it holds little"
    client.reindex(folder)
    await indexed.until(lambda: indexed.told.count("written") >= 2, "indexed anew")
    await indexed.until_away("indexing anew")
    other = tmp_path / "other"
    other.mkdir()
    (other / "o.py").write_text("other = 1\n")
    client.open_workspace(str(other), str(SMALL_MODEL), OPTIONS)
    opened = client.find(str(other), str(SMALL_MODEL))
    assert opened is not None
    await indexed.until(lambda: opened.state == "ready", "another workspace")
    await indexed.until_away("another workspace")
    client.close_workspace(str(other))
    (other / "more.py").write_text("more = 1\n")
    # What watches dies.
    pid = client.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await indexed.until(lambda: client._child.alive, "back")
    assert client.find(str(other), str(SMALL_MODEL)) is None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_what_does_not_count_leaves_it_away(indexed: Indexed) -> None:
    await indexed.until_away("the start")
    pid = indexed.client.pid
    generated = indexed.folder / "generated"
    generated.mkdir()
    (generated / "g.py").write_text("g = 1\n")
    (indexed.folder / "picture.png").write_bytes(b"\x89PNG")
    (indexed.folder / "a.pyc").write_bytes(b"code")
    await asyncio.sleep(1)
    assert indexed.client.pid == pid
    (indexed.folder / "n.py").write_text("n = 1\n")
    await indexed.until(lambda: indexed.state.files == 6, "a file that counts")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.asyncio
async def test_while_another_process_writes_the_store_it_is_asked_for_again(
    indexed: Indexed,
) -> None:
    """``redraft index`` takes the lock of a store whose indexer is away."""
    await indexed.until_away("the start")
    code = (
        "import sys; from pathlib import Path\n"
        "from repo_index.file_layer import FileLayer\n"
        "from repo_index.store_writer import StoreWriter\n"
        "held = StoreWriter(Path(sys.argv[1]), sys.argv[2], sys.argv[3], FileLayer())\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    from lsp_server.engine.workspaces import text_tokenizer

    sha = text_tokenizer(SMALL_MODEL).sha256
    command = [sys.executable, "-c", code, indexed.state.store, sha, str(indexed.folder)]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    (indexed.folder / "n.py").write_text("n = 1\n")
    await indexed.until(lambda: indexed.state.state == "failed", "refused")
    holder.communicate()
    await indexed.until(lambda: indexed.state.files == 6, "open again")


# The indexer's side


@pytest.fixture
def daemon(work: Path) -> Any:
    made = Daemon()
    made.open(work, exclude=("generated/",))
    made.wait(ready)
    yield made
    made.end()


def events(daemon: Daemon) -> list[str]:
    return [one["event"] for one in daemon.told]


def test_it_says_when_nothing_changed_for_long_and_leaves_when_asked(daemon: Daemon) -> None:
    wait_for(lambda: "idle" in events(daemon), 60)
    daemon.send(op="leave")
    daemon.thread.join(60)
    assert not daemon.thread.is_alive()
    assert events(daemon)[-1] == "left"


def test_a_change_that_nobody_announced_keeps_it(daemon: Daemon, work: Path) -> None:
    wait_for(lambda: "idle" in events(daemon), 60)
    for workspace in daemon.loop._workspaces.values():
        assert workspace.watcher is not None
        workspace.watcher.stop()
    (work / "new.py").write_text("new = 1\n")
    daemon.send(op="leave")
    wait_for(lambda: "stays" in events(daemon), 60)
    daemon.wait(lambda state: bool(state.get("files") == 6))
    assert "left" not in events(daemon)


def test_it_stays_where_changes_are_not_announced(daemon: Daemon) -> None:
    for workspace in daemon.loop._workspaces.values():
        assert workspace.watcher is not None
        workspace.watcher.problem = "the limit is reached"
    daemon.told.clear()
    time.sleep(3 * LEAVES_S)
    assert "idle" not in events(daemon)


# The daemon's side


class FakeChild:
    """A process that says what the test has it say."""

    made: list[FakeChild] = []  # noqa: RUF012

    def __init__(self, module: str, _arguments: list[str], told: Any, died: Any) -> None:
        self.module, self.told, self._died = module.rpartition(".")[2], told, died
        self.sent: list[dict[str, Any]] = []
        self.alive, self.starts, self.back_off_s, self.pid = False, 0, 0.0, 7
        self.made.append(self)

    async def start(self) -> None:
        self.alive, self.starts = True, self.starts + 1

    def send(self, frame: dict[str, Any]) -> bool:
        if self.alive:
            self.sent.append(frame)
        return self.alive

    def die(self) -> None:
        self.alive = False
        self._died()

    kill = die

    def forgive(self) -> None:
        """It works."""

    async def close(self) -> None:
        self.alive = False


class Played:
    """A client with one workspace that is ready, and the processes that it has started."""

    def __init__(self) -> None:
        self.client = IndexerClient(lambda _, what: self.told.append(what))
        self.told: list[str] = []

    @property
    def indexer(self) -> FakeChild:
        return next(one for one in FakeChild.made if one.module == "process")

    @property
    def watching(self) -> FakeChild:
        return [one for one in FakeChild.made if one.module == "watching"][-1]

    async def ready(self) -> None:
        self.client.open_workspace("/w", "m", OPTIONS)
        await self.settled()
        self.indexer.told({"event": "state", "folder": "/w", "model": "m", "state": "ready"})

    async def settled(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def leaving(self) -> None:
        self.indexer.told({"event": "idle"})
        await self.settled()
        assert self.watching.sent == [{"op": "watch", "folder": "/w", **OPTIONS}]
        assert {"op": "leave"} not in self.indexer.sent

    def watched(self) -> None:
        self.watching.told({"event": "watching", "folder": "/w", "problem": ""})

    async def left(self) -> None:
        self.indexer.told({"event": "left"})
        self.indexer.die()
        await self.settled()

    def change(self) -> None:
        self.watching.told({"event": "changed", "folder": "/w"})


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    FakeChild.made.clear()
    monkeypatch.setattr(indexer_client, "Child", FakeChild)
    return Played()


STEPS = ("before it watches", "as it is asked to leave", "as it leaves", "while it is away")
WANTED: dict[str, Callable[[Played], object]] = {
    "a file changed": Played.change,
    "an editor saved": lambda played: played.client.refresh("/w", ["a.py"]),
    "another workspace": lambda played: played.client.open_workspace("/v", "m", OPTIONS),
    "another model": lambda played: played.client.open_workspace("/w", "n", OPTIONS),
    "other options": lambda played: played.client.open_workspace(
        "/w", "m", {**OPTIONS, "exclude": []}
    ),
    "anew": lambda played: played.client.reindex("/w"),
    "what watches died": lambda played: played.watching.die(),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("wanted", WANTED)
@pytest.mark.asyncio
async def test_whenever_it_is_asked_for_it_comes_back(
    step: str, wanted: str, played: Played
) -> None:
    """At every step of leaving, whoever asks."""
    await played.ready()
    await played.leaving()
    if step == STEPS[0]:
        WANTED[wanted](played)
    if played.watching.alive:
        played.watched()
    if step == STEPS[1]:
        WANTED[wanted](played)
    if {"op": "leave"} not in played.indexer.sent:
        assert (step, wanted) == (STEPS[0], "what watches died")
        assert played.indexer.alive
        return
    played.indexer.told({"event": "left"})
    if step == STEPS[2]:
        WANTED[wanted](played)
    played.indexer.die()
    await played.settled()
    if step == STEPS[3]:
        assert not played.indexer.alive
        assert played.client.pid == played.watching.pid
        WANTED[wanted](played)
        await played.settled()
    assert played.indexer.alive
    assert played.indexer.starts == 2
    opened = [frame for frame in played.indexer.sent if frame["op"] == "open"]
    assert {"op": "open", "folder": "/w", "model": "m", **OPTIONS} in opened[1:] or (
        wanted == "other options"
    )
    if wanted == "anew":
        assert played.indexer.sent[-1]["op"] == "reindex"
    if wanted.startswith("another"):
        assert len(opened) >= 3
    assert not any(one.alive for one in FakeChild.made if one.module == "watching")
    assert played.client._watching is None
    assert "state" not in played.told[1:] or wanted.startswith(("another", "other"))


@pytest.mark.parametrize("step", STEPS[:3])
@pytest.mark.asyncio
async def test_an_indexer_that_dies_while_it_leaves_is_started_again(
    step: str, played: Played
) -> None:
    await played.ready()
    await played.leaving()
    if step != STEPS[0]:
        played.watched()
    played.indexer.die()
    await played.settled()
    assert played.indexer.alive
    assert not played.watching.alive


@pytest.mark.asyncio
async def test_an_indexer_that_stays_is_let_be(played: Played) -> None:
    await played.ready()
    for _ in range(2):
        await played.leaving()
        played.watched()
        played.indexer.told({"event": "stays"})
        assert not played.watching.alive
        played.indexer.sent.clear()
    assert played.indexer.starts == 1


@pytest.mark.asyncio
async def test_where_nothing_can_watch_it_stays(played: Played) -> None:
    await played.ready()
    await played.leaving()
    played.watching.told({"event": "watching", "folder": "/w", "problem": "the limit is reached"})
    assert not played.watching.alive
    assert {"op": "leave"} not in played.indexer.sent


@pytest.mark.asyncio
async def test_what_is_looked_at_again_is_not_shown_as_indexing(played: Played) -> None:
    await played.ready()
    await played.leaving()
    played.watched()
    await played.left()
    played.change()
    await played.settled()
    state = played.client.find("/w", "m")
    assert state is not None
    about = {"folder": "/w", "model": "m"}
    played.indexer.told({"event": "state", "state": "indexing", **about})
    played.indexer.told({"event": "progress", "done": 1, **about})
    assert (state.state, state.done) == ("ready", 0)
    played.indexer.told({"event": "state", "state": "ready", "files": 3, **about})
    assert state.files == 3
    played.indexer.told({"event": "state", "state": "indexing", **about})
    assert state.state == "indexing"


@pytest.mark.asyncio
async def test_a_workspace_that_is_closed_meanwhile_is_not_watched_any_more(
    played: Played,
) -> None:
    await played.ready()
    await played.leaving()
    played.watched()
    await played.left()
    played.client.close_workspace("/w")
    assert played.watching.sent[-1] == {"op": "close", "folder": "/w"}
    assert not played.indexer.alive


# What counts


@data_cases()
def test_what_may_change_the_index(path: str, counts: bool, work: Path) -> None:
    (work / ".gitignore").write_text("ignored.py\n*.log\n")
    for name in ("generated/g.py", "ignored.py", "picture.png", ".git/index", ".env"):
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text("x = 1\n")
    (work / "empty.py").touch()
    (work / "large.py").write_text("x" * 200)
    from repo_index.files import Limits

    tree = FolderTree(work, Limits(bytes=100), patterns="generated/")
    assert may_count(tree, path) == counts
