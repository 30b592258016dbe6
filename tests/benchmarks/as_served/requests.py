"""Requests that are asked of a server and of an engine in this process alike."""

from __future__ import annotations

from typing import NamedTuple

from lsp_server.shared.contract.jobs import AnyJob, CompletionJob, EditJob, GenerateJob
from tests.benchmarks.team.shared_forwards import prompt_text

COMPLETION, EDIT, NEXT_EDIT = "completions", "edits", "next edits"
INSTRUCTION = "add type hints"
SELECTED = slice(6, 14)
"""Lines that an edit rewrites."""
WINDOW = slice(10, 26)
"""Lines that a next edit rewrites; the edit before it changed the first of them."""


class ServedRequest(NamedTuple):
    """A text of the project, by ``number``, and what is asked about it."""

    kind: str
    number: int
    tokens: int
    """Of the answer, at most."""

    @property
    def path(self) -> str:
        """The file's path, relative to a workspace."""
        return f"{self.kind.replace(' ', '_')}_{self.number}.py"

    @property
    def text(self) -> str:
        """The file's text up to the cursor."""
        return prompt_text(self.number)

    @property
    def job(self) -> AnyJob:
        """The job that an engine computes for it."""
        text = self.text
        if self.kind == COMPLETION:
            return CompletionJob("", self.path, text, "", language="python", max_tokens=self.tokens)
        if self.kind == EDIT:
            lines = text.splitlines(keepends=True)
            before, after = lines[: SELECTED.start], lines[SELECTED.stop :]
            return EditJob(
                *("", self.path, INSTRUCTION, "".join(lines[SELECTED])),
                *("".join(before), "".join(after), "python"),
                max_tokens=4 * self.tokens,
            )
        return GenerateJob(text=self.prompt, prediction=self.window, max_tokens=2 * self.tokens)

    @property
    def window(self) -> str:
        """The lines that a next edit rewrites, whose first was just changed."""
        first, *others = self.text.splitlines(keepends=True)[WINDOW]
        return "".join([f"{first.rstrip()}  # changed\n", *others])

    @property
    def prompt(self) -> str:
        """The prompt of a next edit as clients of other servers send it."""
        original = "".join(self.text.splitlines(keepends=True)[WINDOW])
        old, new = (text.partition("\n")[0] + "\n" for text in (original, self.window))
        return (
            f"<file_sep>{self.path}.diff\noriginal:\n{old}updated:\n{new}"
            f"<file_sep>original/{self.path}\n{original}"
            f"<file_sep>current/{self.path}\n{self.window}"
            f"<file_sep>updated/{self.path}\n"
        )


class TimedText(NamedTuple):
    """The answer to a request."""

    text: str
    tokens: int
    forwards: int
    rows: int
    seconds: float
    """Of the wall's clock, without the prompt's."""
    first_s: float
    """Until the first text came, the prompt counted; 0 where it was not noted."""
