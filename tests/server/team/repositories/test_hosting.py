"""Repositories in a running server, over HTTP: whose text is found where, and who is told what."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
from planted_secrets import token
from seeds import Amount

pytest.importorskip("starlette", reason="the extra server is not installed")

from lsp_server.team.repositories.buffers import edit_between, text_hash
from lsp_server.team.repositories.limits import RepositoryLimits
from lsp_server.team.repositories.store import RepositoryStore
from repo_index.store import workspace_store
from tests.server.team.repositories.served import hash_of, serving


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))


def marked(team: str, count: int) -> dict[str, str]:
    """Files in which the same contexts go on in a way of a team's own."""
    return {
        f"part_{start // 50}.py": "".join(
            f"def load_case_{number}(path):\n    return read_{team}{number}_marker(path)\n\n"
            for number in range(start, min(start + 50, count))
        )
        for start in range(0, count, 50)
    }


@pytest.mark.asyncio
async def test_drafts_hold_no_marker_of_another_team(tmp_path: Path, amount: Amount) -> None:
    count = amount(100, 10_000)
    async with serving(tmp_path) as served:
        teams = {"ann": "alder", "bob": "birch"}
        ids = {name: await served.register(name, marked(teams[name], count)) for name in teams}
        own = 0
        for number in range(count):
            context = f"def load_case_{number}(path):\n    return"
            for name, team in teams.items():
                found = served.found(name, ids[name], context)
                others = [other for other in teams.values() if other != team and other in found]
                assert others == [], (name, number)
                own += f"{team}{number}_marker" in found
        # The lookups find what is there to be found.
        assert own > 0.9 * 2 * count


SAVED = "def price_of(item):\n    return item.saved_price\n"
TYPED = "def price_of(item):\n    return item.typed_price\n"
CONTEXT = "def price_of(item):\n    return item"


@pytest.mark.asyncio
async def test_an_open_document_counts_for_the_editor_that_has_it_open(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"a.py": SAVED})
        assert await served.type("ann", ours, "one", "a.py", "", SAVED) == 204
        assert await served.type("ann", ours, "one", "a.py", SAVED, TYPED) == 204
        assert "typed_price" in served.found("ann", ours, CONTEXT, "one")
        assert "saved_price" not in served.found("ann", ours, CONTEXT, "one")
        for session in ("two", ""):
            assert "typed_price" not in served.found("ann", ours, CONTEXT, session)
            assert "saved_price" in served.found("ann", ours, CONTEXT, session)
        await served.upload("ann", ours, {"a.py": TYPED})
        for _ in range(1200):
            if "typed_price" in served.found("ann", ours, CONTEXT, "two"):
                break
            await asyncio.sleep(0.05)
        assert "saved_price" not in served.found("ann", ours, CONTEXT, "two")
        assert (
            await served.clients["ann"].delete(f"/repositories/{ours}/buffers/one")
        ).status_code == 204


@pytest.mark.asyncio
async def test_buffers_follow_their_edits_or_are_asked_for_whole(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"a.py": SAVED})
        assert await served.type("ann", ours, "one", "a.py", "what it never was", TYPED) == 409
        assert await served.type("ann", ours, "one", "a.py", "", SAVED) == 204
        assert await served.type("ann", ours, "one", "../a.py", "", SAVED) == 400
        assert await served.type("ann", ours, "one", ".env", "", SAVED) == 400
        assert await served.type("ann", ours, "s.x", "a.py", "", SAVED) == 400
        secret = f"{CONTEXT}key = '{token(random.Random(3))[1]}'\n"
        assert await served.type("ann", ours, "one", "a.py", SAVED, secret) == 204
        assert "key" not in served.found("ann", ours, CONTEXT, "one")


def test_the_smallest_edit_makes_one_text_of_another() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(300):
        old, new = ("".join(chance.choices("ab\n", k=chance.randrange(12))) for _ in range(2))
        edit = edit_between("a", old, new)
        assert old[: edit.start] + edit.text + old[edit.stop :] == new
        assert edit.base == text_hash(old)
    assert edit_between("a", "one two three", "one 2 three").text == "2"


@pytest.mark.asyncio
async def test_a_foreign_key_finds_no_repository(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"a.py": SAVED})
        eve = served.clients["eve"]
        digest = hash_of(SAVED)

        async def answers(repository: str) -> list[tuple[int, Any]]:
            made = [
                await eve.get(f"/repositories/{repository}"),
                await eve.delete(f"/repositories/{repository}"),
                await eve.put(
                    f"/repositories/{repository}/manifest", json={"files": {"a.py": digest}}
                ),
                await eve.patch(
                    f"/repositories/{repository}/manifest", json={"files": {"a.py": None}}
                ),
                await eve.put(f"/repositories/{repository}/blobs/{digest}", content=SAVED.encode()),
                await eve.patch(
                    f"/repositories/{repository}/buffers/one", json={"closed": ["a.py"]}
                ),
                await eve.delete(f"/repositories/{repository}/buffers/one"),
            ]
            return [(one.status_code, one.json()) for one in made]

        foreign, unknown = await answers(ours), await answers("0" * 32)
        assert foreign == unknown
        assert {status for status, _ in foreign} == {404}
        assert served.view("eve", ours) is None
        assert (await eve.get("/repositories")).json() == {"repositories": []}


@pytest.mark.asyncio
async def test_nothing_is_answered_without_a_key(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"a.py": SAVED})
        for headers in ({"Authorization": "Bearer other"}, {"Authorization": ""}):
            answer = await served.clients["ann"].get(f"/repositories/{ours}", headers=headers)
            assert answer.status_code == 401


@pytest.mark.asyncio
async def test_whether_a_content_exists_is_not_told_across_repositories(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.register("ann", {"a.py": SAVED})
        made = await served.clients["eve"].post("/repositories", json={"name": "guess"})
        guess = await served.clients["eve"].put(
            f"/repositories/{made.json()['id']}/manifest", json={"files": {"a.py": hash_of(SAVED)}}
        )
        assert guess.json() == {"missing": [hash_of(SAVED)], "refused": {}}


@pytest.mark.asyncio
async def test_what_is_deleted_is_gone_from_disk_and_index(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"plans/a.py": SAVED})
        assert "saved_price" in served.found("ann", ours, CONTEXT)
        workspace, folder = served.view("ann", ours), served.store.files_folder(ours)
        index = workspace_store(folder, served.engine.indexes.tokenizer.sha256)
        assert any(index.iterdir())
        assert (await served.clients["ann"].delete(f"/repositories/{ours}")).status_code == 204
        assert served.view("ann", ours) is None
        assert workspace not in served.engine.indexes.folders
        assert not index.parent.exists()
        left = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path for path in left if b"saved_price" in path.read_bytes()] == []
        assert [path for path in left if b"plans" in path.read_bytes()] == []


@pytest.mark.asyncio
async def test_what_another_process_deleted_is_let_go(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"a.py": SAVED})
        workspace = served.view("ann", ours)
        RepositoryStore(tmp_path / "state").delete("ann", ours)
        await served.hosted.let_go()
        assert workspace not in served.engine.indexes.folders
        served.now += 10
        assert served.view("ann", ours) is None


@pytest.mark.asyncio
async def test_idle_editors_and_too_many_of_them_are_closed(tmp_path: Path) -> None:
    limits = RepositoryLimits(sessions=2, idle_s=100)
    async with serving(tmp_path, limits) as served:
        ours = await served.register("ann", {"a.py": SAVED})
        for session in ("one", "two", "three"):
            assert await served.type("ann", ours, session, "a.py", "", TYPED) == 204
        assert len(served.engine.indexes.folders) == 2
        # The first was closed: its text is not known any more.
        assert await served.type("ann", ours, "one", "a.py", TYPED, SAVED) == 409
        served.now += 101
        await served.hosted.let_go()
        assert served.engine.indexes.folders == []


@pytest.mark.asyncio
async def test_bodies_are_bounded_and_checked(tmp_path: Path) -> None:
    async with serving(tmp_path, RepositoryLimits(file_bytes=1000)) as served:
        ours = await served.register("ann", {"a.py": SAVED})
        ann, digest = served.clients["ann"], hash_of("new")
        await ann.patch(f"/repositories/{ours}/manifest", json={"files": {"b.py": digest}})
        packed = {"Content-Encoding": "gzip"}
        blob = f"/repositories/{ours}/blobs/{digest}"
        unsound = json.dumps({"files": {"a\ud800": digest}}).encode()
        statuses = [
            (await ann.put(blob, content=gzip.compress(bytes(50 << 20)), headers=packed)),
            (await ann.put(blob, content=bytes(1001))),
            (await ann.put(blob, content=b"new", headers=packed)),
            (await ann.put(blob, content=b"other")),
            (await ann.put(f"/repositories/{ours}/blobs/xyz", content=b"new")),
            (await ann.put(f"/repositories/{ours}/manifest", json={"files": {"b.py": None}})),
            (await ann.put(f"/repositories/{ours}/manifest", json={"files": ["b.py"]})),
            (await ann.put(f"/repositories/{ours}/manifest", json={"paths": {}})),
            (await ann.put(f"/repositories/{ours}/manifest", content=unsound)),
            (await ann.post("/repositories", json={"name": "a/b"})),
            (await ann.post("/repositories", json={"name": 1})),
            (
                await ann.patch(
                    f"/repositories/{ours}/buffers/one", json={"edits": [{"path": "a.py"}]}
                )
            ),
            (await ann.put(f"/repositories/{ours}", json={})),
            (await ann.put(blob, content=gzip.compress(b"new"), headers=packed)),
        ]
        assert [one.status_code for one in statuses] == [413, 413, *[400] * 10, 405, 204]
        for answer in statuses[:-1]:
            assert set(answer.json()["error"]) >= {"message", "type", "code"}
            assert str(tmp_path) not in answer.text


@pytest.mark.asyncio
async def test_the_log_holds_nothing_of_a_repository(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"hidden_plans/a.py": SAVED})
        await served.type("ann", ours, "one", "hidden_plans/a.py", "", TYPED)
        await served.upload("ann", ours, {"hidden_plans/b.py": TYPED})
        await served.clients["ann"].delete(f"/repositories/{ours}")
    # The client of the test logs what it asks.
    ours_alone = [one for one in caplog.records if not one.name.startswith("httpx2")]
    assert ours_alone
    logged = "".join(one.getMessage() for one in ours_alone)
    logged += (tmp_path / "state" / "audit.jsonl").read_text()
    for text in ("hidden_plans", "price_of", hash_of(SAVED), "key-of"):
        assert text not in logged
