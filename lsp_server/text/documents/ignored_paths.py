"""Tells which open documents are left out by the ignore files of their workspace."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from lsp_server.text.documents.workspace_folders import DocumentLocation
from operating_system.files import file_state
from repo_index.files import FileRules
from repo_index.source_tree import IGNORE_FILES

RECHECK_S = 2.0


class IgnoredPaths:
    """The rules of the workspaces of one client, read when they are needed first."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], FileRules] = {}
        self._known: dict[tuple[str, str, str], str] = {}
        self._stamps: dict[str, tuple[int, ...] | None] = {}
        self._next_check = 0.0

    def reason(self, location: DocumentLocation, exclude: list[str]) -> str:
        """Return why a path is left out, if it is. ``exclude``: the user's own patterns."""
        if not location.folder:
            return ""
        patterns = "\n".join(exclude)
        self._check_ignore_files(time.monotonic())
        key = location.folder, location.path, patterns
        if key not in self._known:
            rules = self._rules.get((location.folder, patterns))
            if rules is None:
                rules = FileRules(Path(location.folder), patterns=patterns)
                self._rules[location.folder, patterns] = rules
            self._known[key] = rules.ignored(location.path)
            files = _ignore_files(location.folder, location.path)
            for file in (*files, *map(str, rules.sources)):
                self._stamps.setdefault(file, file_state(file))
        return self._known[key]

    def _check_ignore_files(self, now: float) -> None:
        """Forget everything when an ignore file changed, which is looked for now and then."""
        if now < self._next_check:
            return
        self._next_check = now + RECHECK_S
        if any(file_state(file) != stamp for file, stamp in self._stamps.items()):
            self.forget()

    def forget(self) -> None:
        """Ignore files may have changed."""
        self._rules.clear()
        self._known.clear()
        self._stamps.clear()


def _ignore_files(folder: str, path: str) -> Iterator[str]:
    folders = path.split("/")
    for depth in range(len(folders)):
        for name in IGNORE_FILES:
            yield os.path.join(folder, *folders[:depth], name)
