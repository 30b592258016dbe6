"""Changes of a workspace, gathered into batches: from the file system and from the editor. Where
the system announces too little, the workspace is looked through again and again."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from repo_index.folder_watch import InotifyWatch, ObserverWatch, start_watch
from repo_index.source_tree import IGNORE_FILES, FolderTree

logger = logging.getLogger(__name__)

QUIET_S = 0.1
LONGEST_WAIT_S = 2.0
RESCAN_S = 5.0
"""Between looks at everything where changes are not announced."""
SAFETY_RESCAN_S = 600.0
"""Between looks at everything where they are."""


class Watcher:
    """Calls ``changed`` on its own thread with the paths of a batch, or None when any may have
    changed. Paths are relative to the root; a folder stands for all below it."""

    def __init__(
        self,
        tree: FolderTree,
        changed: Callable[[list[str] | None], None],
        *,
        quiet: float = QUIET_S,
        longest_wait: float = LONGEST_WAIT_S,
        rescan: float = RESCAN_S,
    ) -> None:
        """Times in seconds."""
        self.problem = ""
        """Why changes are found by looking again only; empty when they are announced."""
        self._tree = tree
        self._deliver = changed
        self._quiet = quiet
        self._longest_wait = longest_wait
        self._rescan = rescan
        self._watch: InotifyWatch | ObserverWatch | None = None
        self._wake = threading.Condition()
        self._paths: set[str] = set()
        self._everything = False
        self._at_once = False
        self._first = 0.0
        self._last = 0.0
        self._looked = time.monotonic()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    def start(self) -> None:
        """Watch from now on. What changed before is for the caller to find by a full refresh."""
        try:
            self._watch = start_watch(self._tree.rules, self._noticed, self._lost)
        except OSError as error:
            self._lost(error.strerror or str(error))
        except Exception as error:  # another version of the watching library
            logger.exception("watching failed")
            self._lost(f"watching failed ({error})")
        self._thread.start()

    def stop(self) -> None:
        """End watching; no call of ``changed`` begins after this returns."""
        with self._wake:
            self._stopped = True
            self._wake.notify()
        if self._watch is not None:
            self._watch.stop()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(5)

    def feed(self, paths: Iterable[str], *, at_once: bool = False) -> None:
        """Changes that an editor tells of: they join the batch, or end it (``at_once``)."""
        for path in paths:
            self._noticed(path)
        if at_once:
            with self._wake:
                self._at_once = True
                self._wake.notify()

    def _noticed(self, path: str) -> None:
        now = time.monotonic()
        with self._wake:
            if not self._paths and not self._everything:
                self._first = now
            self._last = now
            self._paths.add(path)
            self._wake.notify()

    def _lost(self, reason: str) -> None:
        """Everything is to be looked at: now and, with a reason, ever again."""
        with self._wake:
            if reason:
                if self.problem:
                    return
                self.problem = f"changes are found every {self._rescan:g} s only: {reason}"
                logger.warning("%s: %s", self._tree.root, self.problem)
            self._everything = True
            self._first = self._last = time.monotonic()
            self._wake.notify()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._stopped and (wait := self._waiting_time()) > 0:
                    self._wake.wait(wait)
                if self._stopped:
                    return
                paths, everything = self._paths, self._everything
                self._paths, self._everything, self._at_once = set(), False, False
            if not paths and not everything:
                everything = True
            if everything:
                self._looked = time.monotonic()
            if self._watch is not None and (
                everything or any(path.rpartition("/")[2] in IGNORE_FILES for path in paths)
            ):
                self._tree.forget()
                self._watch.rewatch()
            try:
                self._deliver(None if everything else sorted(paths))
            except Exception:
                logger.exception("a batch of changes failed")

    def _waiting_time(self) -> float:
        """Seconds until there is something to do."""
        now = time.monotonic()
        if self._paths or self._everything:
            if self._at_once:
                return 0.0
            return min(self._last + self._quiet, self._first + self._longest_wait) - now
        return self._looked + (self._rescan if self.problem else SAFETY_RESCAN_S) - now
