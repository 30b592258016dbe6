"""HTTP routes of the repositories, below ``/redraft/v1/repositories``. Protocol version 1.

The README beside this file has the bodies and answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from lsp_server.shared.contract.codec import Unreadable, read
from lsp_server.shared.contract.server_routes import REPOSITORIES
from lsp_server.team.http_server.bodies import read_body, read_json
from lsp_server.team.http_server.errors import RequestRefused, invalid
from lsp_server.team.repositories.buffers import BufferEdit
from lsp_server.team.repositories.catalogue import RepositoryRecord
from lsp_server.team.repositories.errors import RepositoryError
from lsp_server.team.repositories.hosting import HostedRepositories
from lsp_server.team.repositories.store import UploadState

SMALL_BODY_BYTES = 256 << 10
BATCH_BODY_BYTES = 16 << 20
BUFFERS_BODY_BYTES = 16 << 20

Result = TypeVar("Result")
Body = TypeVar("Body")


@dataclass(frozen=True, slots=True)
class _Named:
    name: str


@dataclass(frozen=True, slots=True)
class _Files:
    files: dict[str, str | None]
    """SHA-256 by path."""


@dataclass(frozen=True, slots=True)
class _Contents:
    contents: dict[str, str]
    """Texts by SHA-256."""


@dataclass(frozen=True, slots=True)
class _Buffers:
    edits: list[BufferEdit] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


class RepositoryRoutes:
    """The routes of one server's repositories."""

    def __init__(self, hosted: HostedRepositories) -> None:
        self._hosted = hosted
        self._limits = hosted.store.limits

    @property
    def routes(self) -> list[BaseRoute]:
        """All of them."""
        one = f"{REPOSITORIES}/{{repository}}"
        table: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("POST", REPOSITORIES, self.register),
            ("GET", REPOSITORIES, self.owned),
            ("GET", one, self.show),
            ("DELETE", one, self.delete),
            ("PUT", f"{one}/manifest", self.set_files),
            ("PATCH", f"{one}/manifest", self.change_files),
            ("PUT", f"{one}/blobs/{{digest}}", self.add_content),
            ("POST", f"{one}/blobs", self.add_contents),
            ("PATCH", f"{one}/buffers/{{session}}", self.change_buffers),
            ("DELETE", f"{one}/buffers/{{session}}", self.close_session),
        ]
        by_path: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
        for method, path, handler in table:
            by_path.setdefault(path, {})[method] = handler
        return [Route(path, _with_errors(by), methods=list(by)) for path, by in by_path.items()]

    async def register(self, request: Request) -> Response:
        """A new repository: nothing is asked for but a name."""
        body = await _body(request, _Named, SMALL_BODY_BYTES)
        record = await self._in_thread(self._hosted.store.register, _holder(request), body.name)
        return JSONResponse(self._shown(record), 201)

    async def owned(self, request: Request) -> Response:
        """The repositories of this key."""
        records = await self._in_thread(self._hosted.store.owned, _holder(request))
        return JSONResponse({"repositories": [self._shown(one) for one in records]})

    async def show(self, request: Request) -> Response:
        """One repository: what is missing of it, and how far its index is."""
        holder, repository = _holder(request), _named(request)
        record = await self._in_thread(self._hosted.store.read, holder, repository)
        missing = await self._in_thread(self._hosted.store.missing, repository)
        self._hosted.use(repository)
        state = self._hosted.index_state(repository)
        index = {"state": state.state, "files": state.files} if state is not None else None
        return JSONResponse({**self._shown(record), "missing": len(missing), "index": index})

    async def delete(self, request: Request) -> Response:
        """Delete a repository and everything that was made of it."""
        await self._hosted.delete(_named(request), _holder(request))
        return Response(status_code=204)

    async def set_files(self, request: Request) -> Response:
        """It consists of these files; which contents are to be sent is the answer."""
        files = await self._files(request)
        if None in files.values():
            raise invalid("a list of all files must have the hash of each")
        hashes = {path: digest for path, digest in files.items() if digest is not None}
        return await self._brought(request, self._hosted.store.set_files, hashes)

    async def change_files(self, request: Request) -> Response:
        """Some files changed, came, or went (null)."""
        files = await self._files(request)
        return await self._brought(request, self._hosted.store.change_files, files)

    async def _files(self, request: Request) -> dict[str, str | None]:
        body = await _body(request, _Files, self._limits.manifest_bytes)
        try:
            "".join(body.files).encode()
        except UnicodeEncodeError:
            raise invalid("a path is not valid Unicode") from None
        return body.files

    async def _brought(
        self, request: Request, work: Callable[[str, str, Any], UploadState], files: Any
    ) -> Response:
        repository = _named(request)
        state = await self._in_thread(work, _holder(request), repository, files)
        self._hosted.refresh(repository, state.changed)
        return JSONResponse({"missing": state.missing, "refused": state.refused})

    async def add_content(self, request: Request) -> Response:
        """The content of a file, under its SHA-256."""
        data = await read_body(request, self._limits.file_bytes)
        await self._in_thread(
            self._hosted.store.add_content,
            _holder(request),
            _named(request),
            request.path_params["digest"],
            data,
        )
        self._hosted.use(_named(request))
        return Response(status_code=204)

    async def add_contents(self, request: Request) -> Response:
        """The contents of several files, as text by SHA-256; which were refused is the answer."""
        contents = (await _body(request, _Contents, BATCH_BODY_BYTES)).contents
        holder, repository = _holder(request), _named(request)
        data = {digest: one.encode("utf-8", "surrogatepass") for digest, one in contents.items()}
        refused = await self._in_thread(self._hosted.store.add_contents, holder, repository, data)
        self._hosted.use(repository)
        return JSONResponse({"refused": refused})

    async def change_buffers(self, request: Request) -> Response:
        """Open documents of one editor changed."""
        body = await _body(request, _Buffers, BUFFERS_BODY_BYTES)
        self._hosted.change_buffers(
            _named(request),
            request.path_params["session"],
            _holder(request),
            body.edits,
            body.closed,
        )
        return Response(status_code=204)

    async def close_session(self, request: Request) -> Response:
        """An editor left."""
        session = request.path_params["session"]
        self._hosted.close_session(_named(request), session, _holder(request))
        return Response(status_code=204)

    async def _in_thread(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Disks and databases take their time, and others are answered meanwhile."""
        return await asyncio.to_thread(work, *arguments)

    @staticmethod
    def _shown(record: RepositoryRecord) -> dict[str, Any]:
        return {
            "id": record.id,
            "name": record.name,
            "files": record.files,
            "bytes": record.bytes,
            "created": int(record.created),
            "used": int(record.used),
        }


def _with_errors(
    by_method: dict[str, Callable[[Request], Awaitable[Response]]],
) -> Callable[[Request], Awaitable[Response]]:
    """The handler of a path. Its errors are told in the server's shape."""

    async def handle(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        try:
            return await by_method[method](request)
        except RepositoryError as error:
            raise RequestRefused(error.status, str(error), error.code) from None

    return handle


def _holder(request: Request) -> str:
    return str(request.scope["holder"])


def _named(request: Request) -> str:
    return str(request.path_params["repository"])


async def _body(request: Request, kind: type[Body], most_bytes: int) -> Body:
    """What a request has to say. Raises RequestRefused."""
    try:
        return read(kind, await read_json(request, most_bytes))
    except Unreadable as error:
        raise invalid(str(error)) from None
