"""What a model changed beyond what it was asked to is marked on its hunk."""

from __future__ import annotations

import asyncio

import pytest
from engine_stand_in import EngineStandIn
from text_cases import data_cases

from lsp_server.editor.editing.checks import (
    NOT_IN_INSTRUCTION,
    ONLY_WHITE_SPACE,
    SURE,
    doubt_about,
    noted_hunks,
)
from lsp_server.editor.editing.hunks import apply_hunks, minimal_hunks
from lsp_server.editor.editing.instruction_comments import comment_span, without_span
from lsp_server.editor.editing.provider import EditProvider, EditRequest, EditResult
from lsp_server.editor.requests.edits import refuse_nothing
from lsp_server.models.manifest import DEFAULT, DEFAULT_FILE, read_manifest
from lsp_server.shared.contract.jobs import EditJob
from lsp_server.shared.errors import EditRefused
from lsp_server.shared.settings import Settings
from lsp_server.tasks.editing.shown_text import ShownText
from lsp_server.tasks.editing.splice import spliced
from lsp_server.tasks.indentation import with_end_of
from lsp_server.text.documents.document import Document, Position
from lsp_server.text.text_edit import TextEdit

OLD = "def total(prices):\n    # Sum.\n    tax = 1\n\n    return sum(prices) * tax\n"


def engine_of(answer: str, model: str) -> EngineStandIn:
    """Puts in what the test says a model answers."""

    def written(job: EditJob) -> str:
        shown = ShownText(job.selection)
        return spliced(shown, with_end_of(shown.text, answer))

    return EngineStandIn(written, model=model)


def edited(
    text: str, answer: str, instruction: str, *, comment: bool = False, language: str = "python",
    model: str = "/models/other.gguf",
) -> tuple[EditResult, EngineStandIn]:  # fmt: skip
    document, engine = Document("u", language, 1, text), engine_of(answer, model)
    provider = EditProvider("c", Settings, lambda: engine)
    request = EditRequest(
        document, "u.py", "", Position(0, 0), document.end(), instruction, with_comment=comment
    )
    return asyncio.run(provider.edit(request)), engine


def applied(text: str, edit: EditResult) -> str:
    document = Document("u", "python", 1, text)
    return apply_hunks(
        text,
        [TextEdit(document.offset(one.start), document.offset(one.end), one.text)
         for one in edit.changes],
    )  # fmt: skip


ASKED = {
    "Add a docstring.": (":\n    # Sum.", ':\n    """Sum."""\n    # Sum.'),
    "remove the comments": ("    # Sum.\n", ""),
    "add type hints": ("prices)", "prices: list[int]) -> int"),
}


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("instruction", ASKED)
def test_a_hunk_that_is_more_than_the_instruction_is_noted(instruction: str, line_end: str) -> None:
    old, (before, after) = OLD.replace("\n", line_end), ASKED[instruction]
    new = OLD.replace(before, after, 1).replace("\n", line_end)
    assert new != old
    assert {one.note for one in noted_hunks(old, new, instruction, "python")} == {""}
    more = new.replace("sum(", "max(")
    notes = [one.note for one in noted_hunks(old, more, instruction, "python")]
    assert notes.count(NOT_IN_INSTRUCTION) == 1
    assert notes[-1] == NOT_IN_INSTRUCTION
    other = noted_hunks(old, more, "make it " + instruction, "python")
    assert {one.note for one in other} == {""}


def test_an_answer_that_changes_more_than_the_instruction_is_shown_with_a_warning() -> None:
    more = OLD.replace("    # Sum.\n", "").replace("sum(", "max(")
    for answer, told in ((more, "more than it was asked to"), (OLD[:-7] + "(\n", "does not parse")):
        assert told in edited(OLD, answer, "remove the comments")[0].warning
    fine = OLD.replace("    # Sum.\n", "")
    assert edited(OLD, fine, "remove the comments")[0].warning == ""


def test_an_answer_of_the_default_that_does_not_parse_is_refused() -> None:
    default = f"/models/{DEFAULT_FILE}"
    with pytest.raises(EditRefused, match="does not parse"):
        edited(OLD, OLD[:-7] + "(\n", "make it faster", model=default)
    assert edited(OLD, OLD.replace("1", "2"), "make it faster", model=default)[0].warning == ""
    (offered,) = (one for one in read_manifest() if one.name == DEFAULT)
    assert offered.file == DEFAULT_FILE


def test_a_rename_that_does_not_parse_is_refused_from_every_model() -> None:
    broken = OLD.replace("prices", "all prices")
    assert broken != OLD
    with pytest.raises(EditRefused, match="does not parse"):
        edited(OLD, broken, "rename prices to all prices")


def test_an_instruction_of_no_known_kind_notes_white_space_alone() -> None:
    edit, _ = edited(OLD, OLD.replace("= 1", "=  1").replace("sum(", "max("), "be quick")
    assert [one.note for one in edit.changes] == [ONLY_WHITE_SPACE, ""]


@data_cases()
def test_code_before_an_instruction_comment_stays(text: str, seen: str, kept: str) -> None:
    edit, engine = edited(text, seen.upper(), "shout", comment=True, language="text")
    assert ShownText(engine.jobs[0].selection).text == seen.rstrip("\n")
    assert "redraft" not in engine.jobs[0].before
    after = applied(text, edit)
    assert "redraft" not in after.lower()
    assert kept.upper() in after


def test_an_instruction_comment_stays_where_nothing_changes() -> None:
    text = "x = 1  # redraft: shout\n"
    edit, _ = edited(text, "x = 1\n", "shout", comment=True)
    assert edit.changes == []


@data_cases()
def test_the_comment_goes_with_the_changes_of_the_rest(text: str, new: str) -> None:
    start, end = comment_span(text)
    code = text[:start] + text[end:]
    hunks = without_span(minimal_hunks(code, new), start, end)
    assert apply_hunks(text, hunks) == new


def test_a_rename_needs_no_answer_of_a_model() -> None:
    edit, engine = edited(OLD, "nonsense", "rename prices to items")
    assert applied(OLD, edit) == OLD.replace("prices", "items")
    assert engine.jobs == []


UNHELPED = "the model left the lines as they are; rephrase the instruction"


async def names_a_model(model: str) -> str:
    assert model == "/models/other.gguf"
    return "another model does more"


def edited_with_help(answer: str) -> EditResult:
    document = Document("u", "python", 1, OLD)
    engine = engine_of(answer, "/models/other.gguf")
    provider = EditProvider("c", Settings, lambda: engine, what_helps=names_a_model)
    request = EditRequest(document, "u.py", "", Position(0, 0), document.end(), "make it async")
    return asyncio.run(provider.edit(request))


def test_an_answer_that_changes_nothing_says_what_would_help() -> None:
    edit, _ = edited(OLD, OLD, "make it async")
    assert (edit.changes, edit.warning) == ([], UNHELPED)
    with pytest.raises(EditRefused, match=UNHELPED):
        refuse_nothing(edit)
    edit = edited_with_help(OLD)
    assert edit.warning == f"{UNHELPED}. Another model does more"
    edit = edited_with_help(OLD.replace("def", "async def"))
    assert (bool(edit.changes), edit.warning) == (True, "")


def test_a_refusal_says_what_would_help() -> None:
    with pytest.raises(EditRefused, match=r"rephrase the instruction\. Another model does more"):
        edited_with_help("\n")


RAMBLING = [
    "class Verifier:\n"
    + "".join(f"    def check_{one}(self, {one}): ...\n" for one in names.split())
    for names in (
        "alpha beta gamma delta epsilon zeta eta theta iota kappa mu nu xi omicron",
        "north south east west up down left right front back inside outside here there",
        "mars venus earth saturn pluto neptune moon sun comet star galaxy dust void light",
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen",
        "red green blue white black grey pink brown olive navy teal lime cyan gold",
    )
]


@pytest.mark.parametrize("text", RAMBLING)
@data_cases()
def test_much_text_from_nowhere_that_was_not_asked_for_is_doubtful(
    text: str, instruction: str, is_doubtful: bool
) -> None:
    new = f"{OLD}\n{text}"
    doubt = doubt_about(OLD, new, "python", instruction, OLD)
    assert ("much that was not asked for" in doubt) is is_doubtful
    notes = [one.note for one in noted_hunks(OLD, new, instruction, "python", OLD)]
    assert (NOT_IN_INSTRUCTION in notes) is is_doubtful
    known_text = doubt_about(OLD, new, "python", instruction, f"{OLD}\n{text.upper()}")
    assert "much" not in known_text
    few = f"{OLD}\n{''.join(text.splitlines(keepends=True)[:5])}"
    assert "much" not in doubt_about(OLD, few, "python", instruction, OLD), "a few lines"
    edit, _ = edited(OLD, new, instruction)
    assert bool(edit.warning) is is_doubtful


@pytest.mark.parametrize(("model", "sure"), [(DEFAULT_FILE, SURE), ("other.gguf", None)])
def test_the_default_model_alone_is_asked_how_sure_it_is(model: str, sure: float | None) -> None:
    _, engine = edited(OLD, OLD, "add a docstring", model=f"/models/{model}")
    assert [job.sure for job in engine.jobs] == [sure]


def test_a_rename_below_an_instruction_comment_goes_beyond_the_selection() -> None:
    text = "unit = 1\n# redraft: rename unit to size\nprint(unit)\nprint(unit + 1)\n"
    document = Document("u", "python", 1, text)
    provider = EditProvider("c", Settings, lambda: engine_of("", "m"))
    start, end = Position(1, 0), Position(2, 11)
    request = EditRequest(
        document, "u.py", "", start, end, "rename unit to size", with_comment=True
    )
    edit = asyncio.run(provider.edit(request))
    assert applied(text, edit) == "size = 1\nprint(size)\nprint(size + 1)\n"
    assert edit.text == "print(size)"
    assert "-unit = 1\n" in edit.diff
