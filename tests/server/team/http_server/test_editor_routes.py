"""Redraft's own routes: shapes, streaming, refusals."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from served import KEY, OTHER_KEY, Served, events_of, stream

from lsp_server.shared.contract.jobs import AcceptedText, CompletionJob, EditJob

COMPLETION = {"workspace": "", "path": "a.py", "prefix": "def add(a, b):\n    ret", "suffix": "\n"}
EDIT = {
    "workspace": "",
    "path": "a.py",
    "instruction": "add type hint int to a",
    "selection": "def add(a, b):\n    return a + b\n",
}

LONG = {"path": "lib.py", "text": "x = 1\n" * 6000}
TAKEN = {"workspace": "", "path": "a.py", "before": "x = ", "text": "1"}


def asked(job: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"protocol": 1, "job": job, "urgency": 0, **more}


def test_the_model_tells_what_prompts_need(server: Served) -> None:
    told = server.get("/redraft/v1/model").json()
    assert told["protocol"] == 1
    assert told["fills"] is True
    assert "/" not in told["model"]
    assert told["max_tokens"] >= 1024
    assert told["prompt_seconds"] == sorted(told["prompt_seconds"])


def test_a_completion_streams_its_spans_and_ends_with_the_result(server: Served) -> None:
    events = server.events("/redraft/v1/complete", asked(COMPLETION))
    *spans, (name, result) = events
    assert {kind for kind, _ in spans} == {"spans"}
    assert name == "result"
    text = "".join(span["text"] for _, told in spans for span in told)
    assert text.startswith(result["text"])
    assert result["stopped_by"] in ("end", "stop", "length")
    assert {span["source"] for _, told in spans for span in told} <= set(result["sources"])


def test_similar_text_changes_drafts_and_no_text(server: Served) -> None:
    for path, job in (("complete", COMPLETION), ("edit", EDIT)):
        (*_, (_, without)) = server.events(f"/redraft/v1/{path}", asked(job))
        text = f"{job.get('prefix', '')}{without['text']}{job.get('suffix', '')}\n"
        similar = [{"path": "lib.py", "text": text * 3}, {"path": "", "text": text}]
        (*_, (_, drafted)) = server.events(
            f"/redraft/v1/{path}", asked({**job, "similar": similar})
        )
        assert drafted["text"] == without["text"]
        assert drafted["forwards"] <= without["forwards"]


def test_an_edit_is_made(server: Served) -> None:
    events = server.events("/redraft/v1/edit", asked(EDIT, urgency=1))
    assert events[-1][0] == "result"
    assert events[-1][1]["text"] == "def add(a: int, b):\n    return a + b\n"


def test_a_prefill_answers_with_nothing(server: Served) -> None:
    for operation, job in (("complete", COMPLETION), ("edit", EDIT)):
        answer = server.post(
            "/redraft/v1/prefill", {"protocol": 1, "operation": operation, "job": job}
        )
        assert (answer.status_code, answer.json()) == (200, {})


def test_what_one_key_accepted_is_drafted_from_for_that_key_alone(server: Served) -> None:
    prefix = "def jam(fruit):\n    with open("
    job = {"path": "jam.py", "prefix": prefix, "suffix": "\n", "max_tokens": 24}
    _, alone = server.events("/redraft/v1/complete", asked({**job, "plain": True}))[-1]
    assert alone["tokens"] >= 4
    taken = {"path": "other.py", "before": prefix, "text": alone["text"]}
    answer = server.post("/redraft/v1/accepted", {"protocol": 1, "taken": taken})
    assert (answer.status_code, answer.json()) == (200, {})
    for key, has_it in ((OTHER_KEY, False), (KEY, True)):
        with stream(server.url, "/redraft/v1/complete", asked(job), key) as response:
            *_, (_, result) = events_of(response.iter_lines())
        assert result["text"] == alone["text"]
        assert ("history" in result["sources"]) == has_it, result["sources"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/redraft/v1/complete", {"job": COMPLETION}, 400),
        ("/redraft/v1/complete", {"protocol": 2, "job": COMPLETION}, 400),
        ("/redraft/v1/complete", asked({**COMPLETION, "secret": True}), 400),
        ("/redraft/v1/complete", asked({**COMPLETION, "path": "/etc/passwd"}), 400),
        ("/redraft/v1/complete", asked({**COMPLETION, "unknown": 1}), 400),
        ("/redraft/v1/complete", asked({**COMPLETION, "owner": "ben"}), 400),
        ("/redraft/v1/complete", asked({**COMPLETION, "max_tokens": -1}), 400),
        ("/redraft/v1/complete", asked({**COMPLETION, "workspace": "/etc"}), 404),
        ("/redraft/v1/complete", asked({**COMPLETION, "similar": [LONG, LONG]}), 400),
        ("/redraft/v1/edit", asked({**EDIT, "similar": [{"path": "a.py"}]}), 400),
        ("/redraft/v1/repositories", {"name": "shop"}, 404),
        ("/redraft/v1/repositories/ID/blobs", {"contents": {}}, 404),
        ("/redraft/v1/edit", asked({**EDIT, "selection": 3}), 400),
        ("/redraft/v1/edit", asked({**EDIT, "entropy_k": 3}), 400),
        ("/redraft/v1/prefill", asked({**EDIT, "entropy_k": 3}, operation="edit"), 400),
        ("/redraft/v1/prefill", asked(COMPLETION, operation="generate"), 400),
        ("/redraft/v1/accepted", {"protocol": 1, "taken": {**TAKEN, "secret": True}}, 400),
        ("/redraft/v1/accepted", {"protocol": 1, "taken": {**TAKEN, "text": "x" * 66_000}}, 400),
        ("/redraft/v1/accepted", {"protocol": 1, "taken": {**TAKEN, "workspace": "nowhere"}}, 404),
        ("/redraft/v1/accepted", {"taken": TAKEN}, 400),
    ],
)
def test_what_cannot_be_is_refused(
    server: Served, path: str, body: dict[str, Any], status: int
) -> None:
    answer = server.post(path, body)
    assert answer.status_code == status
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}


def test_every_field_of_a_job_can_be_sent() -> None:
    from lsp_server.team.http_server.editor_routes import EditorFields, accepted_text, editor_job

    kinds: tuple[tuple[type[Any], dict[str, Any]], ...] = (
        (CompletionJob, COMPLETION),
        (EditJob, EDIT),
        (AcceptedText, TAKEN),
    )
    for kind, values in kinds:
        whole = {**{field.name: getattr(kind(**values), field.name) for field in fields(kind)}}
        del whole["owner"]
        if kind is AcceptedText:
            assert accepted_text(EditorFields(taken=whole)) == kind(**values)
        else:
            assert editor_job(kind, EditorFields(job=whole)) == kind(**values)
