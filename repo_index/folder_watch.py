"""Notices from the system that something changed below a folder.

On Linux one inotify watch for every folder whose files count, by watchdog's inner reader: its own
recursive watches take every folder and are silent about limits and overflows. Elsewhere watchdog's
observer.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from operating_system.file_systems import announces_by_folder, path_below, remote_file_system
from operating_system.system import is_macos
from repo_index.files import FileRules

logger = logging.getLogger(__name__)


def start_watch(
    rules: FileRules, changed: Callable[[str], None], lost: Callable[[str], None]
) -> InotifyWatch | ObserverWatch:
    """Call ``changed`` with the path of everything that changes below the root, from any thread.

    ``lost`` is called with "" when notices were lost, and with a reason when some will be. Raises
    OSError, with the reason, when there can be no notices.
    """
    if (kind := remote_file_system(rules.root)) is not None:
        raise OSError(f"changes on a {kind} file system are not announced")
    if announces_by_folder():
        return InotifyWatch(rules, changed, lost)
    return ObserverWatch(rules.root, changed, lost)


class InotifyWatch:
    """inotify watches on the folders that count. A watchdog ``WatchCallback``."""

    def __init__(
        self, rules: FileRules, changed: Callable[[str], None], lost: Callable[[str], None]
    ) -> None:
        """Raise OSError when not one folder can be watched."""
        from watchdog.observers.inotify_c import InotifyConstants, InotifyFD

        self._rules = rules
        self._changed = changed
        self._lost = lost
        self._mask: Any = (
            InotifyConstants.IN_CREATE
            | InotifyConstants.IN_CLOSE_WRITE
            | InotifyConstants.IN_MODIFY
            | InotifyConstants.IN_ATTRIB
            | InotifyConstants.IN_DELETE
            | InotifyConstants.IN_MOVED_FROM
            | InotifyConstants.IN_MOVED_TO
            | InotifyConstants.IN_ONLYDIR
            | InotifyConstants.IN_DONT_FOLLOW
        )
        self._lock = threading.RLock()
        self._folder_of: dict[Any, str] = {}
        self._watch_of: dict[str, Any] = {}
        self._stopped = False
        self._reader: Any = _explained(InotifyFD.get_instance)
        _explained(lambda: self._watch(""))
        self._watch_below("")

    def rewatch(self) -> None:
        """Watch folders that are not watched yet."""
        self._watch_below("")

    def stop(self) -> None:
        """Remove all watches."""
        with self._lock:
            self._stopped = True
            watches = list(self._folder_of)
            self._folder_of.clear()
            self._watch_of.clear()
        self._remove(watches)

    def on_event(self, event: Any) -> None:
        """Something happened in a watched folder."""
        try:
            self._on_event(event)
        except Exception as error:
            # Called on the reader's thread, which serves all watches and must go on.
            logger.exception("a notice could not be read")
            self._lost(str(error))

    def _on_event(self, event: Any) -> None:
        with self._lock:
            folder = self._folder_of.get(event.wd)
        if folder is None or self._stopped or not event.name:
            return
        name = os.fsdecode(event.name)
        path = f"{folder}/{name}" if folder else name
        if event.is_directory:
            if event.is_moved_from or event.is_delete:
                self._forget(path)
            elif event.is_create or event.is_moved_to:
                # Watched before it is reported: what comes later is announced.
                self._watch_below(path)
            elif event.is_attrib:
                return
        self._changed(path)

    def on_watch_deleted(self, wd: Any) -> None:
        """A watched folder is gone."""
        with self._lock:
            folder = self._folder_of.pop(wd, None)
            if folder is not None and self._watch_of.get(folder) == wd:
                del self._watch_of[folder]

    def on_queue_overflow(self) -> None:
        """The kernel dropped notices, perhaps those of new folders."""
        self._watch_below("")
        self._lost("")

    def _watch_below(self, folder: str) -> None:
        for inner in self._rules.folders(folder):
            try:
                self._watch(inner)
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EMFILE, errno.ENOMEM):
                    self._lost(_reason(error))
                    return

    def _watch(self, folder: str) -> None:
        with self._lock:
            if self._stopped or folder in self._watch_of:
                return
            location = os.fsencode(self._rules.root / folder if folder else self._rules.root)
            wd = self._reader.add_callback(location, self._mask, self, id(self))
            former = self._folder_of.pop(wd, None)
            if former is not None:
                self._watch_of.pop(former, None)
            self._folder_of[wd] = folder
            self._watch_of[folder] = wd

    def _forget(self, folder: str) -> None:
        """A folder went: its watches would report on a path that is no longer its own."""
        with self._lock:
            inside = [
                path for path in self._watch_of if path == folder or path.startswith(folder + "/")
            ]
            watches = [self._watch_of.pop(path) for path in inside]
            for wd in watches:
                self._folder_of.pop(wd, None)
        self._remove(watches)

    def _remove(self, watches: list[Any]) -> None:
        for wd in watches:
            try:
                self._reader.remove_callbacks([(wd, id(self))])
            except OSError:
                continue


class ObserverWatch:
    """watchdog's observer on the whole tree: one handle on macOS and Windows."""

    def __init__(
        self, root: Path, changed: Callable[[str], None], lost: Callable[[str], None]
    ) -> None:
        """Raise OSError."""
        from watchdog.events import FileSystemEventHandler

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: Any) -> None:
                if event.event_type == "deleted" and os.fsdecode(event.src_path) == str(root):
                    # The observer has ended with it.
                    lost("the folder was moved or deleted")
                for location in (event.src_path, getattr(event, "dest_path", "")):
                    path = path_below(root, os.fsdecode(location))
                    if path and event.event_type not in ("opened", "closed_no_write"):
                        changed(path)

        self._observer = _observer(lost)
        self._observer.schedule(Handler(), str(root), recursive=True)
        self._observer.daemon = True
        self._observer.start()

    def rewatch(self) -> None:
        """Everything is watched already."""

    def stop(self) -> None:
        """End the observer."""
        self._observer.stop()


_DROPPED = 0x1 | 0x2 | 0x4
"""``kFSEventStreamEventFlagMustScanSubDirs``, ``UserDropped`` and ``KernelDropped``."""


def _observer(lost: Callable[[str], None]) -> Any:
    """Return the observer of this system. Of FSEvents it is told, too, when macOS dropped notices,
    as it does of thousands at once: watchdog passes over that."""
    if not is_macos():
        from watchdog.observers import Observer

        return Observer()
    from watchdog.observers.fsevents import FSEventsEmitter, FSEventsObserver

    class Emitter(FSEventsEmitter):
        def events_callback(self, paths: Any, inodes: Any, flags: Any, ids: Any) -> None:
            if any(each & _DROPPED for each in flags):
                lost("")
            super().events_callback(paths, inodes, flags, ids)

    observer: Any = FSEventsObserver()
    observer._emitter_class = Emitter
    return observer


def _explained(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except OSError as error:
        raise OSError(error.errno, _reason(error)) from error


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the limit of inotify watches is reached; raise fs.inotify.max_user_watches"
    if error.errno == errno.EMFILE:
        return "the limit of inotify instances is reached; raise fs.inotify.max_user_instances"
    return str(error)
