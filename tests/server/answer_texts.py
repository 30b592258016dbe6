"""Answers of chat models, and what a selection becomes by one."""

from __future__ import annotations

from lsp_server.shared.contract.jobs import EditJob, JobResult
from lsp_server.tasks.editing.answers import code_of_answer
from lsp_server.tasks.editing.shown_text import ShownText
from lsp_server.tasks.editing.task import fitted, put_in


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
