"""The indexer process keeps the datastores of all open workspaces up to date, on one thread of low
priority that pauses whenever a request decodes. It loads no torch. Where nothing changes for a
minute it says so, and leaves when the daemon has another process watch."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from lsp_server.engine.workspaces import text_tokenizer
from lsp_server.index.watching import NICENESS, tree_of
from lsp_server.shared.processes.framing import Frame
from operating_system.processes import lower_priority

if TYPE_CHECKING:
    from repo_index.indexer import Indexer, IndexProgress
    from repo_index.source_tree import FolderTree
    from repo_index.tokens import TextTokenizer
    from repo_index.watcher import Watcher

logger = logging.getLogger(__name__)

LONGEST_PAUSE_S = 1.0
"""Indexing goes on after so long, however busy the machine is."""
REPORT_EVERY_S = 0.1
LEAVE_AFTER_S = 60.0
"""Seconds without a change after which the process is not needed."""
LOCKED_S = 2.0
"""Seconds until a store that another process writes is asked for again."""

_NAMES = ("op", "folder", "model")
"""What of a frame that opens a workspace is no option of it."""


@dataclass(slots=True)
class Workspace:
    """One folder that is kept indexed for one tokenizer, for all models that use it."""

    folder: str
    tokenizer: TextTokenizer
    options: Frame
    """What the frame that opened it asked for."""
    indexer: Indexer
    tree: FolderTree
    models: list[str] = field(default_factory=list)
    watcher: Watcher | None = None
    reported: str = ""
    """What was last said of the watcher's trouble."""


def leave_after_s() -> float:
    """Return seconds that the process stays without a change."""
    return float(os.environ.get("REDRAFT_INDEXER_LEAVES_S", LEAVE_AFTER_S))


class IndexerLoop:
    """Takes frames from the daemon and works them off, one after another."""

    def __init__(self, read: Callable[[], Frame | None], write: Callable[[Frame], None]) -> None:
        self._read = read
        self._write = write
        self._changed = time.monotonic()
        """When there was something to do last."""
        self._locked: set[tuple[str, str]] = set()
        """Folders and models whose stores another process writes."""
        self._tasks: queue.Queue[Callable[[], None] | None] = queue.Queue()
        # Merges and common code take long: saved files do not wait for them.
        self._slow_tasks: queue.Queue[Callable[[], None] | None] = queue.Queue()
        self._workspaces: dict[tuple[str, str], Workspace] = {}
        self._free = threading.Event()
        self._free.set()
        self._ended = False

    def run(self) -> None:
        """Serve until the other side closes."""
        threading.Thread(target=self._read_frames, name="frames", daemon=True).start()
        slow = threading.Thread(target=self._work_off, args=(self._slow_tasks,), daemon=True)
        slow.start()
        self._slow_tasks.put(_clean_up)
        self._work_off(self._tasks)
        for workspace in list(self._workspaces.values()):
            self._let_go(workspace)

    def _work_off(self, tasks: queue.Queue[Callable[[], None] | None]) -> None:
        while (task := self._next(tasks)) is not None:
            try:
                task()
            except Exception:
                logger.exception("indexing failed")
            if tasks is self._slow_tasks:
                self._changed = time.monotonic()
            tasks.task_done()

    def _next(self, tasks: queue.Queue[Callable[[], None] | None]) -> Callable[[], None] | None:
        """Return the next task. The first thread says so where there is nothing to do for long."""
        if tasks is self._slow_tasks:
            return tasks.get()
        while True:
            waits_s = max(self._changed + leave_after_s() - time.monotonic(), leave_after_s() / 4)
            try:
                return tasks.get(timeout=waits_s)
            except queue.Empty:
                if self._may_leave():
                    self._write({"event": "idle"})

    def _may_leave(self) -> bool:
        """Return True if nothing changed for long, nothing is left, and changes are announced."""
        return (
            time.monotonic() - self._changed >= leave_after_s()
            and not self._slow_tasks.unfinished_tasks
            and not self._locked
            and not any(
                workspace.watcher and workspace.watcher.problem
                for workspace in self._workspaces.values()
            )
        )

    def _leave(self) -> None:
        """End, unless something changed before another process watched."""
        for workspace in list(self._workspaces.values()):
            workspace.tree.forget()
            self._refresh(workspace, None)
        if self._may_leave():
            self._write({"event": "left"})
            self._tasks.put(None)
        else:
            self._write({"event": "stays"})

    def _read_frames(self) -> None:
        while (frame := self._read()) is not None and frame["op"] != "end":
            if frame["op"] == "busy":
                (self._free.clear if frame["busy"] else self._free.set)()
            else:
                self._tasks.put(lambda frame=frame: self._serve(frame))  # type: ignore[misc]
        self._ended = True
        self._free.set()
        self._tasks.put(None)

    def _pause(self) -> None:
        """Called between pieces of work: leaves the processor to a request that decodes."""
        if self._ended:
            raise SystemExit
        self._free.wait(LONGEST_PAUSE_S)

    def _serve(self, frame: Frame) -> None:
        operation, folder = frame["op"], frame.get("folder", "")
        if operation == "leave":
            try:
                self._leave()
            except Exception:
                self._write({"event": "stays"})
                raise
            return
        if operation == "open":
            self._open(frame)
            return
        if operation == "close":
            self._locked = {key for key in self._locked if key[0] != folder}
        for workspace in [each for each in self._workspaces.values() if each.folder == folder]:
            if operation == "close":
                self._let_go(workspace)
            elif operation == "refresh" and workspace.watcher is not None:
                workspace.watcher.feed(frame["paths"], at_once=True)
            elif operation == "reindex":
                self._index(workspace, rebuild=True)

    def _open(self, frame: Frame) -> None:
        """Index a folder for a model. Models of one tokenizer share one datastore, and so one
        workspace; the options of the last one that opened it count."""
        from lsp_server.shared.errors import ModelUnavailable
        from repo_index.errors import RepoIndexError, StoreLocked

        folder, model = frame["folder"], frame["model"]
        options = {name: value for name, value in frame.items() if name not in _NAMES}
        models = [model]
        try:
            tokenizer = text_tokenizer(model)
            self._drop_model(folder, model, unless=tokenizer.sha256)
            old = self._workspaces.get((folder, tokenizer.sha256))
            if old is not None:
                models = [model, *(other for other in old.models if other != model)]
                if old.options == options:
                    old.models = models
                    self._index(old)
                    return
                self._let_go(old)
            workspace = self._opened(folder, tokenizer, options)
        except (RepoIndexError, ModelUnavailable, OSError) as error:
            logger.warning("%s cannot be indexed: %s", folder, error)
            self._tell("state", folder, models, state="failed", message=str(error))
            if isinstance(error, StoreLocked):
                self._open_later(frame)
            return
        workspace.models = models
        self._workspaces[folder, tokenizer.sha256] = workspace
        # Watched before it is indexed: what changes meanwhile is looked at afterwards.
        self._watch(workspace)
        self._index(workspace)
        if options["common"] == "auto":
            self._slow_tasks.put(lambda: self._build_common(workspace))

    def _open_later(self, frame: Frame) -> None:
        """The process that writes the store ends some time."""
        key = frame["folder"], frame["model"]
        self._locked.add(key)

        def again() -> None:
            if key in self._locked:
                self._locked.remove(key)
                self._open(frame)

        timer = threading.Timer(LOCKED_S, self._tasks.put, (again,))
        timer.daemon = True
        timer.start()

    def _drop_model(self, folder: str, model: str, unless: str) -> None:
        """A model's file may have another tokenizer than the last time: it leaves the workspace of
        that one, but for the tokenizer with the hash ``unless``."""
        for (workspace_folder, tokenizer), workspace in list(self._workspaces.items()):
            if workspace_folder == folder and tokenizer != unless and model in workspace.models:
                workspace.models.remove(model)
                if not workspace.models:
                    self._let_go(workspace)

    def _opened(self, folder: str, tokenizer: TextTokenizer, options: Frame) -> Workspace:
        from repo_index.indexer import Indexer
        from repo_index.store import workspace_store

        store = workspace_store(Path(folder), tokenizer.sha256)
        tree = tree_of({"folder": folder, **options})
        indexer = Indexer(tree, store, tokenizer, workspace=folder, pause=self._pause, threads=1)
        return Workspace(folder, tokenizer, options, indexer, tree)

    def _index(self, workspace: Workspace, rebuild: bool = False) -> None:
        store = str(workspace.indexer.folder)
        self._tell_of(workspace, "state", state="indexing", message="", store=store)
        last = 0.0

        def report(progress: IndexProgress) -> None:
            nonlocal last
            if time.monotonic() - last >= REPORT_EVERY_S:
                last = time.monotonic()
                self._tell_of(
                    workspace, "progress", done=progress.files, total=progress.total,
                    tokens=progress.tokens,
                )  # fmt: skip

        work = workspace.indexer.rebuild if rebuild else workspace.indexer.refresh
        try:
            work(progress=report)
        except Exception as error:
            # Whoever waits for the index would wait forever.
            self._tell_of(workspace, "state", state="failed", message=str(error))
            raise
        self._tell_of(workspace, "written")
        self._tell_ready(workspace)
        self._slow_tasks.put(lambda: self._merge(workspace))

    def _refresh(self, workspace: Workspace, paths: list[str] | None) -> None:
        done = workspace.indexer.refresh(paths)
        if done.indexed or done.removed:
            self._changed = time.monotonic()
            self._tell_of(workspace, "written")
            self._tell_ready(workspace)
            if self._slow_tasks.empty():
                self._slow_tasks.put(lambda: self._merge(workspace))
        elif workspace.watcher is not None and workspace.watcher.problem != workspace.reported:
            self._tell_ready(workspace)

    def _merge(self, workspace: Workspace) -> None:
        if self._is_open(workspace) and workspace.indexer.merge():
            self._tell_of(workspace, "written")

    def _tell_ready(self, workspace: Workspace) -> None:
        from repo_index.store import common_store, folder_bytes

        status = workspace.indexer.status()
        common = common_store(workspace.indexer.tokenizer_hash)
        watching = workspace.watcher.problem if workspace.watcher is not None else ""
        workspace.reported = watching
        self._tell_of(
            workspace,
            "state",
            state="ready",
            message=status.problem or watching,
            files=status.files,
            tokens=status.tokens,
            done=status.files,
            total=status.files,
            store=status.folder,
            bytes=status.bytes,
            common=str(common),
            common_bytes=folder_bytes(common),
        )

    def _watch(self, workspace: Workspace) -> None:
        from repo_index.watcher import Watcher

        def changed(paths: list[str] | None) -> None:
            self._tasks.put(lambda: self._refresh_if_open(workspace, paths))

        workspace.watcher = Watcher(workspace.tree, changed)
        workspace.watcher.start()

    def _refresh_if_open(self, workspace: Workspace, paths: list[str] | None) -> None:
        if self._is_open(workspace):
            self._refresh(workspace, paths)

    def _build_common(self, workspace: Workspace) -> None:
        """The store of common code, shared by all workspaces, when it is not there yet."""
        from repo_index.corpus import build_common

        if build_common(workspace.folder, workspace.tokenizer, pause=self._pause):
            self._tell_of(workspace, "written")
            if self._is_open(workspace):
                self._tell_ready(workspace)

    def _is_open(self, workspace: Workspace) -> bool:
        return self._workspaces.get((workspace.folder, workspace.tokenizer.sha256)) is workspace

    def _let_go(self, workspace: Workspace) -> None:
        del self._workspaces[workspace.folder, workspace.tokenizer.sha256]
        if workspace.watcher is not None:
            workspace.watcher.stop()
        workspace.indexer.close()

    def _tell_of(self, workspace: Workspace, event: str, **more: Any) -> None:
        self._tell(event, workspace.folder, workspace.models, **more)

    def _tell(self, event: str, folder: str, models: list[str], **more: Any) -> None:
        for model in models:
            self._write({"event": event, "folder": folder, "model": model, **more})


def _clean_up() -> None:
    from repo_index.file_layer import FileLayer
    from repo_index.store import remove_old_stores

    for folder in remove_old_stores(FileLayer(), now=time.time(), keep=frozenset()):
        logger.info("removed the old store %s", folder)


def main_on(_arguments: list[str], source: BinaryIO, target: BinaryIO) -> None:
    """Serve the daemon over a pair of files."""
    from lsp_server.shared.processes.child import FramePipe

    pipe = FramePipe(source, target)
    IndexerLoop(pipe.read, pipe.write).run()


if __name__ == "__main__":
    from lsp_server.shared.processes.child import serve_frames_on_stdio
    from lsp_server.shared.processes.log import start_log

    # Before the tokenizer library is loaded: it makes its threads once.
    os.environ["RAYON_NUM_THREADS"] = "1"
    lower_priority(NICENESS)
    start_log("indexer")
    serve_frames_on_stdio(main_on)
