"""Damaged and hostile requests about repositories are answered, and never with a failure."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import httpx2
import pytest
from seeds import Amount

pytest.importorskip("starlette", reason="the extra server is not installed")

from tests.server.team.repositories.served import hash_of, serving

VALUES: list[Any] = [
    *(None, True, 0, -1, 1 << 80, 1.5, "", "a", "../a", "a\ud800", "a\0b", "x" * 5000, [], {}),
    *([[]], {"a": {}}, "0" * 64, "z" * 64, {"a.py": "0" * 64}, {"a/b": None}, ["a.py", 1]),
]
WORDS = ["", ".", "..", "%00", "%2e%2e", "0" * 32, "a.b", "x" * 300, "é", "manifest", "blobs"]


@pytest.mark.asyncio
async def test_mutated_requests_are_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, amount: Amount
) -> None:
    monkeypatch.setenv("REDRAFT_DATA", str(tmp_path / "data"))
    count = amount(150, 5000)
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    async with serving(tmp_path) as served:
        ours = await served.register("ann", {"a.py": "a = 1\n"})
        client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=served.app, raise_app_exceptions=False),
            base_url="http://localhost/redraft/v1",
            headers={"Authorization": "Bearer key-of-ann"},
        )
        seen = set()
        for _ in range(count):
            answer = await client.request(**request(chance, ours))
            seen.add(answer.status_code)
            assert answer.status_code < 500, (answer.request.method, answer.request.url)
            assert str(tmp_path) not in answer.text
            assert "Traceback" not in answer.text
        assert {400, 404} <= seen
        await client.aclose()
        # It still works.
        again = await served.register("ann", {"a.py": "a = 1\n"})
        assert served.view("ann", again) is not None


def request(chance: random.Random, repository: str) -> dict[str, Any]:
    """A request that was right once."""
    edit = {"path": "a.py", "start": 0, "stop": 0, "text": "b", "base": ""}
    method, path, body = chance.choice(
        [
            ("GET", "", None),
            ("PUT", "/manifest", {"files": {"a.py": hash_of("a = 1\n")}}),
            ("PATCH", "/manifest", {"files": {"a.py": hash_of("a = 1\n"), "b.py": None}}),
            ("PUT", f"/blobs/{hash_of('a = 1')}", None),
            ("POST", "/blobs", {"contents": {hash_of("a = 1\n"): "a = 1\n"}}),
            ("PATCH", "/buffers/one", {"edits": [edit], "closed": ["b.py"]}),
            ("DELETE", "/buffers/one", None),
        ]
    )
    body = damaged(chance, body)
    path = f"/repositories/{repository}{path}"
    if chance.random() < 0.2:
        parts = path.split("/")
        parts[chance.randrange(2, len(parts))] = chance.choice(WORDS)
        path = "/".join(parts)
    if chance.random() < 0.1:
        method = chance.choice(["GET", "PUT", "POST", "PATCH", "HEAD", "OPTIONS", "BREW"])
    content = b"" if body is None else json.dumps(body).encode()
    if content and chance.random() < 0.2:
        place = chance.randrange(len(content))
        content = content[:place] + chance.randbytes(chance.randrange(4)) + content[place + 1 :]
    headers = {"Content-Encoding": chance.choice(["gzip", "br"])} if chance.random() < 0.05 else {}
    return {"method": method, "url": path, "content": content, "headers": headers}


def damaged(chance: random.Random, value: Any) -> Any:
    """The value with one part of it replaced, as a rule."""
    if chance.random() < 0.3 or not isinstance(value, dict | list) or not value:
        return chance.choice(VALUES) if chance.random() < 0.8 else value
    if isinstance(value, list):
        return [damaged(chance, one) for one in value]
    name = chance.choice(list(value))
    if chance.random() < 0.2:
        other = chance.choice([one for one in VALUES if isinstance(one, str)])
        return {**{key: one for key, one in value.items() if key != name}, other: value[name]}
    return {**value, name: damaged(chance, value[name])}
