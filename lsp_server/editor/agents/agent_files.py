"""The files that agents read and write: those of some folders, and none that is held back.

A file is opened from its folder's descriptor without following a link, and judged before anything
is said of its text. Several files are written together or not at all, each only as it was read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from pygls.uris import to_fs_path

from lsp_server.editor.daemon.address import make_private, private_folder
from lsp_server.shared.errors import RedraftError
from lsp_server.text.documents.ignored_paths import IgnoredPaths
from lsp_server.text.documents.workspace_folders import DocumentLocation
from operating_system.file_lock import LockFile
from operating_system.file_systems import holds, path_below
from operating_system.files_inside import FileInside, Replacement, read_inside
from repo_index.files import FileRules
from repo_index.secret_paths import secret_path
from repo_index.secrets import secret_content

MOST_BYTES = 4 << 20
LOCK_WAIT_S = 10.0
MOST_WALKED, MOST_NEAREST = 20_000, 3
"""Files that are looked through for a name, and of those that are named."""
_GIT = {".git", "git~1"}
"""The second is what Windows calls the first, too."""
_MARK = "\ufeff"


class FileRefused(RedraftError):
    """A file that agents may not have, or that cannot be written; the message quotes none of it."""


@dataclass(frozen=True, slots=True)
class AgentFile:
    """A file as it was read. ``path``: below ``folder``, with slashes."""

    folder: Path
    path: str
    inside: FileInside

    @property
    def place(self) -> Path:
        """The absolute path of the file."""
        return self.folder / self.path

    @property
    def text(self) -> str:
        """Its text as an editor has it: without a byte order mark, with its own line ends."""
        return self.inside.data.decode("utf-8").removeprefix(_MARK)

    def bytes_of(self, text: str) -> bytes:
        """Return the bytes of the file with ``text`` as its text."""
        marked = self.inside.data.startswith(_MARK.encode())
        return (_MARK * marked + text).encode("utf-8", "replace")


class AgentFiles:
    """The folders that agents may edit in."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self._names = [Path(os.path.abspath(folder)) for folder in folders]
        self._ignored = IgnoredPaths()
        self._roots: list[Path] | None = None
        """What a client narrows them to; None: to nothing."""

    def narrowed(self, roots: Sequence[Path] | None) -> AgentFiles:
        """Return the same folders, as far as they lie in one of a client's roots."""
        narrowed = copy(self)
        narrowed._roots = None if roots is None else [root.resolve() for root in roots]
        return narrowed

    def read(self, name: str, *, may_be_new: bool = False) -> AgentFile:
        """Return a file by its path: absolute, or in one of the folders. Raises FileRefused."""
        folder, path = self._found(name)
        if reason := self._reason(folder, path):
            raise FileRefused(f"{path} is not for agents ({reason}); edit it yourself")
        try:
            inside = read_inside(folder, path, MOST_BYTES + 1)
        except FileNotFoundError:
            if may_be_new:
                return AgentFile(folder, path, FileInside(b"", None))
            raise FileRefused(f"there is no file {path}; {self._nearest(folder, path)}") from None
        except OSError as error:
            why = f"{error.strerror or error}; links are not followed"
            raise FileRefused(f"{path} cannot be read ({why})") from None
        if reason := _reason_inside(inside):
            raise FileRefused(f"{path} is not for agents ({reason}); edit it yourself")
        return AgentFile(folder, path, inside)

    def _nearest(self, folder: Path, path: str) -> str:
        """Return what to do about a path that does not exist: paths of files that are like it."""
        walked = (walked for walked, _ in islice(FileRules(folder).walk(), MOST_WALKED))
        files = [each for each in walked if self._is_allowed(folder, each)]
        name = path.rpartition("/")[2]
        same = [each for each in files if each.rpartition("/")[2] == name]
        alike = same or get_close_matches(path, files, MOST_NEAREST, 0.7)
        return f"there is {', '.join(alike[:MOST_NEAREST])}" if alike else "name one that exists"

    def _found(self, name: str) -> tuple[Path, str]:
        """Return the folder of a file and the path in it; the folder may be named by a link. Raises
        FileRefused."""
        if "\0" in name or not name.strip():
            raise FileRefused("the path is empty; name a file of the workspace")
        # An absolute path is the same below any folder.
        paths = dict.fromkeys(
            os.path.normpath(folder / path) for path in _spellings(name) for folder in self.folders
        )
        matches = [
            (folder, path)
            for absolute in paths
            for folder, also in zip(self.folders, self._names, strict=True)
            if (path := path_below(folder, absolute) or path_below(also, absolute))
        ]
        matches = [candidate for candidate in matches if self._is_allowed(*candidate)]
        if not matches:
            raise FileRefused(f"{name} is outside of the folders that agents may edit: {self}")
        return next(
            (candidate for candidate in matches if os.path.lexists(candidate[0] / candidate[1])),
            matches[0],
        )

    def _is_allowed(self, folder: Path, path: str) -> bool:
        absolute = str(folder / path)
        return self._roots is None or any(holds(str(root), absolute) for root in self._roots)

    def __str__(self) -> str:
        if self._roots is None:
            return ", ".join(map(str, self.folders))
        both = [
            str(max(root, folder, key=lambda path: len(path.parts)))
            for root in self._roots
            for folder in self.folders
            if holds(str(root), str(folder)) or holds(str(folder), str(root))
        ]
        return ", ".join(both) or "none, as the client's roots say"

    def _reason(self, folder: Path, path: str) -> str:
        """Return the reason why a path is not for agents; empty if it is."""
        if any(name.casefold().rstrip(" .") in _GIT for name in path.split("/")):
            return "git's own"
        if reason := secret_path(str(folder / path)):
            return reason
        location = DocumentLocation(str(folder), path, str(folder / path))
        return self._ignored.reason(location, [])


def _spellings(name: str) -> Iterator[str]:
    """Yield the paths that a name may mean: that of a URI, and as diffs name files."""
    yield (to_fs_path(name) or "") if name.startswith("file:") else name
    if name.startswith(("a/", "b/")):
        yield name[2:]


def _reason_inside(inside: FileInside) -> str:
    """Return the reason why a file that was read is not for agents; empty if it is."""
    if inside.status and inside.status.st_nlink > 1:
        return "it has hard links: another name may be outside of the folder"
    if len(inside.data) > MOST_BYTES:
        return f"larger than {MOST_BYTES >> 20} MB"
    try:
        text = inside.data.decode("utf-8")
    except UnicodeDecodeError:
        return "not UTF-8 text"
    if "\0" in text:
        return "binary"
    return secret_content(text)


Change = tuple[AgentFile, str]
"""A file as it was read, and what it shall read."""


def replace_all(changes: Sequence[Change]) -> None:
    """Have all of the files read what they shall, or none. Raises FileRefused where one changed
    since it was read, or cannot be written: then all are as they were."""
    committed: list[Replacement] = []
    try:
        with ExitStack() as held:
            held.enter_context(_locked([file for file, _ in changes]))
            replacements = [
                held.enter_context(closing(_replacement(file, text))) for file, text in changes
            ]
            for replacement in replacements:
                replacement.check()
            try:
                for replacement in replacements:
                    replacement.commit()
                    committed.append(replacement)
            except OSError:
                _undo(committed)
                raise
    except OSError as error:
        raise FileRefused(
            f"{error.strerror or error}; nothing was written, read it again"
        ) from None


def _undo(committed: list[Replacement]) -> None:
    try:
        for replacement in reversed(committed):
            replacement.undo()
    except OSError as error:
        raise FileRefused(f"{error}; a part of the edit is written, look at the files") from None


def _replacement(file: AgentFile, text: str) -> Replacement:
    return Replacement(file.folder, file.path, file.inside, file.bytes_of(text))


@contextmanager
def _locked(files: Sequence[AgentFile]) -> Iterator[None]:
    """No other process of this user writes these files for an agent meanwhile."""
    folder = private_folder() / "edits"
    make_private(folder)
    slots = {
        hashlib.sha256(str(file.place).encode("utf-8", "surrogateescape")).digest()[0]
        for file in files
    }
    held: list[LockFile] = []
    try:
        # In one order, so that no two wait for each other.
        for slot in sorted(slots):
            lock = LockFile(folder / f"{slot:02x}.lock")
            if not lock.acquire(LOCK_WAIT_S):
                raise FileRefused("another edit of the file is under way; try again")
            held.append(lock)
        yield
    finally:
        for lock in reversed(held):
            lock.release()
