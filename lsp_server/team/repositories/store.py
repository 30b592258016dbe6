"""The repositories at the server: folders ``files/ID``, which the indexer reads, of links to
``blobs/ID``, by SHA-256. Nothing is shared between two, so nobody learns what others have."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from lsp_server.team.repositories.audit import AuditLog
from lsp_server.team.repositories.catalogue import Catalogue, RepositoryRecord
from lsp_server.team.repositories.errors import (
    InvalidUpload,
    NoSuchRepository,
    QuotaExceeded,
    RefusedContent,
    TooLarge,
)
from lsp_server.team.repositories.limits import RepositoryLimits
from lsp_server.team.repositories.paths import colliding, path_problem
from operating_system.files import replace_file, write_private
from repo_index.reading import decoded
from repo_index.secret_paths import secret_path
from repo_index.secrets import secret_content

_PARTS = ("files", "blobs")
_ID = re.compile(r"[0-9a-f]{32}")
_HASH = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[\w .+@-]{1,100}")
_CLASHES = "another path leaves no room for it"
_TOUCH_AFTER_S = 3600.0
"""A use is noted at most so often."""


@dataclass(slots=True)
class UploadState:
    """What a repository lacks, and what of a list was not taken."""

    missing: list[str]
    """SHA-256 of the contents to send."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why a path does not count, by path."""
    changed: list[str] = field(default_factory=list)
    """Paths whose files on the disk changed."""


class RepositoryStore:
    """Repositories below one folder. Any thread or process may call, on the same folder, too."""

    def __init__(
        self,
        folder: Path,
        limits: RepositoryLimits | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``clock``: seconds since 1970. Raises OSError when the folder cannot be made."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.limits = limits or RepositoryLimits()
        self._folder = folder.resolve()
        for part in _PARTS:
            (self._folder / part).mkdir(mode=0o700, exist_ok=True)
        self._clock = clock
        self._catalogue = Catalogue(self._folder / "repositories.sqlite")
        self._audit = AuditLog(self._folder / "audit.jsonl")

    # Whole repositories

    def register(self, key: str, name: str) -> RepositoryRecord:
        """A new, empty repository of a key. Raises InvalidUpload and QuotaExceeded."""
        if not _NAME.fullmatch(name) or not name.strip(" ."):
            raise InvalidUpload("a name must have 1 to 100 letters, digits, spaces and . _ - + @")
        now = self._clock()
        record = RepositoryRecord(secrets.token_hex(16), name, key, now, now, 0, 0)
        if not self._catalogue.add(record, self.limits.repositories):
            raise QuotaExceeded(
                f"this key has {self.limits.repositories} repositories; delete one first"
            )
        for part in _PARTS:
            (self._folder / part / record.id).mkdir(mode=0o700)
        self._audit.write(now, "register", key, record.id, name=name)
        return record

    def owned(self, key: str) -> list[RepositoryRecord]:
        """The repositories of a key."""
        return self._catalogue.owned(key)

    def read(self, key: str, repository: str) -> RepositoryRecord:
        """A repository that a key uses now; see ``check``."""
        self.check(key, repository)
        record = self._catalogue.find(repository)
        if record is None:
            raise NoSuchRepository
        return record

    def check(self, key: str, repository: str) -> None:
        """A key uses a repository now. Raises NoSuchRepository for one that is not its own."""
        known = self._catalogue.owner_and_use(repository) if _ID.fullmatch(repository) else None
        if known is None or known[0] != key:
            raise NoSuchRepository
        if self._clock() - known[1] > _TOUCH_AFTER_S:
            self._catalogue.touch(repository, self._clock())

    def delete(self, key: str, repository: str) -> None:
        """Delete a repository and its files. Raises NoSuchRepository."""
        self.check(key, repository)
        self._delete(repository, key, "delete")

    def delete_unused(self) -> list[str]:
        """Delete what nobody used for long, and what is left of others; ids of the former."""
        old = self._catalogue.unused_since(self._clock() - self.limits.unused_s)
        for record in old:
            self._delete(record.id, "", "expire")
        # Looked for before the ids are: what is registered meanwhile has its row first.
        folders = [folder for part in _PARTS for folder in (self._folder / part).iterdir()]
        known = self._catalogue.ids()
        for folder in folders:
            if folder.name not in known:
                shutil.rmtree(folder, ignore_errors=True)
        return [record.id for record in old]

    def _delete(self, repository: str, key: str, event: str) -> None:
        with self._locked(repository):
            self._catalogue.delete(repository)
        self._audit.write(self._clock(), event, key, repository)
        for part in _PARTS:
            shutil.rmtree(self._folder / part / repository, ignore_errors=True)

    def exists(self, repository: str) -> bool:
        """Whether there is a repository, whosever it is."""
        return self._catalogue.owner_and_use(repository) is not None

    def missing(self, repository: str) -> list[str]:
        """Hashes of contents that were announced and not sent."""
        return self._catalogue.missing(repository)

    def files_folder(self, repository: str) -> Path:
        """Where the files of a repository lie."""
        assert _ID.fullmatch(repository)
        return self._folder / "files" / repository

    # Files

    def set_files(self, key: str, repository: str, files: dict[str, str]) -> UploadState:
        """The repository consists of these files, SHA-256 by path. Raises RepositoryError."""
        self.check(key, repository)
        _check_hashes(files.values())
        self._check_count(len(files))
        refused = _refused(files)
        clash = colliding([path for path in files if path not in refused])
        refused.update(dict.fromkeys(clash, _CLASHES))
        taken = {path: one for path, one in files.items() if path not in refused}
        with self._locked(repository):
            known = self._catalogue.files(repository)
            changes: dict[str, str | None] = {path: None for path in known if path not in taken}
            changes.update(taken.items() - known.items())
            self._catalogue.change_files(repository, changes)
            there = dict.fromkeys(_files_below(self.files_folder(repository)), None)
            return self._brought_in_line(repository, refused, {**there, **taken})

    def change_files(self, key: str, repository: str, files: dict[str, str | None]) -> UploadState:
        """Some files changed, came or went (None). Raises RepositoryError."""
        self.check(key, repository)
        _check_hashes(one for one in files.values() if one is not None)
        refused = _refused(files)
        with self._locked(repository):
            refused.update(self._clashing(repository, files))
            # What leads elsewhere touches nothing; what may not count any more goes.
            changes = {
                path: None if path in refused else one
                for path, one in files.items()
                if not path_problem(path)
            }
            self._catalogue.change_files(repository, changes)
            return self._brought_in_line(repository, refused, changes)

    def _clashing(self, repository: str, files: dict[str, str | None]) -> dict[str, str]:
        """Why those that come have no room among the others."""
        given = [path for path, one in files.items() if one is not None]
        known = self._catalogue.known(repository, given)
        if known.issuperset(given):
            return {}
        staying = [path for path in self._catalogue.files(repository) if path not in files]
        self._check_count(len(staying) + len(given))
        clash = colliding([*staying, *given]).intersection(given)
        return dict.fromkeys(clash, _CLASHES)

    def _check_count(self, count: int) -> None:
        if count > self.limits.files:
            raise TooLarge(f"a repository may have at most {self.limits.files} files")

    def add_content(self, key: str, repository: str, digest: str, data: bytes) -> None:
        """A content that files are to hold; see ``add_contents``. Raises RepositoryError."""
        refused = self.add_contents(key, repository, {digest: data})
        if refused:
            raise RefusedContent(refused[digest])

    def add_contents(self, key: str, repository: str, contents: dict[str, bytes]) -> dict[str, str]:
        """Contents that files are to hold, by SHA-256: they do then. Why some are refused.

        Nothing happens to those that no file is to hold, so nothing else can be kept here. Raises
        RepositoryError, and then none counts.
        """
        self.check(key, repository)
        refused = {
            digest: why for digest, one in contents.items() if (why := self._why(digest, one))
        }
        with self._locked(repository):
            wanted = set(self._catalogue.missing(repository)) - refused.keys()
            taken = {digest: one for digest, one in contents.items() if digest in wanted}
            for digest, data in taken.items():
                write_private(self._blob(repository, digest), data)
            sizes = {digest: len(data) for digest, data in taken.items()}
            if sizes and not self._catalogue.add_blobs(repository, sizes, self.limits.bytes):
                for digest in taken:
                    self._blob(repository, digest).unlink()
                raise QuotaExceeded(f"this key keeps {self.limits.bytes} bytes; delete something")
            root = self.files_folder(repository)
            for path, digest in self._catalogue.paths_of(repository, taken):
                _linked(self._blob(repository, digest), root, path)
        return refused

    def _why(self, digest: str, data: bytes) -> str:
        """Why a content is refused. Raises InvalidUpload and TooLarge."""
        if not _HASH.fullmatch(digest) or hashlib.sha256(data).hexdigest() != digest:
            raise InvalidUpload("the content does not have this SHA-256")
        if len(data) > self.limits.file_bytes:
            raise TooLarge(f"a file may have at most {self.limits.file_bytes} bytes")
        text = decoded(data)
        if text is None:
            return "the content is no text"
        return (
            "the content seems to hold a credential" if secret_content(text, compiled=False) else ""
        )

    def _brought_in_line(
        self, repository: str, refused: dict[str, str], files: dict[str, str | None]
    ) -> UploadState:
        """Have these files on the disk hold what they are to (None: not be there)."""
        missing = self._catalogue.missing(repository)
        lacking = frozenset(missing)
        root = self.files_folder(repository)
        # What goes makes room for what comes.
        changed = [path for path, one in files.items() if one is None and _removed(root, path)]
        for path, digest in files.items():
            if digest is None or digest in lacking:
                continue
            if _linked(self._blob(repository, digest), root, path):
                changed.append(path)
        # A file is a link of its own: it holds its former content until the new one is there.
        self._drop_unwanted(repository)
        return UploadState(missing, refused, changed)

    def _drop_unwanted(self, repository: str) -> None:
        unwanted = self._catalogue.unwanted(repository)
        if not unwanted:
            return
        self._catalogue.drop_blobs(repository, unwanted)
        for digest in unwanted:
            self._blob(repository, digest).unlink(missing_ok=True)

    def _blob(self, repository: str, digest: str) -> Path:
        return self._folder / "blobs" / repository / digest

    @contextlib.contextmanager
    def _locked(self, repository: str) -> Iterator[None]:
        """One writer at a time. Raises NoSuchRepository when it was deleted meanwhile."""
        folder = self._folder / "blobs" / repository
        if not folder.is_dir():
            raise NoSuchRepository
        with FileLock(folder / "lock", mode=0o600):
            if self._catalogue.owner_and_use(repository) is None:
                raise NoSuchRepository
            yield


def _refused(paths: Iterable[str]) -> dict[str, str]:
    """Why paths do not count, whatever else there is."""
    return {path: why for path in paths if (why := path_problem(path) or secret_path(path))}


def _check_hashes(hashes: Iterable[str]) -> None:
    if not all(map(_HASH.fullmatch, hashes)):
        raise InvalidUpload("a hash is the SHA-256 of a content, in lower-case hexadecimal digits")


def _files_below(root: Path) -> list[str]:
    return [
        (Path(folder) / name).relative_to(root).as_posix()
        for folder, _, names in os.walk(root)
        for name in names
    ]


def _removed(root: Path, path: str) -> bool:
    """Remove a file and the folders that are empty then; whether there was one."""
    assert not path_problem(path)
    place = root / path
    if not place.is_file():
        return False
    place.unlink()
    for folder in place.parents:
        if folder == root:
            break
        try:
            folder.rmdir()
        except OSError:
            break
    return True


def _linked(blob: Path, root: Path, path: str) -> bool:
    """Have a file hold what ``blob`` does; False when it did."""
    assert not path_problem(path)
    place = root / path
    try:
        if os.path.samefile(blob, place):
            return False
    except (FileNotFoundError, NotADirectoryError):
        pass
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = blob.with_name("link")
    unfinished.unlink(missing_ok=True)
    try:
        os.link(blob, unfinished)
    except OSError:
        # A file system without hard links.
        shutil.copyfile(blob, unfinished)
    replace_file(unfinished, place)
    return True
