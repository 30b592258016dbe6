"""Datastores of the benches: a case's repository without its reference, and common code."""

from __future__ import annotations

import hashlib
import os
import site
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import platformdirs
from numpy.typing import NDArray

from lsp_server.shared.errors import BenchError
from repo_index.datastore import COMMON, NO_FILES_DEAD, REPOSITORY, IndexSnapshot
from repo_index.segment import Segment
from tests.benchmarks.cases import CompletionCase, read_repository

if TYPE_CHECKING:
    from accel.draft_tree import TokenArray
    from accel.text.tokenizer import Tokenizer

COMMON_TOKENS = 6_000_000
CASE_PACKAGES = ("click", "rich", "starlette", "flask", "pytest", "_pytest", "httpx")
CASE_REPOSITORIES = ("imagen_pytorch", "lightweight_mmm", "patchcore", "redframes")
OF_LITTLE_USE = ("test", "tests", "idlelib", "lib2to3", "__pycache__")
LEFT_OUT = frozenset([*CASE_PACKAGES, *CASE_REPOSITORIES, *OF_LITTLE_USE])
"""Folders and modules that no bench may know from the common datastore: what the cases are taken
from, and tests, which hold little that a user writes."""

TokenFiles = dict[str, NDArray[np.int32]]

_READ: dict[Path, TokenFiles] = {}
"""The common code read last, by its cache: one process may run several benches."""


def encode_batch(tokenizer: Tokenizer, texts: list[str]) -> list[TokenArray]:
    """Return ``Tokenizer.encode`` of many texts, computed on all cores."""
    encodings = tokenizer.fast.encode_batch_fast(texts, add_special_tokens=False)
    return [np.array(encoding.ids, np.int32) for encoding in encodings]


class CaseDatastores:
    """Snapshots for cases, repository by repository, all with the same common datastore."""

    def __init__(self, tokenizer: Tokenizer, common: TokenFiles) -> None:
        self._tokenizer = tokenizer
        self.common = common
        self._common = Segment.from_files(common, threads=2) if common else None
        self._repository: Path | None = None
        self._files: TokenFiles = {}
        self._segment: Segment | None = None

    def files_of(self, case: CompletionCase, *, left_only: bool) -> TokenFiles:
        """Path to token ids of what may be known when ``case`` is completed.

        The case's own file stands there as two: what is before the cursor and what is after it,
        so that no lookup reads across the gap.
        """
        files = {path: ids for path, ids in self._known(case).items() if path != case.path}
        return files | self._own_files(case, left_only=left_only)

    def snapshot(self, case: CompletionCase, *, left_only: bool) -> IndexSnapshot:
        """``files_of`` the case and the common datastore, ready for lookups."""
        self._known(case)
        parts: list[tuple[Segment, int, NDArray[np.bool_]]] = []
        if self._segment is not None:
            dead = np.array([path == case.path for path in self._segment.paths], np.bool_)
            parts.append((self._segment, REPOSITORY, dead if dead.any() else NO_FILES_DEAD))
        own = Segment.from_files(self._own_files(case, left_only=left_only))
        parts.append((own, REPOSITORY, NO_FILES_DEAD))
        if self._common is not None:
            parts.append((self._common, COMMON, NO_FILES_DEAD))
        return IndexSnapshot(parts)

    def _known(self, case: CompletionCase) -> TokenFiles:
        """Token ids of the case's repository as it stands, its own file included."""
        if case.repository is None:
            self._repository, self._files, self._segment = None, {}, None
        elif case.repository != self._repository:
            texts = read_repository(case.repository)
            tokens = encode_batch(self._tokenizer, list(texts.values()))
            self._files = dict(zip(texts, tokens, strict=True))
            self._segment = Segment.from_files(self._files) if self._files else None
            self._repository = case.repository
        return self._files

    def _own_files(self, case: CompletionCase, *, left_only: bool) -> TokenFiles:
        before, after = own_paths(case)
        own = {before: self._tokenizer.encode(case.prefix)}
        if case.suffix and not left_only:
            own[after] = self._tokenizer.encode(case.suffix)
        return own


def own_paths(case: CompletionCase) -> tuple[str, str]:
    """Under which paths a case's own file stands in its index, before and after the cursor."""
    return case.path, f"{case.path} after the cursor"


def common_token_files(
    tokenizer: Tokenizer,
    folder: Path | None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> TokenFiles:
    """Token ids of common code: ``folder``, or the standard library and installed packages.

    What the cases are taken from is always left out (``LEFT_OUT``). Files are taken in the
    order of a hash up to ``COMMON_TOKENS`` tokens and cached under the user's cache, keyed by
    tokenizer and files. ``progress`` is told tokens so far and wanted.
    Raises BenchError when ``folder`` holds no Python file.
    """
    if folder is not None and not folder.is_dir():
        raise BenchError(f"{folder} is no folder; give a folder of Python files to --common")
    files = list(_python_files([folder] if folder else _own_environment()))
    if folder is not None and not files:
        raise BenchError(f"{folder} holds no Python file; give another folder to --common")
    cache = _cache_file(tokenizer, files)
    if cache in _READ:
        return _READ[cache]
    if cache.is_file():
        with np.load(cache) as stored:
            read = _split(stored["paths"], stored["lengths"], stored["tokens"])
        _READ.clear()
        return _READ.setdefault(cache, read)
    taken: TokenFiles = {}
    total = 0
    # By hash of the path within its root, so that an installed package more changes little.
    files.sort(key=lambda file: hashlib.sha256(_place_in_root(file).encode()).digest())
    for first in range(0, len(files), 64):
        batch = files[first : first + 64]
        texts = [path.read_text("utf-8", errors="replace") for path in batch]
        for path, ids in zip(batch, encode_batch(tokenizer, texts), strict=True):
            taken[str(path)] = ids
            total += len(ids)
        progress(min(total, COMMON_TOKENS), COMMON_TOKENS)
        if total >= COMMON_TOKENS:
            break
    _store(cache, taken)
    return taken


def _own_environment() -> list[Path]:
    folders = [sysconfig.get_path("stdlib"), *site.getsitepackages()]
    return [Path(folder) for folder in dict.fromkeys(folders) if Path(folder).is_dir()]


def _python_files(folders: Iterable[Path]) -> Iterable[Path]:
    """Python files of up to 200 kB below ``folders``, without ``LEFT_OUT``, in a fixed order."""
    for folder in folders:
        for place, inner, names in os.walk(folder):
            inner[:] = sorted(
                name
                for name in inner
                if name not in LEFT_OUT and not (name == "site-packages" and Path(place) == folder)
            )
            for name in sorted(names):
                path = Path(place, name)
                if (
                    name.endswith(".py")
                    and name[:-3] not in LEFT_OUT
                    and 0 < path.stat().st_size <= 200_000
                ):
                    yield path


def _place_in_root(file: Path) -> str:
    """Path from the last folder that is a root of packages."""
    parts = file.parts
    for root in ("site-packages", f"python{sys.version_info.major}.{sys.version_info.minor}"):
        if root in parts:
            return "/".join(parts[parts.index(root) + 1 :])
    return file.as_posix()


def _cache_file(tokenizer: Tokenizer, files: list[Path]) -> Path:
    key = hashlib.sha256(f"{tokenizer.sha256} {COMMON_TOKENS}".encode())
    for path in files:
        key.update(f"{path} {path.stat().st_size}\n".encode())
    folder = Path(platformdirs.user_cache_dir("redraft"), "bench")
    return folder / f"common-{key.hexdigest()[:24]}.npz"


def _store(cache: Path, files: TokenFiles) -> None:
    cache.parent.mkdir(parents=True, exist_ok=True)
    unfinished = cache.with_name(f"{cache.stem}.{os.getpid()}.{time.time_ns()}.npz")
    np.savez(
        unfinished,
        paths=np.array(list(files)),
        lengths=np.array([len(ids) for ids in files.values()]),
        tokens=np.concatenate(list(files.values())),
    )
    unfinished.replace(cache)


def _split(
    paths: NDArray[np.str_], lengths: NDArray[np.int64], tokens: NDArray[np.int32]
) -> TokenFiles:
    pieces = np.split(tokens, np.cumsum(lengths)[:-1])
    return {str(path): piece for path, piece in zip(paths, pieces, strict=True)}
