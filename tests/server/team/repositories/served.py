"""A server with repositories that computes nothing, and clients of three keys."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import httpx2
from small_model import SMALL_MODEL
from tokenizers import Tokenizer

from lsp_server.engine.client import EngineClient
from lsp_server.engine.workspaces import WorkspaceIndexes
from lsp_server.shared.contract.calls import Calls
from lsp_server.shared.contract.notes import (
    CloseBuffer,
    CloseWorkspace,
    Note,
    OpenWorkspace,
    ReloadIndex,
)
from lsp_server.shared.contract.options import EngineOptions
from lsp_server.team.http_server.application import app
from lsp_server.team.http_server.keys import Keys
from lsp_server.team.http_server.limits import RequestLimits
from lsp_server.team.repositories.buffers import edit_between
from lsp_server.team.repositories.hosting import HostedRepositories
from lsp_server.team.repositories.limits import RepositoryLimits
from lsp_server.team.repositories.routes import RepositoryRoutes
from lsp_server.team.repositories.store import RepositoryStore

ROOT = "/redraft/v1"
DECODER = Tokenizer.from_file(str(SMALL_MODEL / "tokenizer.json"))
KEYS = ("ann", "bob", "eve")


class LookupEngine:
    """What an engine process knows of workspaces, but for its model: the same indexes, here."""

    def __init__(self) -> None:
        self.options = EngineOptions(path=str(SMALL_MODEL), common=False)
        self.calls = Calls()
        self.indexes = WorkspaceIndexes(SMALL_MODEL, common=False)

    def tell(self, note: Note) -> None:
        if isinstance(note, OpenWorkspace):
            self.indexes.open(note.folder, note.store)
        elif isinstance(note, ReloadIndex):
            self.indexes.reload(note.folder, note.store)
        elif isinstance(note, CloseWorkspace):
            self.indexes.forget(note.folder)
        elif isinstance(note, CloseBuffer):
            self.indexes.close_buffer(note.folder, note.path)

    def set_buffer(self, folder: str, path: str, read: Callable[[], str]) -> None:
        self.indexes.set_buffer(folder, path, read())

    def follows(self, workspace: str, text: str) -> str:
        """All that a lookup in a workspace finds after a text."""
        tokenizer = self.indexes.tokenizer
        snapshot = self.indexes.snapshot(workspace)
        assert snapshot is not None
        rows = snapshot.lookup(tokenizer.encode([text])[0], max_match=16, limit=64, depth=32)
        return "\n".join(DECODER.decode(row[row >= 0].tolist()) for row in rows.tokens)


class Served:
    """A server that computes nothing, and clients of three keys."""

    def __init__(self, folder: Path, limits: RepositoryLimits) -> None:
        self.engine = LookupEngine()
        self.now = 0.0
        self.store = RepositoryStore(folder / "state", limits)
        engine = cast(EngineClient, self.engine)
        self.hosted = HostedRepositories(self.store, engine, lambda: self.now)
        keys = folder / "keys"
        keys.write_text("".join(f"{name} key-of-{name}\n" for name in KEYS))
        self.app = app(
            engine,
            Keys(keys),
            RequestLimits(1e9, 1000),
            repositories=self.hosted,
            more_routes=RepositoryRoutes(self.hosted).routes,
        )
        self.clients = {name: self._client(name) for name in KEYS}

    def _client(self, name: str) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=self.app),
            base_url=f"http://localhost{ROOT}",
            headers={"Authorization": f"Bearer key-of-{name}"},
        )

    async def register(self, name: str, texts: dict[str, str]) -> str:
        """A repository of a key, whose index is ready."""
        made = await self.clients[name].post("/repositories", json={"name": "shop"})
        assert made.status_code == 201
        repository = str(made.json()["id"])
        await self.upload(name, repository, texts)
        return repository

    async def upload(self, name: str, repository: str, texts: dict[str, str]) -> None:
        by_hash = {hash_of(text): text for text in texts.values()}
        files = {path: hash_of(text) for path, text in texts.items()}
        client = self.clients[name]
        state = await client.put(f"/repositories/{repository}/manifest", json={"files": files})
        assert state.status_code == 200
        for digest in state.json()["missing"]:
            sent = await client.put(
                f"/repositories/{repository}/blobs/{digest}",
                content=gzip.compress(by_hash[digest].encode()),
                headers={"Content-Encoding": "gzip"},
            )
            assert sent.status_code == 204
        await self.indexed(name, repository, len(texts))

    async def indexed(self, name: str, repository: str, files: int) -> None:
        for _ in range(1200):
            shown = (await self.clients[name].get(f"/repositories/{repository}")).json()
            if shown["index"]["state"] == "ready" and shown["index"]["files"] == files:
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"never indexed: {shown}")

    def view(self, name: str, repository: str, session: str = "") -> str | None:
        named = f"{repository}.{session}" if session else repository
        return self.hosted.workspace(named, name)

    def found(self, name: str, repository: str, text: str, session: str = "") -> str:
        """What drafts of a key may be made of."""
        workspace = self.view(name, repository, session)
        assert workspace is not None
        return self.engine.follows(workspace, text)

    async def type(
        self, name: str, repository: str, session: str, path: str, old: str, new: str
    ) -> int:
        edit = edit_between(path, old, new) if old else None
        sent = {
            "path": path,
            "start": edit.start if edit else 0,
            "stop": edit.stop if edit else 0,
            "text": edit.text if edit else new,
            "base": edit.base if edit else "",
        }
        answer = await self.clients[name].patch(
            f"/repositories/{repository}/buffers/{session}", json={"edits": [sent]}
        )
        return answer.status_code


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@asynccontextmanager
async def serving(folder: Path, limits: RepositoryLimits | None = None) -> AsyncIterator[Served]:
    served = Served(folder, limits or RepositoryLimits())
    try:
        yield served
    finally:
        await served.hosted.close()
        for client in served.clients.values():
            await client.aclose()
