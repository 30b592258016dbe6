"""An editor's requests over HTTP."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, NamedTuple

import httpx2

from lsp_server.shared.contract.jobs import COMPLETION, EDIT, CompletionJob, EditJob


class Asked(NamedTuple):
    """What came of a request."""

    status: int
    events: list[tuple[str, Any]]

    @property
    def failed(self) -> bool:
        """Whether it has no result."""
        return self.status != 200 or not self.events or self.events[-1][0] != "result"

    @property
    def result(self) -> dict[str, Any]:
        assert not self.failed, self
        return self.events[-1][1]


def body_of(job: CompletionJob | EditJob) -> dict[str, Any]:
    """A request's body."""
    fields = asdict(job)
    for name in ("owner", "secret"):
        # Whose it is, the key says; what may hold secrets must not be sent.
        fields.pop(name, None)
    urgency = COMPLETION if isinstance(job, CompletionJob) else EDIT
    return {"protocol": 1, "job": fields, "urgency": urgency}


def path_of(job: CompletionJob | EditJob) -> str:
    return "/redraft/v1/complete" if isinstance(job, CompletionJob) else "/redraft/v1/edit"


async def ask(
    client: httpx2.AsyncClient, url: str, key: str, job: CompletionJob | EditJob
) -> Asked:
    """Ask and read to the end. A connection that breaks is a failure with status 0."""
    headers = {"authorization": f"Bearer {key}"}
    try:
        answer = await client.post(url + path_of(job), json=body_of(job), headers=headers)
    except httpx2.TransportError as error:
        return Asked(0, [("error", repr(error))])
    return Asked(answer.status_code, events_of(answer.text))


def events_of(text: str) -> list[tuple[str, Any]]:
    """The server-sent events of an answer."""
    events = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in lines:
            events.append((lines["event"], json.loads(lines["data"])))
    return events
