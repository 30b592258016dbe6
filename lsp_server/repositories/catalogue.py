"""What is known of the repositories: one SQLite file beside their folders."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLES = """
create table if not exists repositories(
    id text primary key, name text not null, owner text not null,
    created real not null, used real not null);
create index if not exists owners on repositories(owner);
create table if not exists readers(
    repository text not null references repositories(id) on delete cascade,
    key text not null, primary key(repository, key));
create table if not exists files(
    repository text not null references repositories(id) on delete cascade,
    path text not null, hash text not null, primary key(repository, path));
create index if not exists contents on files(repository, hash);
create table if not exists blobs(
    repository text not null references repositories(id) on delete cascade,
    hash text not null, size integer not null, primary key(repository, hash));
"""
_WAIT_S = 20.0


@dataclass(frozen=True, slots=True)
class RepositoryRecord:
    """One repository. Times in seconds since 1970; ``bytes`` of the files that are there."""

    id: str
    name: str
    owner: str
    """Name of the key that registered it."""
    readers: tuple[str, ...]
    created: float
    used: float
    files: int
    bytes: int


class Catalogue:
    """Rows by repository. Every call is a transaction of its own; any thread or process may call.

    Nothing here decides who may do what: that is the store's.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        # Made by us first: SQLite would make it readable by others.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        with self._transaction(writes=True) as rows:
            rows.executescript(_TABLES)

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._file, timeout=_WAIT_S, isolation_level=None)
        try:
            connection.execute("pragma foreign_keys = on")
            # What is deleted is overwritten: names of files do not stay in the file.
            connection.execute("pragma secure_delete = on")
            connection.execute("pragma synchronous = normal")
            # Others read until a large change is committed.
            connection.execute("pragma cache_spill = off")
            connection.execute("begin immediate" if writes else "begin")
            yield connection
            if connection.in_transaction:
                connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise
        finally:
            connection.close()

    def add(self, record: RepositoryRecord, most: int) -> bool:
        """A new repository; False when its owner has ``most`` already."""
        with self._transaction(writes=True) as rows:
            query = "select count(*) from repositories where owner = ?"
            if rows.execute(query, (record.owner,)).fetchone()[0] >= most:
                return False
            rows.execute(
                "insert into repositories values(?, ?, ?, ?, ?)",
                (record.id, record.name, record.owner, record.created, record.used),
            )
            return True

    def find(self, repository: str) -> RepositoryRecord | None:
        """The repository of an id."""
        with self._transaction() as rows:
            found = _records(rows, "id = ?", (repository,))
        return found[0] if found else None

    def readable(self, key: str) -> list[RepositoryRecord]:
        """The repositories that a key owns or may read, the oldest first."""
        condition = "owner = ? or id in (select repository from readers where key = ?)"
        with self._transaction() as rows:
            return _records(rows, condition, (key, key))

    def unused_since(self, time: float) -> list[RepositoryRecord]:
        """The repositories that nobody used since."""
        with self._transaction() as rows:
            return _records(rows, "used < ?", (time,))

    def ids(self) -> set[str]:
        """The ids of all repositories."""
        with self._transaction() as rows:
            return {row[0] for row in rows.execute("select id from repositories")}

    def touch(self, repository: str, now: float) -> None:
        """The repository is used now."""
        with self._transaction(writes=True) as rows:
            rows.execute("update repositories set used = ? where id = ?", (now, repository))

    def delete(self, repository: str) -> None:
        """Forget a repository."""
        with self._transaction(writes=True) as rows:
            rows.execute("delete from repositories where id = ?", (repository,))

    def set_readers(self, repository: str, keys: list[str]) -> None:
        """Exactly these keys may read a repository, besides its owner."""
        with self._transaction(writes=True) as rows:
            rows.execute("delete from readers where repository = ?", (repository,))
            rows.executemany(
                "insert into readers values(?, ?)", [(repository, key) for key in keys]
            )

    # Files and their contents

    def files(self, repository: str) -> dict[str, str]:
        """Hash of what each file is to hold, by path."""
        with self._transaction() as rows:
            query = "select path, hash from files where repository = ?"
            return dict(rows.execute(query, (repository,)).fetchall())

    def known(self, repository: str, paths: list[str]) -> set[str]:
        """Those of some paths that the repository has."""
        query = "select 1 from files where repository = ? and path = ?"
        with self._transaction() as rows:
            return {path for path in paths if rows.execute(query, (repository, path)).fetchone()}

    def change_files(self, repository: str, files: dict[str, str | None]) -> None:
        """Some files hold something else, or are gone (None)."""
        gone = [(repository, path) for path, digest in files.items() if digest is None]
        given = [(repository, path, digest) for path, digest in files.items() if digest is not None]
        with self._transaction(writes=True) as rows:
            rows.executemany("delete from files where repository = ? and path = ?", gone)
            rows.executemany("insert or replace into files values(?, ?, ?)", given)

    def missing(self, repository: str) -> list[str]:
        """Hashes of contents that files are to hold and that this repository does not have."""
        query = (
            "select distinct hash from files where repository = ?1 and hash not in "
            "(select hash from blobs where repository = ?1) order by hash"
        )
        with self._transaction() as rows:
            return [row[0] for row in rows.execute(query, (repository,))]

    def wanted(self, repository: str, digest: str) -> bool:
        """Whether some file is to hold a content that is not there yet."""
        query = (
            "select 1 from files where repository = ?1 and hash = ?2 and not exists "
            "(select 1 from blobs where repository = ?1 and hash = ?2) limit 1"
        )
        with self._transaction() as rows:
            return rows.execute(query, (repository, digest)).fetchone() is not None

    def paths_of(self, repository: str, digest: str) -> list[str]:
        """Files that are to hold a content."""
        query = "select path from files where repository = ? and hash = ?"
        with self._transaction() as rows:
            return [row[0] for row in rows.execute(query, (repository, digest))]

    def unwanted(self, repository: str) -> list[str]:
        """Hashes of contents that no file holds any more."""
        query = (
            "select hash from blobs where repository = ?1 and hash not in "
            "(select hash from files where repository = ?1)"
        )
        with self._transaction() as rows:
            return [row[0] for row in rows.execute(query, (repository,))]

    def add_blob(self, repository: str, digest: str, size: int, most: int) -> bool:
        """A content is there; False when its owner would keep more than ``most`` bytes."""
        query = (
            "select coalesce(sum(size), 0) from blobs join repositories on repository = id "
            "where owner = (select owner from repositories where id = ?)"
        )
        with self._transaction(writes=True) as rows:
            if rows.execute(query, (repository,)).fetchone()[0] + size > most:
                return False
            rows.execute("insert or replace into blobs values(?, ?, ?)", (repository, digest, size))
            return True

    def drop_blobs(self, repository: str, digests: list[str]) -> None:
        """Contents are gone."""
        with self._transaction(writes=True) as rows:
            rows.executemany(
                "delete from blobs where repository = ? and hash = ?",
                [(repository, digest) for digest in digests],
            )


def _records(
    rows: sqlite3.Connection, condition: str, values: tuple[object, ...]
) -> list[RepositoryRecord]:
    query = f"select id, name, owner, created, used from repositories where {condition}"
    return [
        RepositoryRecord(
            id=repository,
            name=name,
            owner=owner,
            readers=tuple(
                _column(rows, "select key from readers where repository = ?", repository)
            ),
            created=created,
            used=used,
            files=_column(rows, "select count(*) from files where repository = ?", repository)[0],
            bytes=_column(
                rows, "select coalesce(sum(size), 0) from blobs where repository = ?", repository
            )[0],
        )
        for repository, name, owner, created, used in rows.execute(
            f"{query} order by created, id", values
        ).fetchall()
    ]


def _column(rows: sqlite3.Connection, query: str, repository: str) -> list[Any]:
    return [row[0] for row in rows.execute(query, (repository,))]
