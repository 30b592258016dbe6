"""The SQLite database of repositories, stored beside their folders."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TABLES = """
begin immediate;
create table if not exists repositories(
    id text primary key, name text not null, owner text not null,
    created real not null, used real not null, bytes integer not null default 0);
create index if not exists owners on repositories(owner);
create table if not exists files(
    repository text not null references repositories(id) on delete cascade,
    path text not null, hash text not null, primary key(repository, path));
create index if not exists contents on files(repository, hash);
create table if not exists blobs(
    repository text not null references repositories(id) on delete cascade,
    hash text not null, size integer not null, primary key(repository, hash));
commit;
"""
_WAIT_S = 20.0


@dataclass(frozen=True, slots=True)
class RepositoryRecord:
    """One repository. Times in seconds since 1970; ``bytes`` of the files that are there."""

    id: str
    name: str
    owner: str
    """Name of the key that registered it."""
    created: float
    used: float
    files: int
    bytes: int


class Catalogue:
    """Rows by repository. Every call is a transaction of its own; any thread or process may call.
    Nothing here decides who may do what: that is the store's."""

    def __init__(self, file: Path) -> None:
        self._file = file
        # Made by us first: SQLite would make it readable by others.
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        self._of_thread = threading.local()
        self._connection().executescript(_TABLES)

    @contextmanager
    def _transaction(self, writes: bool = False) -> Iterator[sqlite3.Connection]:
        connection = self._connection()
        connection.execute("begin immediate" if writes else "begin")
        try:
            yield connection
            connection.execute("commit")
        except BaseException:
            if connection.in_transaction:
                connection.execute("rollback")
            raise

    def _connection(self) -> sqlite3.Connection:
        """One for each thread: to open one costs more than a question."""
        connection: sqlite3.Connection | None = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = sqlite3.connect(self._file, timeout=_WAIT_S, isolation_level=None)
            connection.execute("pragma foreign_keys = on")
            # What is deleted is overwritten: names of files do not stay in the file.
            connection.execute("pragma secure_delete = on")
            connection.execute("pragma synchronous = normal")
            # Others read until a large change is committed.
            connection.execute("pragma cache_spill = off")
            self._of_thread.connection = connection
        return connection

    def add(self, record: RepositoryRecord, most: int) -> bool:
        """A new repository; False when its owner has ``most`` already."""
        with self._transaction(writes=True) as rows:
            query = "select count(*) from repositories where owner = ?"
            if rows.execute(query, (record.owner,)).fetchone()[0] >= most:
                return False
            rows.execute(
                "insert into repositories values(?, ?, ?, ?, ?, 0)",
                (record.id, record.name, record.owner, record.created, record.used),
            )
            return True

    def find(self, repository: str) -> RepositoryRecord | None:
        """The repository of an id."""
        with self._transaction() as rows:
            found = _records(rows, "id = ?", (repository,))
        return found[0] if found else None

    def owner_and_use(self, repository: str) -> tuple[str, float] | None:
        """Whose a repository is, and when it was used last; None where there is none."""
        query = "select owner, used from repositories where id = ?"
        with self._transaction() as rows:
            found: tuple[str, float] | None = rows.execute(query, (repository,)).fetchone()
        return found

    def owned(self, key: str) -> list[RepositoryRecord]:
        """The repositories of a key, the oldest first."""
        with self._transaction() as rows:
            return _records(rows, "owner = ?", (key,))

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

    def paths_of(self, repository: str, digests: Iterable[str]) -> list[tuple[str, str]]:
        """Files that are to hold some contents, each with the hash."""
        query = "select path, hash from files where repository = ? and hash = ?"
        with self._transaction() as rows:
            return [
                (path, digest)
                for one in digests
                for path, digest in rows.execute(query, (repository, one))
            ]

    def unwanted(self, repository: str) -> list[str]:
        """Hashes of contents that no file holds any more."""
        query = (
            "select hash from blobs where repository = ?1 and hash not in "
            "(select hash from files where repository = ?1)"
        )
        with self._transaction() as rows:
            return [row[0] for row in rows.execute(query, (repository,))]

    def add_blobs(self, repository: str, sizes: dict[str, int], most: int) -> bool:
        """Contents are there, by hash; False when their owner would keep more than ``most`` bytes,
        and then none counts."""
        query = (
            "select coalesce(sum(bytes), 0) from repositories "
            "where owner = (select owner from repositories where id = ?)"
        )
        size = sum(sizes.values())
        with self._transaction(writes=True) as rows:
            if rows.execute(query, (repository,)).fetchone()[0] + size > most:
                return False
            rows.executemany(
                "insert into blobs values(?, ?, ?)",
                [(repository, digest, one) for digest, one in sizes.items()],
            )
            rows.execute(
                "update repositories set bytes = bytes + ? where id = ?", (size, repository)
            )
            return True

    def drop_blobs(self, repository: str, digests: list[str]) -> None:
        """Contents are gone."""
        with self._transaction(writes=True) as rows:
            rows.executemany(
                "delete from blobs where repository = ? and hash = ?",
                [(repository, digest) for digest in digests],
            )
            rows.execute(
                "update repositories set bytes = "
                "(select coalesce(sum(size), 0) from blobs where repository = ?1) where id = ?1",
                (repository,),
            )


def _records(
    rows: sqlite3.Connection, condition: str, values: tuple[object, ...]
) -> list[RepositoryRecord]:
    query = (
        "select id, name, owner, created, used, "
        "(select count(*) from files where repository = id), bytes "
        f"from repositories where {condition} order by created, id"
    )
    return [RepositoryRecord(*row) for row in rows.execute(query, values)]
