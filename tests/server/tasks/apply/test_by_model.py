"""Snippets that the merge refuses: what a model is asked, and which of its answers count."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lsp_server.shared.contract.jobs import unchanged
from lsp_server.tasks.apply.by_model import ModelMerge
from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet

TWICE = "a = 1\nb = 2\nd = 4\na = 1\nb = 2\n"
FITS_TWICE = "# ... existing code ...\na = 1\nc = 3\nb = 2\n# ... existing code ...\n"
READINGS = (
    "a = 1\nc = 3\nb = 2\nd = 4\na = 1\nb = 2\n",
    "a = 1\nb = 2\nd = 4\na = 1\nc = 3\nb = 2\n",
)
FITS_NOWHERE = "# ...\nx = 5\ny = 6\n# ...\n"
MODEL = "FastApply-1.5B-v1.0-Q8_0"


def refused(code: str, snippet: str, instruction: str = "") -> ModelMerge:
    with pytest.raises(AmbiguousSnippet) as refusal:
        apply_snippet(code, snippet, "python")
    return ModelMerge(code, snippet, refusal.value, instruction, "python")


def merged(merge: ModelMerge, text: str) -> str | None:
    """The file, where the model has it read ``text``."""
    return merge.merged(MODEL, unchanged(f"<updated-code>{text}</updated-code>"))


@pytest.mark.parametrize("above", [0, 1, 200])
@pytest.mark.parametrize("below", [0, 1, 200])
@pytest.mark.parametrize("number", [0, 1])
def test_a_model_may_choose_a_reading(above: int, below: int, number: int) -> None:
    head, tail = (
        "".join(f"{name}{n} = 0\n" for n in range(count))
        for name, count in (("x", above), ("y", below))
    )
    merge = refused(head + TWICE + tail, FITS_TWICE)
    assert merged(merge, head + READINGS[number] + tail) == head + READINGS[number] + tail


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not ended"])
def test_ends_and_marks_of_the_file_stay(end: str, mark: str, last: bool) -> None:
    def written(text: str) -> str:
        return mark + (text if last else text.removesuffix("\n")).replace("\n", end)

    merge = refused(written(TWICE), FITS_TWICE)
    model_s = unchanged(f"<updated-code>{READINGS[0]}</updated-code>")
    assert merge.merged(MODEL, model_s) == written(READINGS[0])


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


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_reading_does_not_count(case: str) -> None:
    merge = refused(TWICE, FITS_TWICE)
    answer = f"<updated-code>{WRONG[case]}</updated-code>"
    assert merge.merged(MODEL, unchanged(answer)) is None


@pytest.mark.parametrize("how", ["length", "loop", "broken", "cancelled"])
def test_an_answer_that_was_cut_does_not_count(how: str) -> None:
    answer = f"<updated-code>{READINGS[0]}</updated-code>"
    result = replace(unchanged(answer), stopped_by=how)
    assert refused(TWICE, FITS_TWICE).merged(MODEL, result) is None


def test_where_there_is_no_reading_the_lines_of_the_snippet_are_put_in() -> None:
    code = "a = 1\nb = 2\n"
    for text in (code + "x = 5\ny = 6\n", "x = 5\ny = 6\n" + code, "a = 1\nx = 5\ny = 6\nb = 2\n"):
        assert merged(refused(code, FITS_NOWHERE), text) == text
    for text in ("x = 5\ny = 6\n", code + "x = 5\n", code + "x = 5\n\ny = 7\n", code):
        answer = f"<updated-code>{text}</updated-code>"
        assert refused(code, FITS_NOWHERE).merged(MODEL, unchanged(answer)) is None


def test_a_model_that_was_not_made_for_it_is_not_asked() -> None:
    merge = refused(TWICE, FITS_TWICE)
    assert merge.job("any-instruct-1.5b") is None
    assert merge.merged("any-instruct-1.5b", unchanged(READINGS[0])) is None


def test_the_instruction_reaches_the_prompt() -> None:
    for words in ("", "put {code} into the second one"):
        job = refused(TWICE, FITS_TWICE, words).job(MODEL)
        assert job is not None
        text = (job.messages or [])[1][1]
        assert words in text
        assert FITS_TWICE in text
