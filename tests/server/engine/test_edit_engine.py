"""An edit on the engine: long selections piece by piece, the same text with and without drafts."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from accel.verification import choosing, gumbel_sampling
from lsp_server.engine.task_runner import TaskRunner
from lsp_server.shared.contract.jobs import EditJob, JobResult, Span
from lsp_server.tasks.editing import task as editing_task

FIRST = "def area(width, height):\n    return width * height\n"
SECOND = "def volume(width, height, depth):\n    return area(width, height) * depth\n"
SELECTION = f"{FIRST}\n\n{SECOND}"
JOB = EditJob("", "shapes.py", "rename width to w", SELECTION, language="python", max_tokens=200)


def test_drafts_change_nothing_but_the_number_of_forwards(service):
    drafted, plain = service.write(JOB), service.write(replace(JOB, plain=True))
    assert drafted.text == plain.text
    assert drafted.tokens == plain.tokens
    assert drafted.forwards < plain.forwards
    assert drafted.sources["original"] > 0


def test_edits_are_looked_up_until_what_drafts_them_is_compiled(service, monkeypatch):
    plain = service.write(replace(JOB, plain=True))
    monkeypatch.setattr(service.model, "edits_behind", SimpleNamespace(is_over=False))
    meanwhile = service.write(JOB)
    assert "original" not in meanwhile.sources
    assert meanwhile.text == plain.text
    assert meanwhile.forwards < plain.forwards
    monkeypatch.setattr(service.model, "edits_behind", SimpleNamespace(is_over=True))
    assert service.write(JOB).forwards < plain.forwards


def test_a_sampled_request_calls_what_is_compiled_behind_the_first_answers(service):
    choosing.warm_up()
    forms = list(gumbel_sampling.draw.signatures)
    assert forms
    assert service.write(replace(JOB, temperature=0.8, top_p=0.9, seed=1)).tokens
    assert list(gumbel_sampling.draw.signatures) == forms


def test_an_answer_is_unsure_by_the_tokens_that_change_the_text(service):
    sure, unsure = (service.write(replace(JOB, sure=least)) for least in (0.0, 1.0))
    assert sure.text == unsure.text == service.write(JOB).text
    assert unsure.is_unsure
    assert not sure.is_unsure


@pytest.mark.parametrize(
    ("chances", "is_unsure"),
    [
        ((0.1, 0.9, 0.9, 0.1), False),
        ((0.9, 0.6, 0.9, 0.9), True),
        ((0.9, 0.9, 0.6, 0.9), True),
        ((0.9, None, None, 0.9), False),
    ],
)
def test_a_changed_token_and_the_next_one_say_how_sure_an_answer_is(chances, is_unsure):
    spans = [
        Span(text, "model", None if chance is None else math.log(chance))
        for text, chance in zip("axcd", chances, strict=True)
    ]
    assert editing_task.is_unsure(spans, [*"abcd"], 0.7) is is_unsure


def test_a_long_selection_is_edited_piece_by_piece(service, monkeypatch):
    pieces: list[str] = []

    def shouting(_runner, task):
        pieces.append(service.engine.tokenizer.decode(task.prompt.original_tokens.tolist()))
        yield [Span("so far", "model")]
        return JobResult(pieces[-1].upper().rstrip(), [], 9, 2, 1.0, 0.5, {"original": 9}, "end")

    monkeypatch.setattr(TaskRunner, "_generate", shouting)
    monkeypatch.setattr(editing_task, "PIECE_SHARE", service.engine.max_positions // 30)
    spans: list[Span] = []
    # Of an edit that is not known the places are not either.
    result = service.write(replace(JOB, instruction="say it louder"), on_spans=spans.extend)
    assert pieces == [f"{FIRST}\n\n", SECOND]
    assert result.text == SELECTION.upper()
    assert (result.tokens, result.forwards, result.seconds) == (18, 4, 2.0)
    assert result.sources == {"original": 18}
    assert len(spans) == 2


def test_an_answer_is_put_into_the_bytes_of_the_selection(service, monkeypatch):
    written = "\ufeffdef area(width):\r\n\tname = '€\0'  # 😀\t\r\n\r\n\treturn width\r"
    pieces: list[str] = []

    def answering(_runner, task):
        pieces.append(service.engine.tokenizer.decode(task.prompt.original_tokens.tolist()))
        yield [Span("so far", "model")]
        text = pieces[-1].replace("\treturn", "\t# New.\n\treturn")
        return JobResult(text, [], 9, 2, 1.0, 0.5, {"original": 9}, "end")

    monkeypatch.setattr(TaskRunner, "_generate", answering)
    job = replace(JOB, instruction="say it louder", selection=written)
    assert service.write(job).text == written.replace("\treturn", "\t# New.\r\n\treturn")
    assert not set("".join(pieces)) & set("\r\0")


def test_a_cancelled_piece_ends_the_edit(service, monkeypatch):
    monkeypatch.setattr(editing_task, "PIECE_SHARE", service.engine.max_positions // 30)
    assert service.write(JOB, cancelled=lambda: True).stopped_by == "cancelled"
