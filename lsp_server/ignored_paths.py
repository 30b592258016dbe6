"""Which open documents the ignore files of their workspace leave out."""

from __future__ import annotations

from pathlib import Path

from lsp_server.folders import Place
from repo_index.files import FileRules


class IgnoredPaths:
    """The rules of the workspaces of one client, read when they are needed first."""

    def __init__(self) -> None:
        self._rules: dict[tuple[str, str], FileRules] = {}
        self._known: dict[tuple[str, str, str], str] = {}

    def reason(self, place: Place, exclude: list[str]) -> str:
        """Why a path is left out; empty when it counts. ``exclude``: the user's own patterns."""
        if not place.folder:
            return ""
        patterns = "\n".join(exclude)
        key = place.folder, place.path, patterns
        if key not in self._known:
            rules = self._rules.get((place.folder, patterns))
            if rules is None:
                rules = FileRules(Path(place.folder), patterns=patterns)
                self._rules[place.folder, patterns] = rules
            self._known[key] = rules.ignored(place.path)
        return self._known[key]

    def forget(self) -> None:
        """Ignore files may have changed."""
        self._rules.clear()
        self._known.clear()
