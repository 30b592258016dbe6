"""Answers of chat models, and what a selection becomes by one."""

from __future__ import annotations

from pathlib import Path

from lsp_server.shared.contract.jobs import EditJob, JobResult
from lsp_server.tasks.editing.answers import code_of_answer
from lsp_server.tasks.editing.shown_text import ShownText
from lsp_server.tasks.editing.task import fitted, put_in

FOLDER = Path(__file__).parents[1] / "data" / "answers"


def edited(
    old: str,
    answer: str,
    instruction: str = "change it",
    language: str = "python",
    before: str = "",
    after: str = "",
) -> str:
    """What a selection becomes by an answer, as it is put into the document."""
    job = EditJob("", "a.py", instruction, old, before, after, language)
    shown = ShownText(old, instruction)
    code = code_of_answer(
        answer, shown.text, language=language, instruction=instruction, before=before, after=after
    )
    result = JobResult(code, [], 1, 1, 0.0, 0.0, {}, "end")
    return put_in(shown, job, fitted(result, shown.text)).text


def fenced(text: str, language: str = "python") -> str:
    return f"```{language}\n{text}```"


def lines_of(name: str) -> list[str]:
    """Each line of a file of cases is one."""
    return (FOLDER / name).read_text("utf-8").splitlines()


def cases_of(name: str) -> dict[str, dict[str, str]]:
    """Cases by name: ``%%% name``, then fields, as ``%% field: text`` or as ``%% field`` and lines.

    The text that is edited is that of the case before where a case has none.
    """
    cases: dict[str, dict[str, str]] = {}
    for text in (FOLDER / name).read_text("utf-8").removeprefix("%%% ").split("\n%%% "):
        title, *fields = text.removesuffix("\n").split("\n%% ")
        case = {"old": next(reversed(cases.values()))["old"] if cases else ""}
        for field in fields:
            head, _, lines = field.partition("\n")
            key, colon, value = head.partition(": ")
            case[key] = value if colon else f"{lines}\n"
        cases[title] = case
    return cases
