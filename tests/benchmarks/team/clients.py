"""Editors of a team, as their server sees them: people who type on at a place of a file and go to
another one now and then. Requests come at chance times, and some are left at the next key."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import httpx2

from lsp_server.shared.contract.jobs import COMPLETION, EDIT, PREFILL
from lsp_server.shared.errors import BenchError

SELECTED_LINES = 4
INSTRUCTION = "add type hints"
RETRY_S = 0.25
"""Before a request that failed is tried again, as an editor does."""
TIMEOUT_S = 60.0
MARK_DIGITS = 12
FILES = 3
"""That a client has open."""
KEYS = 8
"""Typed between two requests, at most."""
TYPED = 300
"""Characters typed at one place, at most, before the client goes on elsewhere."""
STAY = 40
"""Requests at one place, on average."""


class Member(NamedTuple):
    """A client of the server: its key, and the word that stands in its files alone."""

    key: str
    mark: str
    similar: list[str]
    """Texts that go along with each request."""


class LoadShape(NamedTuple):
    """What one client asks."""

    rate: float
    """Requests a second, on average."""
    edits: float
    """Share of edits."""
    leaving: float
    """Share of requests whose client leaves before the answer."""
    max_tokens: int


@dataclass(slots=True)
class LoadTally:
    """What came of the requests of all clients."""

    latencies_ms: list[float] = field(default_factory=list)
    """From a request to the end of its answer, those that were tried again included."""
    first_text_ms: list[float] = field(default_factory=list)
    engine_ms: list[float] = field(default_factory=list)
    """What of that the engine computed, by itself."""
    statuses: Counter[int] = field(default_factory=Counter)
    """By HTTP status; 0: the connection broke, 200: also where the answer ended in an error."""
    failed_answers: int = 0
    """Answers that began well and ended in an error."""
    retried: int = 0
    failed_after_retry: int = 0
    left: int = 0
    late: int = 0
    """Requests that began a second late or more: the clients could not keep the rate."""
    tokens: int = 0
    foreign_marks: int = 0
    """Answers with a word that stands in another client's files alone."""
    own_marks: int = 0
    """Answers with the client's own word, which shows that words do come back."""


class LoadClient:
    """One editor."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        member: Member,
        texts: Sequence[str],
        marks: frozenset[str],
        tally: LoadTally,
        seed: int,
    ) -> None:
        """``texts``: files to be typed in; ``marks``: the words of all clients."""
        self._http = http
        self._member = member
        self._foreign = marks - {member.mark}
        self._tally = tally
        self._random = random.Random(seed)
        self._texts = self._random.sample(texts, min(FILES, len(texts)))
        self._go_to(0, len(self._texts[0]) // 2)

    async def open(self, shape: LoadShape) -> None:
        """Open the files, as an editor does before the first key: their prompts are computed.

        Raises BenchError where the server does not.
        """
        asked = [("edit", self._edit(shape)[1])]
        for file, text in enumerate(self._texts):
            self._go_to(file, len(text) // 2)
            asked.append(("complete", self._completion(shape)[1]))
        for operation, body in asked:
            body |= {"operation": operation, "urgency": PREFILL}
            answer = await self._http.post("/redraft/v1/prefill", json=body, headers=self._headers)
            if answer.status_code != 200:
                raise BenchError(f"no file can be opened ({answer.status_code}): {answer.text}")

    async def work(self, shape: LoadShape, seconds: float) -> None:
        """Ask at chance times for so long."""
        started = time.monotonic()
        due = started + self._random.expovariate(shape.rate)
        while due < started + seconds:
            now = time.monotonic()
            if due > now:
                await asyncio.sleep(due - now)
            self._tally.late += now - due > 1.0
            await self._ask(shape)
            due += self._random.expovariate(shape.rate)

    async def _ask(self, shape: LoadShape) -> None:
        is_edit = self._random.random() < shape.edits
        path, body = self._edit(shape) if is_edit else self._completion(shape)
        if self._random.random() < shape.leaving:
            self._tally.left += 1
            await self._leave(path, body)
            return
        started = time.monotonic()
        if not await self._answered(path, body, started):
            self._tally.retried += 1
            await asyncio.sleep(RETRY_S)
            if not await self._answered(path, body, started):
                self._tally.failed_after_retry += 1
                return
        self._tally.latencies_ms.append(1000 * (time.monotonic() - started))

    async def _answered(self, path: str, body: dict[str, Any], started: float) -> bool:
        """Read an answer; whether it ended well."""
        tally = self._tally
        event, text = "", ""
        try:
            async with self._http.stream("POST", path, json=body, headers=self._headers) as answer:
                tally.statuses[answer.status_code] += 1
                if answer.status_code != 200:
                    await answer.aread()
                    return False
                async for line in answer.aiter_lines():
                    if line.startswith("event: "):
                        event = line.removeprefix("event: ")
                        if event == "spans" and not text:
                            tally.first_text_ms.append(1000 * (time.monotonic() - started))
                    elif line.startswith("data: "):
                        text += line.removeprefix("data: ")
                        if event == "result":
                            result = json.loads(line.removeprefix("data: "))
                            tally.tokens += result["tokens"]
                            tally.engine_ms.append(1000 * result["seconds"])
        except httpx2.TransportError:
            tally.statuses[0] += 1
            return False
        tally.foreign_marks += any(mark in text for mark in self._foreign)
        tally.own_marks += self._member.mark in text
        if event != "result":
            tally.failed_answers += 1
        return event == "result"

    async def _leave(self, path: str, body: dict[str, Any]) -> None:
        """Ask, and close the connection at the next key."""
        try:
            await asyncio.wait_for(
                self._http.post(path, json=body, headers=self._headers),
                self._random.uniform(0.0, 0.1),
            )
        except (asyncio.TimeoutError, httpx2.TransportError):
            return

    @property
    def _headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self._member.key}"}

    def _type(self) -> None:
        """Type some keys, or go to another place."""
        self._cursor += self._random.randint(1, KEYS)
        if self._cursor >= self._end or self._random.random() < 1 / STAY:
            file = self._random.randrange(len(self._texts))
            self._go_to(file, self._random.randrange(len(self._texts[file]) // 2))

    def _go_to(self, file: int, place: int) -> None:
        """Have the text from ``place`` on yet to be typed. What comes behind it stands already."""
        self._file = file
        self._start = self._cursor = place
        self._end = min(place + TYPED, len(self._text))

    @property
    def _text(self) -> str:
        return self._texts[self._file]

    def _similar(self) -> list[dict[str, str]]:
        texts = enumerate(self._member.similar)
        return [{"path": f"similar{number}.py", "text": text} for number, text in texts]

    def _completion(self, shape: LoadShape) -> tuple[str, dict[str, Any]]:
        self._type()
        # The client's own word stands before what is typed: text that is near comes back most.
        mark = self._member.mark
        before = f"{self._text[: self._start]}\n{mark} = 1\n{mark} = 2\n"
        job = {
            "similar": self._similar(),
            "path": f"{self._file}.py",
            "prefix": before + self._text[self._start : self._cursor],
            "suffix": self._text[self._end :],
            "language": "python",
            "max_tokens": shape.max_tokens,
        }
        return "/redraft/v1/complete", _body(job, COMPLETION)

    def _edit(self, shape: LoadShape) -> tuple[str, dict[str, Any]]:
        lines = self._text.splitlines(keepends=True)
        first = self._random.randrange(max(1, len(lines) - SELECTED_LINES))
        selection = "".join(lines[first : first + SELECTED_LINES])
        job = {
            "similar": self._similar(),
            "path": f"{self._file}.py",
            "instruction": INSTRUCTION,
            "selection": f"{self._member.mark} = 1\n{selection}",
            "before": "".join(lines[:first]),
            "after": "".join(lines[first + SELECTED_LINES :]),
            "language": "python",
            "max_tokens": 4 * shape.max_tokens,
        }
        return "/redraft/v1/edit", _body(job, EDIT)


def _body(job: dict[str, Any], urgency: int) -> dict[str, Any]:
    return {"protocol": 1, "job": job, "urgency": urgency}


def marks_of(count: int, rng: random.Random) -> list[str]:
    """Words that stand nowhere by chance."""
    return [f"mark_{rng.randrange(16**MARK_DIGITS):0{MARK_DIGITS}x}" for _ in range(count)]
