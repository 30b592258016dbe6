"""The one writer of a store: adds segments, buries files, merges, commits."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from operating_system.files import how_to_write
from repo_index.errors import DamagedStore, StoreUnwritable
from repo_index.file_layer import FileLayer
from repo_index.files import Fingerprint
from repo_index.manifest import Manifest, SegmentEntry
from repo_index.merging import MergeBuffers, merge_segments
from repo_index.segment import Segment
from repo_index.segment_file import read_segment, write_segment
from repo_index.store import LOCK, StoredSegment, load_segments, lock_store, remove_leftovers

MAX_SEGMENTS = 4


class StoreWriter:
    """A store opened for writing, and where each file that it holds lies. Public methods take
    effect as a whole, or raise StoreUnwritable and change nothing. ``merge`` may run in another
    thread."""

    def __init__(
        self, folder: Path, tokenizer_hash: str, workspace: str = "", layer: FileLayer | None = None
    ) -> None:
        """Locks the store and loads what is sound. Raises StoreLocked, OSError."""
        self.folder = folder
        self._layer = layer or FileLayer()
        self._lock = lock_store(folder)
        self._changing = threading.RLock()
        self._closed = False
        self.damage: list[str] = []
        """What was found damaged and is to be indexed again."""
        try:
            os.utime(folder / LOCK)
            manifest, self.segments, self.damage = load_segments(folder, tokenizer_hash, {})
        except DamagedStore as error:
            manifest, self.segments = Manifest(tokenizer_hash, workspace), []
            if (folder / "manifest").exists():
                self.damage = [str(error)]
        except OSError:
            manifest, self.segments = Manifest(tokenizer_hash, workspace), []
        names = {stored.segment.name for stored in self.segments}
        self.manifest = replace(
            manifest,
            workspace=workspace,
            segments=tuple(entry for entry in manifest.segments if entry.name in names),
        )
        remove_leftovers(folder, self.manifest, self._layer)
        self.entries: dict[str, tuple[StoredSegment, int]] = {}
        self._find_entries()

    def close(self) -> None:
        """Give up the lock. A merge that runs comes to nothing."""
        with self._changing:
            self._closed = True
            self._lock.release()

    def fingerprint(self, path: str) -> Fingerprint | None:
        """Return how the file system described a file when its content was last known."""
        entry = self.entries.get(path)
        if entry is None or not len(entry[0].segment.facts):
            return None
        facts = entry[0].segment.facts[entry[1]]
        touched = self.manifest.touched.get(path)
        modified, changed = touched or (int(facts["modified"]), int(facts["changed"]))
        return Fingerprint(int(facts["size"]), modified, changed)

    def digest(self, path: str) -> tuple[int, int] | None:
        """Hash of a file's content as it was indexed."""
        entry = self.entries.get(path)
        if entry is None or not len(entry[0].segment.facts):
            return None
        first, second = entry[0].segment.facts[entry[1]]["digest"]
        return int(first), int(second)

    def reason(self, path: str) -> str:
        """Return why the content of a known file is left out; empty when it counts or is
        unknown."""
        entry = self.entries.get(path)
        return entry[0].segment.reasons[entry[1]] if entry and entry[0].segment.reasons else ""

    def commit(
        self,
        added: Segment | None,
        removed: Iterable[str] = (),
        touched: dict[str, tuple[int, int]] | None = None,
        *,
        complete: bool | None = None,
    ) -> None:
        """Files of ``added`` replace what is known of them; ``removed`` ones are gone. ``touched``:
        newer times of unchanged files. Raises StoreUnwritable."""
        with self._changing:
            gone = set(removed) | (set(added.paths) if added else set())
            segments = self._buried(gone)
            times = {path: t for path, t in self.manifest.touched.items() if path not in gone}
            times.update(touched or {})
            new = [self._written(added)] if added is not None and added.paths else []
            self._install(segments + new, times, complete)

    def clear(self) -> None:
        """Forget everything, as when the store was just made."""
        with self._changing:
            self._install([], {}, complete=False)

    def merge(self, *, pause: Callable[[], None] = lambda: None, everything: bool = False) -> bool:
        """Merge segments when there are too many or too much of one is dead; whether it did.
        Everything that is read or committed meanwhile goes on as before."""
        with self._changing:
            chosen = list(self.segments) if everything else self._worth_merging()
            if not chosen or (len(chosen) == 1 and not chosen[0].dead.any()):
                return False
            segments = [(stored.segment, stored.dead) for stored in chosen]
        merged = merge_segments(segments, scratch=MergeBuffers(self.folder), pause=pause)
        with self._changing:
            if any(
                all(stored.segment is not s.segment for s in self.segments) for stored in chosen
            ):
                return False
            written = self._written(merged) if merged.paths else None
            old = {stored.segment.name for stored in chosen}
            rest = [stored for stored in self.segments if stored.segment.name not in old]
            if written is not None:
                # What changed or went while the merge ran is dead in its result.
                dead = [
                    index
                    for index, path in enumerate(merged.paths)
                    if path not in self.entries or self.entries[path][0].segment.name not in old
                ]
                rest.insert(0, _with_dead(written, dead))
            self._install(rest, self.manifest.touched, None)
        return True

    def _worth_merging(self) -> list[StoredSegment]:
        """Return the small segments, up to a far larger one, if there are many."""
        for stored in self.segments:
            positions = int(stored.segment.lengths.sum())
            if stored.living_tokens < positions // 2:
                return [stored]
        if len(self.segments) <= MAX_SEGMENTS:
            return []
        ordered = sorted(self.segments, key=lambda stored: stored.living_tokens)
        chosen = ordered[:2]
        total = sum(stored.living_tokens for stored in chosen)
        for stored in ordered[2:]:
            if stored.living_tokens > 4 * total and len(ordered) - len(chosen) < MAX_SEGMENTS:
                break
            chosen.append(stored)
            total += stored.living_tokens
        return [stored for stored in self.segments if stored in chosen]

    def _written(self, segment: Segment) -> StoredSegment:
        name = f"{uuid.uuid4().hex[:16]}.segment"
        path = self.folder / name
        try:
            size, crc = write_segment(self._layer, path, segment, self.manifest.tokenizer_hash)
            mapped = read_segment(path, self.manifest.tokenizer_hash)
        except (OSError, DamagedStore) as error:
            self._layer.remove(path)
            raise self._unwritable(error) from error
        return StoredSegment(
            mapped, SegmentEntry(name, size, crc), np.zeros(len(mapped.paths), bool)
        )

    def _unwritable(self, error: Exception) -> StoreUnwritable:
        cause, remedy = getattr(error, "strerror", error), how_to_write(error, self.folder)
        return StoreUnwritable(f"the index cannot be written ({cause}); {remedy}")

    def _buried(self, paths: set[str]) -> list[StoredSegment]:
        """Return the segments with these paths' files dead, without those that are all dead."""
        dead: dict[str, list[int]] = {}
        for path in paths:
            entry = self.entries.get(path)
            if entry is not None:
                dead.setdefault(entry[0].segment.name, []).append(entry[1])
        segments = []
        for stored in self.segments:
            indices = dead.get(stored.segment.name)
            changed = _with_dead(stored, indices) if indices else stored
            if not changed.dead.all():
                segments.append(changed)
        return segments

    def _install(
        self,
        segments: list[StoredSegment],
        touched: dict[str, tuple[int, int]],
        complete: bool | None,
    ) -> None:
        manifest = replace(
            self.manifest,
            generation=self.manifest.generation + 1,
            segments=tuple(stored.entry for stored in segments),
            touched=touched,
            complete=self.manifest.complete if complete is None else complete,
        )
        try:
            manifest.write(self._layer, self.folder)
        except OSError as error:
            for stored in segments:
                if all(stored.segment.name != s.segment.name for s in self.segments):
                    self._layer.remove(self.folder / stored.segment.name)
            raise self._unwritable(error) from error
        current = {stored.segment.name for stored in segments}
        old = [s.segment.name for s in self.segments if s.segment.name not in current]
        self.manifest = manifest
        self.segments = segments
        self._find_entries()
        for name in old:
            self._layer.remove(self.folder / name)

    def _find_entries(self) -> None:
        entries: dict[str, tuple[StoredSegment, int]] = {}
        for stored in self.segments:
            dead = stored.dead.tolist()
            for index, path in enumerate(stored.segment.paths):
                if not dead[index]:
                    entries[path] = (stored, index)
        self.entries = entries


def _with_dead(stored: StoredSegment, indices: Iterable[int]) -> StoredSegment:
    dead = stored.dead.copy()
    dead[list(indices)] = True
    entry = replace(stored.entry, dead=tuple(int(i) for i in np.flatnonzero(dead)))
    return StoredSegment(stored.segment, entry, dead)
