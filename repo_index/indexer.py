"""Brings a store in line with the files: the single writer of a workspace or of common code, in a
process of its own. Readers map what it commits: see :class:`repo_index.datastore.Datastore`."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from repo_index.errors import StoreUnwritable
from repo_index.file_layer import FileLayer
from repo_index.ordering import stream_type
from repo_index.pending import PendingChanges
from repo_index.reading import Content
from repo_index.source_tree import IGNORE_FILES, SourceTree
from repo_index.store import folder_bytes, usable_folder
from repo_index.store_writer import StoreWriter
from repo_index.tokens import TextTokenizer

_BATCH_CHARACTERS = 1_200_000
"""Read and encoded together on several cores: enough that all are busy to the end."""
_SHORT_BATCH_CHARACTERS = 100_000
"""The same on one core, which is paused between two of them."""
_BLOCK_TOKENS = 4_000_000
"""Sorted and committed together."""


@dataclass
class IndexProgress:
    """The progress of a refresh. total is 0 while files are still being found."""

    files: int = 0
    total: int = 0
    tokens: int = 0


@dataclass
class Refreshed:
    """The outcome of a refresh: paths that were indexed, that are gone, and that could not be
    read."""

    indexed: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    tokens: int = 0


@dataclass(frozen=True)
class IndexStatus:
    """The index in numbers. problem: why it is stored elsewhere or not at all, or empty."""

    folder: str
    files: int
    tokens: int
    excluded: int
    bytes: int
    segments: int
    complete: bool
    problem: str


class Indexer:
    """Keeps one store equal to one source tree. Not thread-safe but for ``merge``."""

    def __init__(
        self,
        tree: SourceTree,
        folder: Path,
        tokenizer: TextTokenizer,
        *,
        workspace: str = "",
        layer: FileLayer | None = None,
        unique: bool = False,
        max_tokens: int = 0,
        pause: Callable[[], None] = lambda: None,
        threads: int = 2,
    ) -> None:
        """Open or make the store in ``folder``; one of a temporary folder when that cannot be
        written (``problem`` says so). ``unique``: content known under another name is left out.
        ``max_tokens``: stop there (0: no limit). ``pause`` is called between pieces of work and may
        wait. Raises StoreLocked, StoreUnwritable."""
        layer = layer or FileLayer()
        try:
            usable, self.problem = usable_folder(folder, layer)
            self._writer = StoreWriter(usable, tokenizer.sha256, workspace, layer)
        except OSError as error:
            raise StoreUnwritable(f"no folder for the index can be written ({error})") from error
        self.tree = tree
        self._tokenizer = tokenizer
        self._dtype = stream_type(tokenizer.vocabulary_size)
        self._unique = unique
        self._max_tokens = max_tokens
        self._pause = pause
        self._threads = threads

    def close(self) -> None:
        """Let another process write the store."""
        self._writer.close()

    @property
    def folder(self) -> Path:
        """Return the folder of the store."""
        return self._writer.folder

    @property
    def tokenizer_hash(self) -> str:
        """Of the tokenizer whose tokens the store holds."""
        return self._tokenizer.sha256

    @property
    def damage(self) -> list[str]:
        """Return what was found damaged when the store was opened; the next full refresh repairs
        it."""
        return self._writer.damage

    def status(self) -> IndexStatus:
        """Return files, tokens and bytes as they are now."""
        segments = self._writer.segments
        excluded = sum(1 for path in self._writer.entries if self._writer.reason(path))
        return IndexStatus(
            folder=str(self.folder),
            files=len(self._writer.entries) - excluded,
            tokens=sum(stored.living_tokens for stored in segments),
            excluded=excluded,
            bytes=folder_bytes(self.folder),
            segments=len(segments),
            complete=self._writer.manifest.complete,
            problem=self.problem or self.tree.problem,
        )

    def rebuild(self, progress: Callable[[IndexProgress], None] | None = None) -> Refreshed:
        """Forget everything and index all files."""
        self._writer.clear()
        return self.refresh(progress=progress)

    def refresh(
        self,
        paths: Iterable[str] | None = None,
        progress: Callable[[IndexProgress], None] | None = None,
    ) -> Refreshed:
        """Index what is new or changed, drop what is gone; of everything whose size or times
        changed, or of ``paths`` by content, where a folder stands for what is below it. Raises
        StoreUnwritable; what was committed before stays."""
        state = progress or (lambda _: None)
        paths_to_read = None if paths is None else set(paths)
        if paths_to_read is None or any(
            path.rpartition("/")[2] in IGNORE_FILES for path in paths_to_read
        ):
            self.tree.forget()
            paths_to_read = None
        state(IndexProgress())
        if paths_to_read is None:
            files = dict(self.tree.walk())
            gone = [
                path
                for path in self._writer.entries
                if path not in files and self.tree.covers(path)
            ]
            changed = [
                path
                for path, fingerprint in files.items()
                if self._writer.fingerprint(path) != fingerprint
            ]
        else:
            changed, gone = self._named(paths_to_read)
        return self._index(changed, gone, state, everything=paths_to_read is None)

    def merge(self, *, everything: bool = False) -> bool:
        """Merge segments if it is worth it; whether it was. Raises StoreUnwritable."""
        return self._writer.merge(pause=self._pause, everything=everything)

    def _named(self, paths_to_read: set[str]) -> tuple[list[str], list[str]]:
        """Return files of paths and folders that are there, and known ones that are gone."""
        there: dict[str, None] = {}
        gone: dict[str, None] = {}
        folders = set()
        for path in sorted(paths_to_read):
            if path in self._writer.entries or not self.tree.is_folder(path):
                if not self.tree.excluded(path):
                    there[path] = None
                    continue
                if path in self._writer.entries:
                    gone[path] = None
            folders.add(path)
        for folder in folders:
            if self.tree.is_folder(folder):
                there.update(dict.fromkeys(path for path, _ in self.tree.walk(folder)))
        if folders:
            for path in self._writer.entries:
                if path not in there and any(f in folders for f in _folders_of(path)):
                    gone[path] = None
        return list(there), list(gone)

    def _index(
        self,
        changed: Sequence[str],
        gone: Sequence[str],
        progress: Callable[[IndexProgress], None],
        *,
        everything: bool,
    ) -> Refreshed:
        so_far = IndexProgress(total=len(changed))
        result = Refreshed(removed=list(gone))
        pending = PendingChanges(removed=set(gone))
        keys = set(map(self._writer.digest, self._writer.entries)) if self._unique else None
        total = sum(stored.living_tokens for stored in self._writer.segments)
        with self._committing() as commit:
            for batch in self._batches(changed):
                if self._max_tokens and total + result.tokens >= self._max_tokens:
                    break
                self._pause()
                new = self._changed_contents(batch, pending, result, keys)
                ids = self._tokenizer.encode([content.text for _, content in new])
                for (path, content), tokens in zip(new, ids, strict=True):
                    pending.add(path, content, tokens)
                    result.indexed.append(path)
                    result.tokens += len(tokens)
                so_far.files += len(batch)
                so_far.tokens = result.tokens
                progress(so_far)
                if pending.tokens >= _BLOCK_TOKENS:
                    commit(pending)
                    pending = PendingChanges()
        finished = everything and not self._writer.manifest.complete
        if pending or finished:
            self._commit(pending, complete=True if finished else None)
        progress(so_far)
        return result

    @contextmanager
    def _committing(self) -> Iterator[Callable[[PendingChanges], None]]:
        """Commits one block while the next is encoded, where there is more than one thread for it.
        All are committed at the end. Raises StoreUnwritable, also of the block before."""
        if self._threads == 1:
            yield self._commit
            return
        running: list[Future[None]] = []

        def commit(pending: PendingChanges) -> None:
            while running:
                running.pop().result()
            running.append(pool.submit(self._commit, pending))

        with ThreadPoolExecutor(1) as pool:
            yield commit
            while running:
                running.pop().result()

    def _changed_contents(
        self,
        batch: list[tuple[str, Content | None]],
        pending: PendingChanges,
        result: Refreshed,
        keys: set[tuple[int, int] | None] | None,
    ) -> list[tuple[str, Content]]:
        """Of files that were read, those whose content is not what was indexed."""
        new = []
        for path, content in batch:
            if content is None:
                result.unreadable.append(path)
                if path in self._writer.entries:
                    pending.removed.add(path)
            elif content.key == self._writer.digest(path):
                times = content.fingerprint
                if times != self._writer.fingerprint(path):
                    pending.touched[path] = (times.modified, times.changed)
            elif keys is not None and content.key in keys:
                new.append((path, content.without_text("the same content is indexed already")))
            else:
                new.append((path, content))
                if keys is not None:
                    keys.add(content.key)
        return new

    def _commit(self, pending: PendingChanges, *, complete: bool | None = None) -> None:
        segment = pending.segment(self._dtype, self._threads, self._pause)
        self._writer.commit(segment, pending.removed, pending.touched, complete=complete)

    def _batches(self, paths: Sequence[str]) -> Iterator[list[tuple[str, Content | None]]]:
        """Yield contents of files; the next ones are read while these are encoded."""
        waiting = iter(paths)
        if len(paths) < 8:
            yield self._read_batch(waiting)
            return
        with ThreadPoolExecutor(1) as reader:
            following = reader.submit(self._read_batch, waiting)
            while batch := following.result():
                following = reader.submit(self._read_batch, waiting)
                yield batch

    def _read_batch(self, paths: Iterator[str]) -> list[tuple[str, Content | None]]:
        batch: list[tuple[str, Content | None]] = []
        size = 0
        most = _BATCH_CHARACTERS if self._threads > 1 else _SHORT_BATCH_CHARACTERS
        for path in paths:
            try:
                content: Content | None = self.tree.read(path)
            except OSError:
                content = None
            batch.append((path, content))
            size += len(content.text) if content else 0
            if size >= most or len(batch) >= 2000:
                break
        return batch


def explain(tree: SourceTree, path: str, indexed_paths: Container[str]) -> str:
    """Return why a file of a tree is in or out of an index that knows some paths, in one line."""
    if reason := tree.excluded(path):
        return f"{path}: not indexed: {reason}"
    if tree.is_folder(path):
        return f"{path}: a folder whose files are indexed"
    try:
        reason = tree.read(path).reason
    except OSError as error:
        reason = f"cannot be read ({error.strerror or error})"
    if reason:
        return f"{path}: not indexed: {reason}"
    if path not in indexed_paths:
        return f"{path}: will be indexed by the next refresh"
    return f"{path}: indexed"


def _folders_of(path: str) -> Iterator[str]:
    """Yield every folder above a path, the root (empty) too, and the path itself."""
    yield path
    while path:
        path = path.rpartition("/")[0]
        yield path
