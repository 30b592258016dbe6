"""An edit on the engine: long selections piece by piece, the same text with and without drafts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_server import engine_process
from lsp_server.engine_process import EngineService
from lsp_server.jobs import EditJob, JobResult, Span

FIRST = "def area(width, height):\n    return width * height\n"
SECOND = "def volume(width, height, depth):\n    return area(width, height) * depth\n"
SELECTION = f"{FIRST}\n\n{SECOND}"
JOB = EditJob("", "shapes.py", "rename width to w", SELECTION, language="python", max_tokens=200)


@pytest.fixture(scope="module")
def service():
    made = EngineService(dtype="fp32", threads=1, common=False)
    yield made
    made.close()


def test_drafts_change_nothing_but_the_number_of_forwards(service):
    drafted, plain = service.edit(JOB), service.edit(replace(JOB, plain=True))
    assert drafted.text == plain.text
    assert drafted.tokens == plain.tokens
    assert drafted.forwards < plain.forwards
    assert drafted.sources["original"] > 0


def test_a_long_selection_is_edited_piece_by_piece(service, monkeypatch):
    pieces: list[str] = []
    request = service._request

    def noted(job, *rest):
        pieces.append(job.selection)
        return request(job, *rest)

    def shouting(*_rest):
        yield [Span("so far", "model")]
        return JobResult(pieces[-1].upper().rstrip(), [], 9, 2, 1.0, 0.5, {"original": 9}, "end")

    monkeypatch.setattr(service, "_request", noted)
    monkeypatch.setattr(service, "_generate", shouting)
    monkeypatch.setattr(engine_process, "PIECE_TOKENS", 30)
    spans: list[Span] = []
    result = service.edit(JOB, on_spans=spans.extend)
    assert pieces == [f"{FIRST}\n\n", SECOND]
    assert result.text == SELECTION.upper()
    assert (result.tokens, result.forwards, result.seconds) == (18, 4, 2.0)
    assert result.sources == {"original": 18}
    assert len(spans) == 2


def test_a_cancelled_piece_ends_the_edit(service, monkeypatch):
    monkeypatch.setattr(engine_process, "PIECE_TOKENS", 30)
    assert service.edit(JOB, cancelled=lambda: True).stopped_by == "cancelled"
