"""A workspace and its repository at a server: what is sent, what never is, and when it ends."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from planted_secrets import token

pytest.importorskip("starlette", reason="the extra server is not installed")

from lsp_server.editor.remote.sharing import workspace_sync
from lsp_server.editor.remote.sharing.shared_workspaces import SharedWorkspaces, SharingOptions
from lsp_server.editor.remote.sharing.sharing_answers import SharingAnswers
from lsp_server.shared.settings import ServerSettings
from lsp_server.team.repositories.limits import RepositoryLimits
from tests.server.server_stand_in import served
from tests.server.team.repositories.served import Served, serving

OPTIONS = SharingOptions((), 1 << 20)
PLANTED = token(random.Random(11))[1]
SAVED = "def price_of(item):\n    return item.saved_price\n"
TYPED = "def price_of(item):\n    return item.typed_price\n"
CONTEXT = "def price_of(item):\n    return item"


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(workspace_sync, "GATHER_S", 0.1)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with files that are sent, ignored ones, and secrets."""
    folder = tmp_path / "work"
    texts = {
        "src/a.py": SAVED,
        "src/b.py": "b = 2\n",
        ".gitignore": "hidden_notes/\n",
        "hidden_notes/plan.py": "the_ignored_marker = 1\n",
        "src/.env": "the_named_secret = 1\n",
        "src/key.py": f"key = '{PLANTED}'\n",
        "book.ipynb": json.dumps(
            {"cells": [{"source": ["cell = 1\n"], "outputs": ["the_output_marker"]}]}
        ),
        "logo.png": "no code",
        "odd:name.py": "a_name_for_one_system = 1\n",
    }
    for path, text in texts.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return folder


SENT = {".gitignore", "src/a.py", "src/b.py", "book.ipynb"}


class Shared:
    """One machine's shared workspaces, and the server that they are sent to."""

    def __init__(self, server: Served, url: str, answers: SharingAnswers) -> None:
        self.server = server
        self.url = url
        self.answers = answers
        self.workspaces = SharedWorkspaces(ServerSettings(url=url, key="key-of-ann"), answers)

    def at_server(self) -> dict[str, bytes]:
        """The files that the server has of the machine's only repository."""
        records = self.server.store.owned("ann")
        root = self.server.store.files_folder(records[0].id)
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }

    def state(self) -> str:
        return str(self.workspaces.status()[0]["state"])


async def until(condition: Callable[[], bool], what: str) -> None:
    for _ in range(1200):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"never came: {what}")


@asynccontextmanager
async def sharing(tmp_path: Path, limits: RepositoryLimits | None = None) -> AsyncIterator[Shared]:
    async with serving(tmp_path / "server", limits) as server, served(server.app) as url:
        shared = Shared(server, url, SharingAnswers(tmp_path / "answers.json"))
        try:
            yield shared
        finally:
            await shared.workspaces.close()


@pytest.mark.asyncio
async def test_nothing_is_sent_before_the_user_allows_it(tmp_path: Path, work: Path) -> None:
    async with sharing(tmp_path) as shared:
        workspaces, folder = shared.workspaces, str(work)
        workspaces.use(folder, OPTIONS)
        workspaces.set_buffer(folder, "src/a.py", lambda: TYPED)
        assert workspaces.to_ask(folder)
        assert not workspaces.to_ask(folder)
        await asyncio.sleep(0.5)
        assert shared.server.store.owned("ann") == []
        assert workspaces.workspace(folder) == ""
        workspaces.refuse(folder)
        again = SharedWorkspaces(
            ServerSettings(url=shared.url, key="key-of-ann"),
            SharingAnswers(tmp_path / "answers.json"),
        )
        again.use(folder, OPTIONS)
        assert not again.to_ask(folder)
        assert again.status() == []


@pytest.mark.asyncio
async def test_what_is_indexed_here_is_sent_and_nothing_else(tmp_path: Path, work: Path) -> None:
    async with sharing(tmp_path) as shared:
        folder = str(work)
        shared.workspaces.use(folder, OPTIONS)
        shared.workspaces.allow(folder)
        await until(lambda: shared.state() == "ready", "ready")
        assert shared.at_server().keys() == SENT
        kept = b"".join(
            path.read_bytes() for path in (tmp_path / "server").rglob("*") if path.is_file()
        )
        for text in ("ignored_marker", "hidden_notes/plan", "named_secret", PLANTED, "output_mark"):
            assert text.encode() not in kept
        assert str(tmp_path).encode() not in kept
        repository = shared.workspaces.status()[0]["repository"]
        await shared.server.indexed("ann", repository, len(SENT))
        assert "saved_price" in shared.server.found("ann", repository, CONTEXT)
        assert "cell" in shared.at_server()["book.ipynb"].decode()


@pytest.mark.asyncio
async def test_changes_follow_and_only_they_are_sent(tmp_path: Path, work: Path) -> None:
    async with sharing(tmp_path) as shared:
        folder = str(work)
        shared.workspaces.use(folder, OPTIONS)
        shared.workspaces.allow(folder)
        await until(lambda: shared.state() == "ready", "ready")
        (work / "src" / "a.py").write_text(TYPED)
        (work / "src" / "b.py").unlink()
        (work / "new").mkdir()
        (work / "new" / "c.py").write_text("c = 3\n")
        wanted = (SENT - {"src/b.py"}) | {"new/c.py"}
        await until(lambda: shared.at_server().keys() == wanted, "the new files")
        await until(lambda: shared.at_server()["src/a.py"] == TYPED.encode(), "the new text")
        (work / ".gitignore").write_text("hidden_notes/\nnew/\n")
        await until(lambda: "new/c.py" not in shared.at_server(), "the ignored file's end")


@pytest.mark.asyncio
async def test_open_documents_are_drafted_from_as_they_are(tmp_path: Path, work: Path) -> None:
    async with sharing(tmp_path) as shared:
        folder, text = str(work), [SAVED]
        shared.workspaces.use(folder, OPTIONS)
        shared.workspaces.allow(folder)
        shared.workspaces.set_buffer(folder, "src/a.py", lambda: text[0])
        shared.workspaces.set_buffer(folder, "hidden_notes/plan.py", lambda: "")
        await until(lambda: shared.workspaces.workspace(folder) != "", "ready")
        repository, _, session = shared.workspaces.workspace(folder).partition(".")
        await shared.server.indexed("ann", repository, len(SENT))

        def found() -> str:
            return shared.server.found("ann", repository, CONTEXT, session)

        text[0] = TYPED
        shared.workspaces.set_buffer(folder, "src/a.py", lambda: text[0])
        await until(lambda: "typed_price" in found(), "the edit")
        views = list(shared.server.hosted._views.values())
        assert [set(view.buffers.texts) for view in views] == [{"src/a.py"}]
        # The server forgets what nobody used for long; it is sent whole with the next edit.
        shared.server.hosted.close_session(repository, session, "ann")
        assert "typed_price" not in found()
        text[0] = TYPED.replace("typed", "later")
        shared.workspaces.set_buffer(folder, "src/a.py", lambda: text[0])
        await until(lambda: "later_price" in found(), "the whole text")
        shared.workspaces.close_buffer(folder, "src/a.py")
        await until(lambda: "saved_price" in found(), "the file")


@pytest.mark.asyncio
async def test_a_repository_is_found_again_and_deleted_on_request(
    tmp_path: Path, work: Path
) -> None:
    async with sharing(tmp_path) as shared:
        folder = str(work)
        shared.workspaces.use(folder, OPTIONS)
        shared.workspaces.allow(folder)
        await until(lambda: shared.state() == "ready", "ready")
        first = shared.workspaces.status()[0]["repository"]
        shared.workspaces.close_workspace(folder)
        shared.workspaces.use(folder, OPTIONS)
        await until(lambda: shared.state() == "ready", "ready again")
        assert shared.workspaces.status()[0]["repository"] == first
        assert await shared.workspaces.unregister(folder)
        assert shared.server.store.owned("ann") == []
        assert shared.workspaces.workspace(folder) == ""
        assert not shared.workspaces.to_ask(folder)


@pytest.mark.asyncio
async def test_a_repository_that_ended_at_the_server_is_asked_about_again(
    tmp_path: Path, work: Path
) -> None:
    async with sharing(tmp_path) as shared:
        folder = str(work)
        shared.workspaces.use(folder, OPTIONS)
        shared.workspaces.allow(folder)
        await until(lambda: shared.state() == "ready", "ready")
        shared.server.store.delete("ann", shared.workspaces.status()[0]["repository"])
        (work / "src" / "a.py").write_text(TYPED)
        await until(lambda: shared.workspaces.status() == [], "the end of the work")
        assert shared.server.store.owned("ann") == []
        assert shared.workspaces.to_ask(folder)


@pytest.mark.asyncio
async def test_a_full_server_is_told_of_and_nothing_fails(tmp_path: Path, work: Path) -> None:
    async with sharing(tmp_path, RepositoryLimits(bytes=40)) as shared:
        folder = str(work)
        shared.workspaces.use(folder, OPTIONS)
        shared.workspaces.allow(folder)
        await until(lambda: shared.state() == "waiting", "waiting")
        assert "40 bytes" in shared.workspaces.status()[0]["message"]
        assert shared.workspaces.workspace(folder) == ""


@pytest.mark.asyncio
async def test_a_server_that_does_not_answer_is_tried_again(tmp_path: Path, work: Path) -> None:
    async with serving(tmp_path / "server") as server:
        async with served(server.app) as url:
            port = int(url.rpartition(":")[2])
        shared = Shared(server, url, SharingAnswers())
        shared.workspaces.use(str(work), OPTIONS)
        shared.workspaces.allow(str(work))
        await until(lambda: shared.state() == "waiting", "waiting")
        async with served(server.app, port):
            await until(lambda: shared.state() == "ready", "ready")
            assert shared.at_server().keys() == SENT
            await shared.workspaces.close()
