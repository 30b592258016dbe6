"""Decides which files of a workspace count, and why the others do not.

In this order: links and special files never; ``.git`` and the like; secrets by name;
``.redraftignore``, which may take back in what the rest leaves out; git's ignore files; what is not
code by name or size; nested repositories.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from operating_system.system import is_windows
from repo_index.git_settings import GitSettings
from repo_index.ignore import IgnoreFile
from repo_index.secret_paths import secret_path

_NEVER = frozenset({".git", ".hg", ".svn", ".bzr", "_darcs", ".jj", "CVS"})
_TOOL_FOLDERS, _DATA_ENDINGS = map(
    frozenset, json.loads(Path(__file__).with_suffix(".json").read_text("utf-8")).values()
)
_DATA_NAMES = frozenset(
    {"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "go.sum", ".ds_store"}
)


@dataclass(frozen=True)
class Limits:
    """Limits: bytes of one file, files of a workspace, folders within folders."""

    bytes: int = 1 << 20
    files: int = 200_000
    depth: int = 64


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A file as the file system describes it: bytes, modification and change times in ns."""

    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, status: os.stat_result) -> Fingerprint:
        """From a stat result."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@dataclass
class _Folder:
    """The ignore files that apply in a folder, nearest last."""

    own: tuple[IgnoreFile, ...] = ()
    git: tuple[IgnoreFile, ...] = ()
    repository: bool = False
    """Whether this folder or one above it is a repository."""
    ignore_case: bool = False
    """Whether its git ignores case."""
    reason: str = ""
    """Why the whole folder is left out."""


_SETTINGS = "the settings"


@dataclass
class FileRules:
    """The rules of one workspace. ``root`` is resolved; forget() after ignore files changed."""

    root: Path
    limits: Limits = field(default_factory=Limits)
    patterns: str = ""
    """Lines as of an ignore file at the root."""
    _folders: dict[str, _Folder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.root.resolve()
        self._path = self.root.as_posix().rstrip("/")
        self.problem = ""
        self.sources: set[Path] = set()
        """Files of git's, besides ignore files, that decide."""
        self.case_insensitive = _ignores_case(self.root)

    def forget(self) -> None:
        """Read all ignore files again when they are needed next."""
        self._folders.clear()

    def walk(self, below: str = "") -> Iterator[tuple[str, Fingerprint]]:
        """Yield files that count by name, below a folder of the workspace, in a stable order. Paths
        are relative to the root, with ``/``. Folders that cannot be read are passed over."""
        count = 0
        for folder, entries in self._scan(below):
            rules = self._folder(folder)
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if stat.S_ISDIR(status.st_mode) or self._file_reason(rules, path, status):
                    continue
                count += 1
                if count > self.limits.files:
                    self.problem = (
                        f"only the first {self.limits.files} files of {self.root} are indexed; "
                        "open a smaller folder or ignore some with .redraftignore"
                    )
                    return
                yield path, Fingerprint.of(status)

    def folders(self, below: str = "") -> Iterator[str]:
        """Folders whose files may count, ``below`` first."""
        return (folder for folder, _ in self._scan(below))

    def _scan(self, below: str) -> Iterator[tuple[str, list[os.DirEntry[str]]]]:
        """Yield the folders whose files may count, ``below`` first, and what is in them, in order;
        nothing of those that cannot be read."""
        if self.excluded(below, folder=True):
            return
        waiting = [below]
        while waiting:
            folder = waiting.pop()
            try:
                with os.scandir(self.root / folder if folder else self.root) as iterator:
                    entries = sorted(iterator, key=lambda entry: entry.name)
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except OSError:
                entries, names = [], []
            yield folder, entries
            paths = [f"{folder}/{name}" if folder else name for name in reversed(names)]
            waiting += [path for path in paths if not self._folder(path).reason]

    def excluded(self, path: str, *, folder: bool | None = None) -> str:
        """Return why a path is left out by its name, location or kind; empty when it counts.
        ``folder`` says which it is; found out when not given. Nothing outside of the root
        counts."""
        if not path:
            return ""
        names = path.split("/")
        if any(name in ("", ".", "..") or "\0" in name for name in names) or (
            "\\" in path and is_windows()
        ):
            return "outside of the workspace"
        above = "/".join(names[:-1])
        rules = self._folder(above)
        if rules.reason:
            return rules.reason
        try:
            status = (self.root / path).lstat()
        except (OSError, ValueError):
            return "there is no such file"
        if folder is None:
            folder = stat.S_ISDIR(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            return self._link_reason(path)
        if self.case_insensitive and not self._spelt_so(above, names[-1]):
            return "there is no file of this exact name"
        if folder:
            return self._folder(path).reason
        return self._file_reason(rules, path, status)

    def ignored(self, path: str) -> str:
        """Return why ignore files or the folder that it lies in leave a file out, be it there or
        not; empty when they do not."""
        rules = self._folder("")
        names = path.split("/")
        for depth in range(1, len(names)):
            folder = "/".join(names[:depth])
            if (self.root / folder).is_dir():
                rules = self._folder(folder)
                if rules.reason:
                    return rules.reason
            elif reason := _ignoring(rules, f"{self._path}/{folder}", folder=True):
                return reason
        return _ignoring(rules, f"{self._path}/{path}", folder=False)

    def _spelt_so(self, folder: str, name: str) -> bool:
        try:
            return name in os.listdir(self.root / folder)
        except OSError:
            return False

    def _link_reason(self, path: str) -> str:
        target = (self.root / path).resolve()
        if self.root in (target, *target.parents):
            return "a symbolic link; what it points to is indexed under its own name"
        return "a symbolic link that leaves the workspace"

    def _file_reason(self, rules: _Folder, path: str, status: os.stat_result) -> str:
        if not stat.S_ISREG(status.st_mode):
            return "not a regular file"
        if path.rpartition("/")[2] == ".git":
            return "where a repository lies"
        name = path.rsplit("/", 1)[-1].casefold()
        absolute = f"{self._path}/{path}"
        if reason := secret_path(absolute):
            return reason
        own = _decision(rules.own, absolute, folder=False)
        if own is None or own[0]:
            if reason := own[1] if own else "":
                return reason
            ignored = _decision(rules.git, absolute, folder=False)
            if ignored and ignored[0]:
                return ignored[1]
            if name in _DATA_NAMES or any(ending in _DATA_ENDINGS for ending in _endings(name)):
                return f"data or a build product by its name ({name})"
        if status.st_size > self.limits.bytes:
            return f"larger than {self.limits.bytes >> 10} KiB"
        return "" if status.st_size else "empty"

    def _folder(self, path: str) -> _Folder:
        rules = self._folders.get(path)
        if rules is None:
            rules = self._top() if not path else self._below(path)
            self._folders[path] = rules
        return rules

    def _top(self) -> _Folder:
        """Return the rules at the root: with those of the repository that the workspace is in."""
        settings = IgnoreFile.parse(self.patterns.encode(), _SETTINGS, f"{self._path}/")
        rules = _Folder(git=(settings,) if settings else ())
        for folder in (self.root, *self.root.parents):
            if _is_repository(folder):
                rules = self._in_repository(rules, folder)
                break
        return self._with_files_of(rules, "")

    def _in_repository(self, rules: _Folder, top: Path) -> _Folder:
        """Return the rules with what git reads for all of the repository at ``top`` and above our
        root. None of it counts where it ignores the root itself, which was opened to count."""
        settings = GitSettings(top)
        ignore_case = settings.ignore_case
        files = settings.ignore_files()
        self.sources |= settings.sources
        inside = self.root.relative_to(top).parts if top in self.root.parents else ()
        folders = [top.joinpath(*inside[:depth]) for depth in range(len(inside) + 1)]
        files += [_git_file(folder, str(folder), ignore_case) for folder in folders[:-1]]
        ignore_files = tuple(file for file in files if file)
        decisions = [_decision(ignore_files, each.as_posix(), folder=True) for each in folders[1:]]
        if any(decided and decided[0] for decided in decisions):
            ignore_files = ()
        return _Folder(rules.own, (*rules.git, *ignore_files), True, ignore_case=ignore_case)

    def _with_files_of(self, rules: _Folder, path: str) -> _Folder:
        """Return the rules with the ignore files of a folder."""
        folder = self.root / path
        name = f"{path}/.redraftignore" if path else ".redraftignore"
        own = IgnoreFile.read(folder / ".redraftignore", name, _base(folder))
        git = _git_file(folder, path, rules.ignore_case)
        return replace(
            rules,
            own=(*rules.own, own) if own else rules.own,
            git=(*rules.git, git) if git else rules.git,
        )

    def _below(self, path: str) -> _Folder:
        above, _, name = path.rpartition("/")
        parent = self._folder(above)
        if parent.reason:
            return _Folder(reason=parent.reason)
        absolute = self.root / path
        repository = _is_repository(absolute)
        reason = self._folder_reason(parent, path, name, absolute, repository)
        if reason:
            return _Folder(reason=reason)
        if repository and not parent.repository:
            # Git does not read what lies above a repository.
            settings = tuple(file for file in parent.git if file.origin == _SETTINGS)
            parent = self._in_repository(replace(parent, git=settings), absolute)
        return self._with_files_of(parent, path)

    def _folder_reason(
        self, parent: _Folder, path: str, name: str, absolute: Path, repository: bool
    ) -> str:
        try:
            status = absolute.lstat()
        except (OSError, ValueError):
            return "there is no such folder"
        if stat.S_ISLNK(status.st_mode):
            return self._link_reason(path)
        if not stat.S_ISDIR(status.st_mode):
            return "not a folder"
        if name in _NEVER:
            return f"a folder of version control ({name})"
        if path.count("/") >= self.limits.depth:
            return f"deeper than {self.limits.depth} folders"
        if reason := secret_path(f"{self._path}/{path}/"):
            return reason
        own = _decision(parent.own, absolute.as_posix(), folder=True)
        if own is not None:
            return own[1] if own[0] else ""
        ignored = _decision(parent.git, absolute.as_posix(), folder=True)
        if ignored and ignored[0]:
            return ignored[1]
        if name in _TOOL_FOLDERS:
            return f"a folder that tools make ({name})"
        if (absolute / "pyvenv.cfg").is_file():
            return "a virtual environment"
        if repository and parent.repository:
            return "a nested repository or submodule; open it as a workspace of its own"
        if (
            (absolute / "HEAD").is_file()
            and (absolute / "objects").is_dir()
            and (absolute / "refs").is_dir()
        ):
            return "a bare repository"
        return ""


def _decision(files: tuple[IgnoreFile, ...], path: str, *, folder: bool) -> tuple[bool, str] | None:
    """Return what the nearest ignore file with a matching pattern says of an absolute path: ignored
    or not, and why."""
    for file in reversed(files):
        decided = file.decide(path, folder=folder)
        if decided is not None:
            return decided[0], f"ignored by {file.origin}: {decided[1]}"
    return None


def _ignoring(rules: _Folder, path: str, *, folder: bool) -> str:
    """Return what the ignore files say against an absolute path."""
    decided = _decision(rules.own, path, folder=folder) or _decision(rules.git, path, folder=folder)
    return decided[1] if decided and decided[0] else ""


def _base(folder: Path) -> str:
    return f"{folder.as_posix().rstrip('/')}/"


def _git_file(folder: Path, label: str, ignore_case: bool) -> IgnoreFile | None:
    """Read the ignore file of a folder that messages name ``label``. Git follows no link there."""
    name = f"{label}/.gitignore" if label else ".gitignore"
    file, base = folder / ".gitignore", _base(folder)
    return IgnoreFile.read(file, name, base, ignore_case=ignore_case, link=False)


def _endings(name: str) -> Iterator[str]:
    """``tar.gz`` and ``gz`` of ``a.tar.gz``."""
    dot = name.find(".")
    while dot >= 0:
        yield name[dot + 1 :]
        dot = name.find(".", dot + 1)


def _is_repository(folder: Path) -> bool:
    return os.path.lexists(folder / ".git")


def _ignores_case(folder: Path) -> bool:
    """Return True if names that differ in case alone are one file there. Asked without writing."""
    changed = folder.with_name(folder.name.swapcase()) if folder.name else folder
    if changed == folder:
        return False
    try:
        return os.path.samefile(folder, changed)
    except OSError:
        return False
