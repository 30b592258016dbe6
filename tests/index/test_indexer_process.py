"""What the indexer process tells the daemon, and that it stands still while a request decodes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_model import SMALL_MODEL
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from lsp_server.index import process as indexer_process
from lsp_server.index.process import IndexerLoop
from lsp_server.shared.processes.framing import Frame
from repo_index import corpus, folder_watch
from repo_index.errors import StoreUnwritable
from repo_index.indexer import Indexer
from tests.index.test_watcher import wait_for


class Daemon:
    """The other side of an indexer's pipes."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self._frames: queue.Queue[Frame | None] = queue.Queue()
        self.loop = IndexerLoop(self._frames.get, self.told.append)
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def send(self, **frame: Any) -> None:
        self._frames.put(frame)

    def open(
        self,
        folder: Path,
        common: str = "none",
        model: Path | str = SMALL_MODEL,
        exclude: tuple[str, ...] = (),
    ) -> None:
        options = {"exclude": list(exclude), "max_file_bytes": 1 << 20, "common": common}
        self.send(op="open", folder=str(folder), model=str(model), **options)

    def states(self) -> list[dict[str, Any]]:
        return [event for event in self.told if event["event"] == "state"]

    def wait(self, condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        wait_for(lambda: any(map(condition, self.states())), 60)
        return next(filter(condition, self.states()))

    def end(self) -> None:
        self.send(op="end")
        self.thread.join(60)


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("a = 1\n")
    made = Daemon()
    yield made
    made.end()


def ready(state: dict[str, Any]) -> bool:
    return bool(state["state"] == "ready")


def test_place_and_size_of_the_stores_are_told(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store of common code is built from our library and the workspace's environment."""
    library = tmp_path / "library"
    library.mkdir()
    (library / "json.py").write_text("def dumps(value):\n    return str(value)\n")
    monkeypatch.setattr(corpus, "standard_library", lambda: library)
    packages = tmp_path / "work" / ".venv" / "lib" / "python3.11" / "site-packages"
    packages.mkdir(parents=True)
    (tmp_path / "work" / ".venv" / "pyvenv.cfg").write_text("home = /nowhere\n")
    (packages / "tool.py").write_text("tool = True\n")
    daemon.open(tmp_path / "work", common="auto")
    state = daemon.wait(lambda one: ready(one) and one["common_bytes"] > 0)
    store, common = Path(state["store"]), Path(state["common"])
    assert state["files"] == 1
    assert state["bytes"] == sum(path.stat().st_size for path in store.iterdir())
    assert tmp_path / "data" in store.parents
    assert tmp_path / "data" in common.parents
    assert sum(path.suffix == ".segment" for path in common.iterdir()) == 1
    stored = next(common.glob("*.segment")).read_bytes()
    assert b"/json.py" in stored
    assert b"/tool.py" in stored


def test_changes_that_are_not_announced_are_said(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_watch, "remote_file_system", lambda _: "nfs4")
    daemon.open(tmp_path / "work")
    state = daemon.wait(ready)
    assert "nfs4" in state["message"]
    assert "changes are found every" in state["message"]


def test_indexing_that_fails_is_said_and_can_be_tried_again(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StoreUnwritable("no space left; free some")

    with monkeypatch.context() as disk:
        disk.setattr(Indexer, "refresh", full)
        daemon.open(tmp_path / "work")
        failed = daemon.wait(lambda one: bool(one["state"] == "failed"))
        assert failed["message"] == "no space left; free some"
    daemon.send(op="reindex", folder=str(tmp_path / "work"))
    assert daemon.wait(ready)["files"] == 1


def test_nothing_is_indexed_while_a_request_decodes(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer_process, "LONGEST_PAUSE_S", 60.0)
    waiting = threading.Event()
    wait = daemon.loop._free.wait

    def noted(timeout: float) -> bool:
        if not daemon.loop._free.is_set():
            waiting.set()
        return wait(timeout)

    monkeypatch.setattr(daemon.loop._free, "wait", noted)
    daemon.send(op="busy", busy=True)
    daemon.open(tmp_path / "work")
    assert waiting.wait(60)
    assert not any(map(ready, daemon.states()))
    daemon.send(op="busy", busy=False)
    assert daemon.wait(ready)["files"] == 1


def test_the_end_does_not_wait_for_a_request_that_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer_process, "LONGEST_PAUSE_S", 60.0)
    loop = IndexerLoop(lambda: None, lambda _: None)
    loop._free.clear()
    pausing = threading.Thread(target=loop._pause, daemon=True)
    pausing.start()
    loop._read_frames()
    pausing.join(20)
    assert not pausing.is_alive()


@pytest.fixture
def two_models(tmp_path: Path) -> tuple[Path, Path]:
    """The folders of two models that have one tokenizer."""
    tokenizer = Tokenizer(WordLevel({"a": 0, "=": 1, "?": 2}, unk_token="?"))
    folders = tmp_path / "large", tmp_path / "small"
    for folder in folders:
        folder.mkdir()
        tokenizer.save(str(folder / "tokenizer.json"))
    return folders


def of_model(model: Path) -> Callable[[dict[str, Any]], bool]:
    return lambda state: ready(state) and state["model"] == str(model)


def test_models_of_one_tokenizer_share_the_datastore_of_a_folder(
    daemon: Daemon, tmp_path: Path, two_models: tuple[Path, Path]
) -> None:
    for model in two_models:
        daemon.open(tmp_path / "work", model=model)
    stores = {daemon.wait(of_model(model))["store"] for model in two_models}
    assert len(stores) == 1
    (tmp_path / "work" / "b.py").write_text("b = a\n")
    daemon.send(op="refresh", folder=str(tmp_path / "work"), paths=["b.py"])
    for model in two_models:
        daemon.wait(lambda state, model=model: of_model(model)(state) and state["files"] == 2)
    assert not [state for state in daemon.states() if state["state"] == "failed"]


def test_options_of_the_model_that_opens_a_folder_last_count_for_all_of_its_tokenizer(
    daemon: Daemon, tmp_path: Path, two_models: tuple[Path, Path]
) -> None:
    daemon.open(tmp_path / "work", model=two_models[0])
    assert daemon.wait(of_model(two_models[0]))["files"] == 1
    daemon.open(tmp_path / "work", model=two_models[1], exclude=("*.py",))
    for model in two_models:
        daemon.wait(lambda state, model=model: of_model(model)(state) and state["files"] == 0)
    assert not [state for state in daemon.states() if state["state"] == "failed"]


def test_a_model_whose_tokenizer_was_replaced_gets_the_datastore_of_the_new_one(
    daemon: Daemon, tmp_path: Path, two_models: tuple[Path, Path]
) -> None:
    daemon.open(tmp_path / "work", model=two_models[0])
    first = daemon.wait(of_model(two_models[0]))["store"]
    other = Tokenizer(WordLevel({"a": 0, "?": 1}, unk_token="?"))
    other.save(str(two_models[0] / "tokenizer.json"))
    daemon.open(tmp_path / "work", model=two_models[0])
    daemon.wait(lambda state: of_model(two_models[0])(state) and state["store"] != first)
    # Nobody has the old datastore open any more: another model may.
    daemon.open(tmp_path / "work", model=two_models[1])
    assert daemon.wait(of_model(two_models[1]))["store"] == first
