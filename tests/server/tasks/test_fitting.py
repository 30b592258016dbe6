"""Completions of a line that is missing between others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from accel.decoding.infilling import Line
from accel.execution.forwards import alone
from lsp_server.shared.contract.jobs import CompletionJob
from lsp_server.tasks.completion import missing_line as fitting

BEFORE = '''def mean(values):
    """The mean of the values."""
    total = 0
    '''
AFTER = """
        total += value
    return total / len(values)
"""
JOB = CompletionJob("", "mean.py", BEFORE, AFTER, language="python")


@pytest.fixture
def patient(monkeypatch, service):
    """Weighing lines pays, however busy the machine was when forwards were timed."""
    monkeypatch.setattr(fitting, "MOST_S", 60.0)
    return service


def test_the_line_between_lines_is_one_line_and_ends_the_completion(patient):
    result = patient.write(JOB)
    assert result.stopped_by == "end"
    assert result.text.strip()
    assert "\n" not in result.text
    assert "".join(span.text for span in result.spans) == result.text
    assert result.forwards > 2
    prompt = patient.runner.completion_prompt(JOB)
    engine = patient.engine
    search = patient.model.fitter._search
    line = alone(search.missing(prompt, engine.session(), engine.session()))
    spelt = engine.tokenizer.decode_bytes(list(line.tokens))
    assert spelt == prompt.required_prefix + result.text.encode()


def found(lines):
    """A search that needs no forwards."""
    yield from ()
    return lines


@pytest.mark.parametrize("name", ["value", "number"])
def test_what_follows_decides_among_likely_lines(patient, monkeypatch, name):
    encode = patient.engine.tokenizer.encode
    likely = [
        Line(tuple(encode(f"\n    for {each} in values:").tolist()), -1.0, 0.9)
        for each in ("value", "number")
    ]
    monkeypatch.setattr(patient.model.fitter._search, "candidates", lambda *_rest: found(likely))
    suffix = AFTER.replace("value\n", f"{name}\n")
    assert patient.write(replace(JOB, suffix=suffix)).text == f"for {name} in values:"


def test_drawn_text_and_text_with_nothing_below_are_decoded(patient, monkeypatch):
    def refuse(*_rest):
        raise AssertionError("no line is missing here")

    monkeypatch.setattr(patient.model.fitter._search, "missing", refuse)
    for job in (
        replace(JOB, temperature=0.5, max_tokens=4),
        replace(JOB, suffix="\n\n\nprint(mean([1, 2]))\n", max_tokens=4),
        replace(JOB, suffix="", max_tokens=4),
    ):
        assert patient.write(job).stopped_by in ("end", "stop", "length")


def test_a_slow_model_is_not_asked_to_weigh_lines(service, monkeypatch):
    monkeypatch.setattr(fitting, "MOST_S", 0.0)
    assert not service.model.fitter.wants(JOB)


def test_a_cancelled_job_weighs_nothing(patient):
    assert patient.write(JOB, cancelled=lambda: True).stopped_by == "cancelled"
