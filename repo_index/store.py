"""A store on disk: a folder with a manifest, the segment files that it names, and a lock."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from operating_system import folders
from operating_system.file_lock import LockFile
from operating_system.files import how_to_write
from operating_system.system import is_windows
from repo_index.errors import DamagedStore, StoreLocked
from repo_index.file_layer import FileLayer, checksum
from repo_index.manifest import NAME, Manifest, SegmentEntry
from repo_index.segment import Segment
from repo_index.segment_file import read_segment

LOCK = "lock"
_UNUSED_SECONDS = 60 * 24 * 3600


@dataclass(frozen=True, eq=False)
class StoredSegment:
    """A mapped segment, what the manifest says of it, and the dead among its files (bool)."""

    segment: Segment
    entry: SegmentEntry
    dead: NDArray[np.bool_]

    @property
    def living_tokens(self) -> int:
        """Tokens in files that are not dead."""
        return int(self.segment.lengths[~self.dead].sum())


def data_folder() -> Path:
    """Return the folder of stores, unless REDRAFT_DATA says otherwise."""
    chosen = os.environ.get("REDRAFT_DATA")
    return Path(chosen) if chosen else folders.data_folder()


def workspace_store(workspace: Path, tokenizer_hash: str) -> Path:
    """Return the store of a workspace for one tokenizer."""
    path = str(workspace.resolve())
    name = re.sub(r"[^A-Za-z0-9._-]", "_", workspace.resolve().name)[:40] or "root"
    digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return data_folder() / "workspaces" / f"{name}-{digest}" / tokenizer_hash[:16]


def common_store(tokenizer_hash: str) -> Path:
    """Return the store of common code for one tokenizer, shared by all workspaces."""
    return data_folder() / "common" / tokenizer_hash[:16]


def usable_folder(usual: Path, layer: FileLayer) -> tuple[Path, str]:
    """``usual``, or a temporary folder and why it has to be one. Raises OSError without either."""
    try:
        layer.make_folder(usual)
        handle, name = layer.open_temporary(usual / "probe")
        handle.close()
        layer.remove(name)
        return usual, ""
    except OSError as error:
        folder = Path(tempfile.mkdtemp(prefix="redraft-index-"))
        return folder, (
            f"the index is kept in {folder} until the end of this session, because "
            f"{usual} cannot be written ({error.strerror or error}); {how_to_write(error, usual)}"
        )


def load_segments(
    folder: Path, tokenizer_hash: str, loaded: Mapping[str, StoredSegment]
) -> tuple[Manifest, list[StoredSegment], list[str]]:
    """Return the state of a store: its manifest, its sound segments, and what was found damaged.
    ``loaded`` segments, by name, are not compared with their checksum again. Raises DamagedStore
    without a usable manifest."""
    manifest = Manifest.read(folder, tokenizer_hash)
    segments = []
    damage = []
    for entry in manifest.segments:
        try:
            segments.append(_load(folder, tokenizer_hash, entry, loaded.get(entry.name)))
        except DamagedStore as error:
            damage.append(str(error))
    return manifest, segments, damage


def _load(
    folder: Path, tokenizer_hash: str, entry: SegmentEntry, stored: StoredSegment | None
) -> StoredSegment:
    path = folder / entry.name
    if stored is not None and (stored.entry.size, stored.entry.crc) == (entry.size, entry.crc):
        segment = stored.segment
        if stored.entry.dead == entry.dead:
            return stored
    else:
        try:
            digest = checksum(path)
        except OSError as error:
            raise DamagedStore(f"{path} cannot be read ({error}); it is built again") from error
        if digest != (entry.size, entry.crc):
            raise DamagedStore(f"{path} is damaged; it is built again")
        segment = read_segment(path, tokenizer_hash)
    dead = np.zeros(len(segment.paths), np.bool_)
    dead[list(entry.dead)] = True
    return StoredSegment(segment, entry, dead)


def remove_leftovers(folder: Path, manifest: Manifest | None, layer: FileLayer) -> None:
    """Remove what the manifest does not name: of interrupted writes and former states."""
    in_use = {NAME, *(entry.name for entry in manifest.segments)} if manifest else set()
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name not in in_use and (name == NAME or name.endswith((".segment", ".tmp"))):
            layer.remove(folder / name)


def state_of(folder: Path) -> tuple[int, int, int]:
    """Something that changes whenever the manifest is replaced; zeros when there is none."""
    try:
        status = (folder / NAME).stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def folder_bytes(folder: Path) -> int:
    """Return bytes of all files in a store."""
    try:
        with os.scandir(folder) as entries:
            return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    except OSError:
        return 0


def remove_old_stores(layer: FileLayer, *, now: float, keep: frozenset[Path]) -> list[Path]:
    """Remove stores of workspaces that are gone, and those that were not used for sixty days. A
    store in use is locked and stays. Returns what was removed."""
    removed = []
    for group in ("workspaces/*/*", "common/*"):
        for folder in data_folder().glob(group):
            if folder in keep or not folder.is_dir() or not _outlived(folder, now):
                continue
            try:
                _remove(folder, layer)
                removed.append(folder)
            except (OSError, StoreLocked):
                continue
    return removed


def _remove(store: Path, layer: FileLayer) -> None:
    """Raise OSError, StoreLocked."""
    lock = lock_store(store)
    try:
        # First what makes a store of it.
        for name in sorted(os.listdir(store), key=lambda name: name != NAME):
            layer.remove(store / name)
    finally:
        lock.release()
    if is_windows():
        # It gives up the file of the lock no sooner.
        layer.remove(store / LOCK)
    store.rmdir()


def _outlived(folder: Path, now: float) -> bool:
    try:
        if now - max((folder / "lock").stat().st_mtime, folder.stat().st_mtime) > _UNUSED_SECONDS:
            return True
        if folder.parent.name == "common":
            return False
        body = (folder / NAME).read_bytes().partition(b"\n")[2]
        workspace = json.loads(body)["workspace"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    # A folder on a drive that is not there now may come back: only a missing last part counts.
    path = Path(workspace)
    return bool(workspace) and not path.exists() and path.parent.is_dir()


def lock_store(folder: Path) -> LockFile:
    """Return the right to write a store, held until its ``release`` or the end of the process. The
    system gives it up with the process, however that ends; the file itself stays. Raises
    StoreLocked when another process holds it, OSError when it cannot be made."""
    lock = LockFile(folder / LOCK)
    if not lock.acquire():
        raise StoreLocked(f"another process is indexing into {folder}; wait for it or end it")
    return lock
