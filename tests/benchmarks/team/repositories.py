"""Repositories that the clients of a load have at the server, each with a word of its own."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time

import httpx2

from lsp_server.shared.errors import BenchError

PATH = "/redraft/v1/repositories"
INDEXED_WITHIN_S = 300.0
POLL_S = 0.5


async def register(http: httpx2.AsyncClient, key: str, mark: str, texts: list[str]) -> str:
    """Register a repository in which ``mark`` stands often; its id, once it is indexed.

    Raises BenchError where the server takes none.
    """
    headers = {"authorization": f"Bearer {key}"}
    answer = await http.post(PATH, json={"name": mark}, headers=headers)
    if answer.status_code != 201:
        raise BenchError(f"the server takes no repository ({answer.status_code}): {answer.text}")
    repository = str(answer.json()["id"])
    files = {f"{number}.py": _marked(text, mark) for number, text in enumerate(texts)}
    contents = {hashlib.sha256(data).hexdigest(): data for data in files.values()}
    hashes = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    place = f"{PATH}/{repository}"
    answer = await http.put(f"{place}/manifest", json={"files": hashes}, headers=headers)
    answer.raise_for_status()
    for digest in answer.json()["missing"]:
        sent = await http.put(
            f"{place}/blobs/{digest}",
            content=gzip.compress(contents[digest]),
            headers={**headers, "content-encoding": "gzip"},
        )
        sent.raise_for_status()
    until = time.monotonic() + INDEXED_WITHIN_S
    while time.monotonic() < until:
        shown = (await http.get(place, headers=headers)).json()
        if not shown["missing"] and shown["index"] and shown["index"]["files"] == len(files):
            return repository
        await asyncio.sleep(POLL_S)
    raise BenchError("the server did not index a repository in time; its log says why")


async def remove(http: httpx2.AsyncClient, key: str, repository: str) -> None:
    """Delete a repository."""
    await http.delete(f"{PATH}/{repository}", headers={"authorization": f"Bearer {key}"})


def _marked(text: str, mark: str) -> bytes:
    """A file in which the word follows every few lines."""
    lines = text.splitlines(keepends=True)
    for place in range(len(lines), 0, -8):
        lines.insert(place, f"{mark} = {place}\n")
    return "".join(lines).encode()
