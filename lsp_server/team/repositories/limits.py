"""Limits on how much a key may store at the server, and for how long."""

from __future__ import annotations

from dataclasses import dataclass

DAY_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class RepositoryLimits:
    """The quota of one key, and what is too much of anything. Bytes are of decompressed files."""

    repositories: int = 50
    """Of one key."""
    bytes: int = 2 << 30
    """Of all files of one key."""
    file_bytes: int = 1 << 20
    files: int = 100_000
    """Of one repository."""
    manifest_bytes: int = 32 << 20
    """Of the list of a repository's files, decompressed."""
    sessions: int = 8
    """Editors of one key that are open on one repository at a time."""
    buffers: int = 200
    """Open documents of one editor."""
    buffer_characters: int = 2_000_000
    unused_s: float = 30 * DAY_S
    """A repository that nobody used for so long is deleted."""
    idle_s: float = 1800.0
    """After so long without a sign of an editor its open documents are forgotten, and an index
    that nobody uses is closed."""
