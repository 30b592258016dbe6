"""Prompt formats of models for next edits, as one table.

Each of these models rewrites a window of the file. A prompt holds the edits made of late, the
window as it is, and what is around it; the answer is the window as it becomes.

Sources: the model card of sweep-next-edit (Sweep A), the package sweep-autocomplete 0.1.1 (Sweep
B), ``crates/zeta_prompt`` of Zed (Zeta 1, 2 and 2.1).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from lsp_server.shared.next_edit_formats import NEXT_EDIT_FORMATS

Answer = Literal["window", "tagged", "conflict", "markers"]
"""What an answer is: the window alone, the window between two tags, the window before the end of a
conflict, or the blocks that change between their markers."""


@dataclass(frozen=True, slots=True)
class NextEditFormat:
    """One format. In templates ``{name}`` stands for text of the user; every such text ends with
    its line, and all around it is the format's own, names of control tokens among it.

    Fields of ``prompt``: ``path``, ``edits``, ``original`` (the window before the last edit),
    ``window``, ``before`` and ``after`` (what is around it), ``start`` and ``end`` (line
    numbers of the window, from 1), ``file`` (a long stretch around it), ``prefill`` (what of the
    answer is written ahead). Fields of ``edit``: ``path``, ``old``, ``new``, ``start``, ``end``,
    ``hunk`` (as in unified diffs).
    """

    name: str
    title: str
    models: str
    """What names of models hold that are asked so, a regular expression; empty for none."""
    tokens: tuple[str, ...]
    """Control tokens that a vocabulary has to have."""
    prompt: str
    edit: str
    between_edits: str = ""
    suggested: str = ""
    """Stands before an edit that a suggestion made."""
    most_edits: int = 3
    edit_context: int = 1
    """Unchanged lines on each side of an edit."""
    most_edit_lines: int = 40
    lines_above: int = 10
    lines_below: int = 10
    """The window, around the line of the cursor."""
    window_tokens: int = 0
    """In place of lines: as many as have so many tokens, estimated."""
    context_tokens: int = 0
    """Of ``before`` and of ``after``."""
    file_lines: int = 0
    """Of ``file``, at most."""
    cursor: str = ""
    """Marks the cursor in ``window``; empty where nothing does."""
    answer: Answer = "window"
    opens: str = ""
    closes: str = ""
    """Around the window in an answer."""
    nothing: str = ""
    """The answer that changes nothing, where it has words of its own."""
    marker: str = ""
    """Comes before each block of the window, with its ``{number}``."""
    file_start: str = ""
    """Comes before the first line of a file."""
    stops: tuple[str, ...] = ()
    writes_ahead: bool = False
    """The lines above the cursor are written ahead: the answer begins after them."""
    is_shown: bool = True
    """False where less than 80 % of what its models propose is right: the setting alone asks
    them."""
    original_of_unfinished: bool = False
    """Where the cursor is in the last edit, ``original`` is the window before that, which is none
    of ``edits``: what a key changes comes late in the prompt. Else it is the window as it is."""

    @property
    def window_copies(self) -> int:
        """The number of times that the window is computed: in the prompt, and as the answer."""
        return self.prompt.count("{window}") + self.prompt.count("{original}") + 1

    @property
    def marks(self) -> tuple[str, ...]:
        """Texts that only the format itself may hold: a file with one is not shown to the model."""
        own = (*self.tokens, *self.stops, self.cursor, self.opens, self.closes)
        return tuple(dict.fromkeys(mark.strip("\n") for mark in own if mark.strip("\n")))


SWEEP_A = NextEditFormat(
    name="sweep-a",
    title="Sweep next-edit, as on its model card",
    models=r"sweep-?next-?edit|next-?edit.*sweep",
    tokens=("<|file_sep|>",),
    prompt=(
        "{edits}"
        "<|file_sep|>original/{path}\n{original}"
        "<|file_sep|>current/{path}\n{window}"
        "<|file_sep|>updated/{path}\n"
    ),
    edit="<|file_sep|>{path}.diff\noriginal:\n{old}updated:\n{new}",
    stops=("<|file_sep|>", "<|endoftext|>", "</s>"),
)

REDRAFT = replace(
    SWEEP_A,
    name="redraft",
    title="Sweep A with <file_sep>, as our adapters teach it",
    models="",
    tokens=("<file_sep>",),
    prompt=SWEEP_A.prompt.replace("<|file_sep|>", "<file_sep>"),
    edit=SWEEP_A.edit.replace("<|file_sep|>", "<file_sep>"),
    stops=("<file_sep>", "<|endoftext|>"),
    is_shown=False,
    original_of_unfinished=True,
)

REDRAFT_PIPED = replace(
    SWEEP_A,
    name="redraft-piped",
    title="the same with <|file_sep|>",
    models="",
    is_shown=False,
    original_of_unfinished=True,
)

SWEEP_B = replace(
    SWEEP_A,
    name="sweep-b",
    title="Sweep next-edit, as its own server asks",
    models="",
    prompt=(
        "<|file_sep|>{path}\n{file}"
        "{edits}"
        "<|file_sep|>original/{path}:{start}:{end}\n{original}"
        "<|file_sep|>current/{path}:{start}:{end}\n{window}"
        "<|file_sep|>updated/{path}:{start}:{end}\n{prefill}"
    ),
    edit="<|file_sep|>{path}:{start}:{end}\noriginal:\n{old}updated:\n{new}",
    most_edits=6,
    lines_above=2,
    lines_below=5,
    file_lines=300,
    cursor="<|cursor|>",
    stops=("<|endoftext|>", "<|file_sep|>"),
    writes_ahead=True,
)

ZETA_1 = NextEditFormat(
    name="zeta-1",
    title="Zeta (Zed)",
    models=r"(?<![a-z])zeta(?![a-z]|[-_. ]?v?[23])",
    tokens=(),
    prompt=(
        "### Instruction:\n"
        "You are a code completion assistant and your task is to analyze user edits and then "
        "rewrite an excerpt that the user provides, suggesting the appropriate edits within the "
        "excerpt, taking into account the cursor location.\n\n"
        "### User Edits:\n\n{edits}\n"
        "### User Excerpt:\n\n```{path}\n{before}"
        "<|editable_region_start|>\n{window}<|editable_region_end|>\n{after}```\n\n"
        "### Response:\n"
    ),
    edit="User edited {path}:\n```diff\n{hunk}```\n",
    between_edits="\n",
    most_edits=6,
    edit_context=3,
    window_tokens=350,
    context_tokens=150,
    cursor="<|user_cursor_is_here|>",
    answer="tagged",
    opens="<|editable_region_start|>",
    closes="<|editable_region_end|>",
    file_start="<|start_of_file|>\n",
    stops=("<|editable_region_end|>",),
)

ZETA_2 = replace(
    ZETA_1,
    name="zeta-2",
    title="Zeta 2 (Zed)",
    models=r"(?<![a-z])zeta[-_. ]?v?2(?![._]?\d)",
    tokens=("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"),
    prompt=(
        "<[fim-suffix]>{after}"
        "<[fim-prefix]><filename>edit_history\n{edits}\n"
        "<filename>{path}\n{before}<<<<<<< CURRENT\n{window}=======\n<[fim-middle]>"
    ),
    edit="--- a/{path}\n+++ b/{path}\n{hunk}",
    between_edits="",
    suggested="// User accepted prediction:\n",
    cursor="<|user_cursor|>",
    answer="conflict",
    opens="",
    closes=">>>>>>> UPDATED",
    nothing="NO_EDITS",
    file_start="",
    stops=(">>>>>>> UPDATED", "<[end▁of▁sentence]>"),
)

ZETA_2_1 = replace(
    ZETA_2,
    name="zeta-2.1",
    title="Zeta 2.1 (Zed)",
    models=r"(?<![a-z])zeta[-_. ]?v?2[._]1",
    prompt=(
        "<[fim-suffix]>{after}"
        "<[fim-prefix]><filename>edit_history\n{edits}\n"
        "<filename>{path}\n{before}{window}\n<[fim-middle]>"
    ),
    answer="markers",
    closes="",
    nothing="",
    marker="<|marker_{number}|>",
    stops=("<[end▁of▁sentence]>",),
)

FORMATS = {
    each.name: each for each in (REDRAFT, REDRAFT_PIPED, SWEEP_A, SWEEP_B, ZETA_1, ZETA_2, ZETA_2_1)
}  # fmt: skip
assert tuple(FORMATS) == NEXT_EDIT_FORMATS, "the setting names every format"


def format_for(
    names: str, has_token: Callable[[str], bool], *, is_ours: bool = False
) -> NextEditFormat | None:
    """Return the format that a model was trained on; None where it knows none of the table.

    ``names``: what it is called, by its metadata and its file; ``has_token``: whether its
    vocabulary has a token of this name; ``is_ours``: it has an adapter of ours.
    """
    if is_ours:
        return next((own for own in (REDRAFT, REDRAFT_PIPED) if fits(own, has_token)), None)
    for candidate in FORMATS.values():
        if (
            candidate.models
            and re.search(candidate.models, names, re.IGNORECASE)
            and fits(candidate, has_token)
        ):
            return candidate
    return None


def fits(format_: NextEditFormat, has_token: Callable[[str], bool]) -> bool:
    """Return True if a vocabulary has the tokens of a format."""
    return all(map(has_token, format_.tokens))
