"""Snippets that the merge refuses: what a model is asked, and which of its answers count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_server.shared.contract.jobs import EditJob, GenerateJob, unchanged
from lsp_server.tasks.apply.by_model import MOST_LINES, ModelMerge
from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet

TWICE = "a = 1\nb = 2\nd = 4\na = 1\nb = 2\n"
FITS_TWICE = "# ... existing code ...\na = 1\nc = 3\nb = 2\n# ... existing code ...\n"
READINGS = (
    "a = 1\nc = 3\nb = 2\nd = 4\na = 1\nb = 2\n",
    "a = 1\nb = 2\nd = 4\na = 1\nc = 3\nb = 2\n",
)
FITS_NOWHERE = "# ...\nx = 5\ny = 6\n# ...\n"
MODELS = ("any-instruct-1.5b", "FastApply-1.5B-v1.0-Q8_0")


def refused(code: str, snippet: str, instruction: str = "") -> ModelMerge:
    with pytest.raises(AmbiguousSnippet) as refusal:
        apply_snippet(code, snippet, "python")
    return ModelMerge(code, snippet, refusal.value, instruction, "python")


def merged(merge: ModelMerge, model: str, text: str) -> str | None:
    """The file, where the model has it read ``text``."""
    if model == MODELS[1]:
        return merge.merged(model, unchanged(f"<updated-code>{text}</updated-code>"))
    assert merge.region is not None
    start, end = merge.region
    below = merge.code.count("\n") - end
    lines = text.splitlines(keepends=True)
    return merge.merged(model, unchanged("".join(lines[start : len(lines) - below])))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("above", [0, 1, 200])
@pytest.mark.parametrize("below", [0, 1, 200])
@pytest.mark.parametrize("number", [0, 1])
def test_a_model_may_choose_a_reading(model: str, above: int, below: int, number: int) -> None:
    head, tail = (
        "".join(f"{name}{n} = 0\n" for n in range(count))
        for name, count in (("x", above), ("y", below))
    )
    merge = refused(head + TWICE + tail, FITS_TWICE)
    assert merged(merge, model, head + READINGS[number] + tail) == head + READINGS[number] + tail


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not ended"])
def test_ends_and_marks_of_the_file_stay(model: str, end: str, mark: str, last: bool) -> None:
    def written(text: str) -> str:
        return mark + (text if last else text.removesuffix("\n")).replace("\n", end)

    merge = refused(written(TWICE), FITS_TWICE)
    model_s = unchanged(
        f"<updated-code>{READINGS[0]}</updated-code>" if model == MODELS[1] else READINGS[0]
    )
    assert merge.merged(model, model_s) == written(READINGS[0])


WRONG = {
    "nothing": "",
    "the file as it is": TWICE,
    "both places": "a = 1\nc = 3\nb = 2\nd = 4\na = 1\nc = 3\nb = 2\n",
    "a line of its own": READINGS[0] + "e = 5\n",
    "a line spelt otherwise": READINGS[0].replace("b =", "b  ="),
    "the snippet torn apart": "a = 1\nc = 3\nd = 4\na = 1\nb = 2\n",
    "a line of the file lost": "a = 1\nc = 3\nb = 2\na = 1\nb = 2\n",
    "a line of the file twice": READINGS[0] + "b = 2\n",
    "nothing but the snippet": "a = 1\nc = 3\nb = 2\n",
    "a place holder left": "# ... existing code ...\n" + READINGS[0],
    "another place": "a = 1\nb = 2\na = 1\nc = 3\nb = 2\nd = 4\n",
    "words": "Here is the code:\n" + READINGS[0],
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_reading_does_not_count(model: str, case: str) -> None:
    merge = refused(TWICE, FITS_TWICE)
    answer = f"<updated-code>{WRONG[case]}</updated-code>" if model == MODELS[1] else WRONG[case]
    assert merge.merged(model, unchanged(answer)) is None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("how", ["length", "loop", "broken", "cancelled"])
def test_an_answer_that_was_cut_does_not_count(model: str, how: str) -> None:
    answer = f"<updated-code>{READINGS[0]}</updated-code>" if model == MODELS[1] else READINGS[0]
    result = replace(unchanged(answer), stopped_by=how)
    assert refused(TWICE, FITS_TWICE).merged(model, result) is None


@pytest.mark.parametrize("model", MODELS)
def test_where_there_is_no_reading_the_lines_of_the_snippet_are_put_in(model: str) -> None:
    code = "a = 1\nb = 2\n"
    for text in (code + "x = 5\ny = 6\n", "x = 5\ny = 6\n" + code, "a = 1\nx = 5\ny = 6\nb = 2\n"):
        assert merged(refused(code, FITS_NOWHERE), model, text) == text
    for text in ("x = 5\ny = 6\n", code + "x = 5\n", code + "x = 5\n\ny = 7\n", code):
        answer = f"<updated-code>{text}</updated-code>" if model == MODELS[1] else text
        assert refused(code, FITS_NOWHERE).merged(model, unchanged(answer)) is None


def test_a_model_that_was_not_made_for_it_is_asked_of_few_lines_alone() -> None:
    few, many = (
        TWICE.replace("d = 4\n", "d = 4\n" + "".join(f"x{n} = 0\n" for n in range(count)))
        for count in (MOST_LINES - 5, MOST_LINES)
    )
    job = refused(few, FITS_TWICE).job(MODELS[0])
    assert isinstance(job, EditJob)
    assert job.selection == few
    assert refused(many, FITS_TWICE).job(MODELS[0]) is None
    assert isinstance(refused(many, FITS_TWICE).job(MODELS[1]), GenerateJob)
    nowhere = refused("".join(f"x{n} = 0\n" for n in range(MOST_LINES + 1)), FITS_NOWHERE)
    assert nowhere.job(MODELS[0]) is None


def test_the_region_is_what_the_readings_change_and_some_lines_around() -> None:
    head, tail = ("".join(f"{name}{n} = 0\n" for n in range(60)) for name in "xy")
    job = refused(head + TWICE + tail, FITS_TWICE).job(MODELS[0])
    assert isinstance(job, EditJob)
    assert job.selection == "x58 = 0\nx59 = 0\n" + TWICE + "y0 = 0\ny1 = 0\n"
    assert job.before + job.selection + job.after == head + TWICE + tail


@pytest.mark.parametrize("model", MODELS)
def test_the_instruction_reaches_the_prompt(model: str) -> None:
    for words in ("", "put {code} into the second one"):
        job = refused(TWICE, FITS_TWICE, words).job(model)
        assert job is not None
        text = job.instruction if isinstance(job, EditJob) else (job.messages or [])[1][1]
        assert words in text
        assert FITS_TWICE in text
