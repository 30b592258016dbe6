"""Watches workspaces while the indexer is away, in a process that holds little memory: it tells
that something changed, and what that is the indexer finds out. It loads no compiler."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from lsp_server.shared.processes.child import FramePipe, serve_frames_on_stdio
from lsp_server.shared.processes.framing import Frame
from operating_system.processes import lower_priority
from repo_index.files import Limits
from repo_index.source_tree import FolderTree
from repo_index.watcher import Watcher

NICENESS = 10


def tree_of(frame: Frame) -> FolderTree:
    """Return the files that count of the workspace that a frame names."""
    limits = Limits(bytes=frame["max_file_bytes"])
    return FolderTree(Path(frame["folder"]), limits, patterns="\n".join(frame["exclude"]))


def main_on(_arguments: list[str], source: BinaryIO, target: BinaryIO) -> None:
    """Serve the daemon over a pair of files."""
    pipe = FramePipe(source, target)
    watchers: dict[str, Watcher] = {}
    while (frame := pipe.read()) is not None and frame["op"] != "end":
        folder = frame["folder"]
        if (former := watchers.pop(folder, None)) is not None:
            former.stop()
        if frame["op"] == "watch":
            watchers[folder] = _watching(frame, pipe)
    for watcher in watchers.values():
        watcher.stop()


def _watching(frame: Frame, pipe: FramePipe) -> Watcher:
    folder, tree = frame["folder"], tree_of(frame)

    def changed(paths: list[str] | None) -> None:
        if paths is None or any(may_count(tree, path) for path in paths):
            pipe.write({"event": "changed", "folder": folder})

    watcher = Watcher(tree, changed)
    watcher.start()
    pipe.write({"event": "watching", "folder": folder, "problem": watcher.problem})
    return watcher


def may_count(tree: FolderTree, path: str) -> bool:
    """Return True if the index may be another once this changed. What is gone may have counted."""
    is_there = os.path.lexists(tree.root / path)
    return not (tree.excluded(path) if is_there else tree.rules.ignored(path))


if __name__ == "__main__":
    from lsp_server.shared.processes.log import start_log

    lower_priority(NICENESS)
    start_log("watching")
    serve_frames_on_stdio(main_on)
