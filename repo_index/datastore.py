"""The set of segments of a workspace, and immutable snapshots of it that answer lookups from any
thread.

A snapshot holds *layers*: open buffers, the repository (base and changed segments), common code; a
file that is newer in a nearer segment is dead in the farther ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from repo_index.errors import DamagedStore
from repo_index.lookup import ROW, entry_address, look_up_of, table_row, view_of
from repo_index.matching import Source
from repo_index.merging import merge_segments
from repo_index.ordering import DEPTH, stream_type
from repo_index.overlay import Overlay
from repo_index.residence import release, sources_of
from repo_index.segment import Segment
from repo_index.splicing import splice
from repo_index.store import StoredSegment, load_segments, state_of

BUFFER: Final = 3
REPOSITORY: Final = 4
COMMON: Final = 5
"""Layers, numbered as the drafting side numbers its sources."""

NO_FILES_DEAD = np.empty(0, np.bool_)
_NO_FILES = np.empty(0, np.int32)
_RELOADS = 5


@dataclass(slots=True)
class Matches:
    """Tokens that followed earlier occurrences of the end of a context, longer matches first.
    tokens: int32 [n, depth], padded with -1; lengths: int32 [n], tokens before that match, up to
    ``max_match``; counts: float32 [n], occurrences that a row stands for; sources: int8 [n],
    layers; files: int32 [n], counted over all segments."""

    tokens: NDArray[np.int32]
    lengths: NDArray[np.int32]
    counts: NDArray[np.float32]
    sources: NDArray[np.int8]
    files: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True)
class SnapshotSegment:
    """One segment as a snapshot sees it. dead: bool [files], empty when every file lives."""

    segment: Segment
    layer: int
    dead: NDArray[np.bool_]
    first_file: int
    source: Source
    """Where its order and tokens are read."""


class IndexSnapshot:
    """An unchanging view of a datastore."""

    def __init__(
        self,
        parts: Sequence[tuple[Segment, int, NDArray[np.bool_]]] = (),
        hidden: tuple[int, int] = (0, 0),
        dtype: type[np.unsignedinteger] = np.uint16,
    ) -> None:
        """``parts``: segments with their layer and the dead among their files.

        ``hidden``: positions of the buffers that no lookup gives, first and after the last.
        ``dtype``: of tokens, where no segment's are wider.
        """
        self._hidden = np.array(hidden, np.int64)
        self.parts: list[SnapshotSegment] = []
        self.file_count = 0
        self._dtype = _widest_type([segment for segment, _, _ in parts], dtype)
        segments = [segment.as_type(self._dtype) for segment, _, _ in parts]
        sources = sources_of(segments)
        for segment, (_, layer, dead), source in zip(segments, parts, sources, strict=True):
            self.parts.append(SnapshotSegment(segment, layer, dead, self.file_count, source))
            self.file_count += len(segment.paths)
        read = [each for each in self.parts if len(each.segment.order)]
        layers = list(dict.fromkeys(each.layer for each in read))
        read.sort(key=lambda each: layers.index(each.layer))
        rows = [
            table_row(each.segment, each.layer, each.dead, each.first_file, each.source)
            for each in read
        ]
        self._table = np.array(rows, np.int64).reshape(len(rows), ROW)
        self._layer_count = len(layers)
        self._view = view_of(self._table, BUFFER, self._hidden, _NO_FILES)
        self.entry: NDArray[np.int64] = np.array(
            [entry_address(look_up_of(self._dtype)), self._view.ctypes.data], np.int64
        )
        """For compiled code: ``look_up_of`` the type and its first argument, good as long as this
        is."""

    def lookup(
        self, context: NDArray[np.int32], *, max_match: int = 16, limit: int = 64, depth: int = 16
    ) -> Matches:
        """Return continuations of the longest suffixes of ``context`` (int32 [m]): of every layer
        at most ``limit`` rows, those of the longest match and an unbiased sample of every shorter
        one. Never raises, never waits."""
        context = np.ascontiguousarray(context[-DEPTH:], np.int32)
        size = limit * self._layer_count
        tokens = np.empty((size, depth), np.int32)
        lengths = np.empty(size, np.int32)
        counts = np.empty(size, np.float32)
        sources = np.empty(size, np.int8)
        files = np.empty(size, np.int32)
        arrays = [array.ctypes.data for array in (tokens, lengths, counts, sources)]
        view = view_of(self._table, BUFFER, self._hidden, files)
        into = np.array([*arrays, size, depth], np.int64)
        count = self._look_up(view, context, into, max_match, limit, depth)
        order = np.argsort(-lengths[:count], kind="stable")
        return Matches(tokens[order], lengths[order], counts[order], sources[order], files[order])

    def lookup_into(
        self,
        context: NDArray[np.int32],
        addresses: NDArray[np.int64],
        *,
        max_match: int,
        limit: int,
        depth: int,
    ) -> int:
        """``lookup`` without files and in no order, into memory of the caller; returns how many
        rows.

        places: int64 [6], the addresses of tokens (int32 [rows, width]), lengths (int32), counts
        (float32) and sources (int8), then ``rows`` and ``width``. A short row ends by -1.
        """
        context = np.ascontiguousarray(context, np.int32)
        return self._look_up(self._view, context, addresses, max_match, limit, depth)

    def _look_up(
        self,
        view: NDArray[np.int64],
        context: NDArray[np.int32],
        addresses: NDArray[np.int64],
        max_match: int,
        limit: int,
        depth: int,
    ) -> int:
        count: int = look_up_of(self._dtype)(
            view.ctypes.data,
            context.ctypes.data,
            len(context),
            addresses.ctypes.data,
            max_match,
            limit,
            depth,
        )
        return count


def _widest_type(
    segments: Sequence[Segment], dtype: type[np.unsignedinteger]
) -> type[np.unsignedinteger]:
    """Of the tokens of segments and ``dtype``. A store and its buffers have one; segments that were
    made for themselves alone may have a narrower one."""
    types = (dtype, *(segment.tokens.dtype.type for segment in segments))
    return max(types, key=lambda kind: np.dtype(kind).itemsize)


class Datastore:
    """Segments of a workspace and of common code. ``snapshot`` gives the view to look up in. Used
    by one thread; the snapshots that it gives may be used by any."""

    def __init__(
        self,
        folder: Path | None = None,
        tokenizer_hash: str = "",
        *,
        common: Path | None = None,
        overlay: Overlay | None = None,
    ) -> None:
        """Follow the store in ``folder``, and one of common code. Neither need exist yet. A store
        of another tokenizer or version, or a damaged one, counts as empty."""
        self.overlay = overlay
        self.problems: list[str] = []
        """What was found damaged at the last reload; the indexer repairs it by a refresh."""
        self._layers = [
            _Layer(REPOSITORY, folder, tokenizer_hash),
            _Layer(COMMON, common, tokenizer_hash),
        ]
        self._snapshot: IndexSnapshot | None = None
        self._overlay_version = -1
        self._states: list[tuple[int, int, int]] = []
        """Of the stores, as they were when something was made of them last."""
        self._hidden: dict[int, tuple[frozenset[str], NDArray[np.bool_]]] = {}
        self.reload_if_changed()

    def below(self, overlay: Overlay) -> Datastore:
        """Return the same stores below other buffers. What is mapped is shared, and so are
        reloads."""
        other = Datastore(overlay=overlay)
        other._layers = self._layers
        return other

    def reload_if_changed(self) -> bool:
        """Map what the indexer wrote since; whether there was anything. Costs two stat calls."""
        changed = [layer for layer in self._layers if layer.reload()]
        if changed:
            self.problems = [problem for layer in self._layers for problem in layer.damage]
        return bool(changed)

    def snapshot(self, cursor: tuple[str, int] | None = None) -> IndexSnapshot:
        """Return the datastore and buffers as they are now; ask once for each request. ``cursor``:
        path of a buffer and a character in it, where what follows is not given as a
        continuation."""
        states = [layer.state for layer in self._layers]
        if states != self._states:
            # What was made of the stores before a reload is forgotten.
            self._states, self._snapshot, self._hidden = states, None, {}
        if cursor is not None and self.overlay is not None:
            hidden = self.overlay.positions_at(*cursor)
            return IndexSnapshot(self._parts(), hidden, self.overlay.dtype)
        version = self.overlay.version if self.overlay else -1
        if self._snapshot is None or version != self._overlay_version:
            self._overlay_version = version
            dtype = self.overlay.dtype if self.overlay else np.uint16
            self._snapshot = IndexSnapshot(self._parts(), dtype=dtype)
        return self._snapshot

    def release(self) -> None:
        """Release mapped memory, as when there was no lookup for some time. Lookups go on."""
        release(stored.segment for layer in self._layers for stored in layer.segments)

    def repository_files(self) -> dict[str, int]:
        """Return paths of the repository's files as indexed, and how many tokens each has."""
        return {
            path: int(length)
            for stored in self._layers[0].segments
            for path, length, dead in zip(
                stored.segment.paths, stored.segment.lengths, stored.dead, strict=True
            )
            if not dead
        }

    def _parts(self) -> list[tuple[Segment, int, NDArray[np.bool_]]]:
        segments: list[tuple[Segment, int, NDArray[np.bool_]]] = []
        if self.overlay and self.overlay.segment().paths:
            segments.append((self.overlay.segment(), BUFFER, NO_FILES_DEAD))
        for layer in self._layers:
            for stored in layer.segments:
                dead = self._without_open_files(stored) if layer.number == REPOSITORY else None
                if dead is None:
                    dead = stored.dead if stored.dead.any() else NO_FILES_DEAD
                segments.append((stored.segment, layer.number, dead))
        return segments

    def _without_open_files(self, stored: StoredSegment) -> NDArray[np.bool_] | None:
        """Return the dead of a segment and its files that are open, if any is."""
        paths = self.overlay.paths if self.overlay else frozenset()
        hidden = self._hidden.get(id(stored))
        if hidden is not None and hidden[0] == paths:
            return hidden[1]
        ids = stored.segment.file_ids if paths else {}
        indices = [ids[path] for path in paths if path in ids]
        if not indices:
            return None
        dead = stored.dead.copy()
        dead[indices] = True
        self._hidden[id(stored)] = (paths, dead)
        return dead


class _Layer:
    """The segments of one store as it was last read."""

    def __init__(self, number: int, folder: Path | None, tokenizer_hash: str) -> None:
        self.number = number
        self.segments: list[StoredSegment] = []
        self.damage: list[str] = []
        self._folder = folder
        self._tokenizer_hash = tokenizer_hash
        self.state = (0, 0, 0)
        """See ``state_of``."""

    def reload(self) -> bool:
        if self._folder is None or state_of(self._folder) == self.state:
            return False
        for _ in range(_RELOADS):
            self.state = state_of(self._folder)
            stored_by_name = {stored.segment.name: stored for stored in self.segments}
            try:
                _, self.segments, self.damage = load_segments(
                    self._folder, self._tokenizer_hash, stored_by_name
                )
            except DamagedStore as error:
                self.segments = []
                self.damage = [str(error)] if self.state != (0, 0, 0) else []
            # Segments vanish between manifest and map when the next state was just committed.
            if not self.damage or state_of(self._folder) == self.state:
                break
        return True


def warm_up_lookups(vocabulary_size: int) -> None:
    """Load, or the first time compile, all that a lookup needs, for streams of a type. Compiled
    code is cached on the disk; without a cache this takes some seconds."""
    snapshot = IndexSnapshot(dtype=stream_type(vocabulary_size))
    context = np.zeros(1, np.int32)
    snapshot.lookup(context, limit=2)
    snapshot.lookup_into(context, np.zeros(6, np.int64), max_match=4, limit=0, depth=4)


def warm_up_changes(vocabulary_size: int) -> None:
    """The same of what an edit needs, and the indexer."""
    dtype = stream_type(vocabulary_size)
    files = {"a": np.arange(40, dtype=np.int32) % 3, "b": np.arange(9, dtype=np.int32) % 2}
    segment = Segment.from_files(files, dtype=dtype)
    dead = np.array([True, False])
    splice(segment.tokens, segment.order, 3, 5, np.array([1], dtype))
    merge_segments([(segment, dead), (segment, ~dead)])
