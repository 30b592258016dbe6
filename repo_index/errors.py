"""Errors of the index that come from the world around it. Each message is one line."""

from __future__ import annotations


class RepoIndexError(Exception):
    """Anything that goes wrong outside of our own code."""


class StoreLocked(RepoIndexError):
    """Another process writes this store."""


class DamagedStore(RepoIndexError):
    """A file of the store is missing, foreign, of another version or not what was written."""


class StoreUnwritable(RepoIndexError):
    """The store cannot be written: full disk, read-only folder, input or output error."""
