"""The workspace folders of one client, and the folder that a document belongs to."""

from __future__ import annotations

import os
from dataclasses import dataclass

from pygls.uris import to_fs_path

from operating_system.file_systems import holds, path_below


@dataclass(frozen=True, slots=True)
class DocumentLocation:
    """A document's place: its workspace folder (or nothing) and its path in it, with slashes."""

    folder: str
    path: str
    absolute: str
    """Path on disk, empty for documents that are on none."""


class Folders:
    """The folders that a client has open."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self._real: dict[str, str] = {}
        """Each folder with the links in its path followed."""

    def add(self, uri: str) -> str | None:
        """Add a folder by URI; its path when it is new and on disk."""
        path = folder_path(uri)
        if path is None or path in self.paths:
            return None
        self.paths.append(path)
        self._real[path] = os.path.realpath(path)
        return path

    def remove(self, uri: str) -> str | None:
        """Remove a folder by URI; its path when it was there."""
        path = folder_path(uri)
        if path is None or path not in self.paths:
            return None
        self.paths.remove(path)
        del self._real[path]
        return path

    def place(self, uri: str) -> DocumentLocation:
        """Return where a document is: in the innermost folder that holds it, whichever side of a
        link the editor names."""
        absolute = to_fs_path(uri.split("#", 1)[0]) or ""
        if not absolute or "\0" in absolute:
            return DocumentLocation("", uri.rsplit("/", 1)[-1].rsplit(":", 1)[-1], "")
        absolute = os.path.normpath(absolute)
        innermost = _innermost({folder: folder for folder in self.paths}, absolute)
        if innermost is None and self.paths:
            innermost = _innermost(self._real, os.path.realpath(absolute))
        if innermost is None:
            return DocumentLocation("", os.path.basename(absolute), absolute)
        return DocumentLocation(*innermost, absolute)


def folder_path(uri: str) -> str | None:
    """Return the folder on disk that a URI names, if it names one."""
    path = to_fs_path(uri)
    if not path or "\0" in path:
        return None
    path = os.path.normpath(path)
    return path if os.path.isdir(path) else None


def _innermost(folders: dict[str, str], path: str) -> tuple[str, str] | None:
    """Return the folder (and the path in it, with slashes) that is the innermost around a path. The
    real paths of the folders are the values."""
    around = [folder for folder, root in folders.items() if holds(root, path)]
    if not around:
        return None
    best = max(around, key=lambda folder: len(folders[folder]))
    return best, path_below(folders[best], path) or "."
