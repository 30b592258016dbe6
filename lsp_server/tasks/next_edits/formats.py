"""Prompt formats of models for next edits, as the table ``formats.json`` has them.

Each of these models rewrites a window of the file. A prompt holds the edits made of late, the
window as it is, and what is around it; the answer is the window as it becomes.

Sources: the model card of sweep-next-edit (Sweep A), the package sweep-autocomplete 0.1.1 (Sweep
B), ``crates/zeta_prompt`` of Zed (Zeta 1, 2 and 2.1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from lsp_server.shared.settings import NEXT_EDIT_FORMATS

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


def _read(name: str) -> NextEditFormat:
    """Return a format of the table; one ``like`` another differs in what is said."""
    fields: dict[str, Any] = {field: "".join(value) if field in ("prompt", "edit") else
              tuple(value) if isinstance(value, list) else value
              for field, value in _TABLE[name].items() if field != "like"}  # fmt: skip
    like = _TABLE[name].get("like")
    return replace(_read(like), name=name, **fields) if like else NextEditFormat(name, **fields)


_TABLE: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_suffix(".json").read_text("utf-8")
)
FORMATS = {name: _read(name) for name in _TABLE}
assert tuple(FORMATS) == NEXT_EDIT_FORMATS, "the setting names every format"


def format_for(
    names: str, has_token: Callable[[str], bool], *, is_ours: bool = False
) -> NextEditFormat | None:
    """Return the format that a model was trained on; None where it knows none of the table.

    ``names``: what it is called, by its metadata and its file; ``has_token``: whether its
    vocabulary has a token of this name; ``is_ours``: it has an adapter of ours.
    """
    if is_ours:
        ours = (FORMATS["redraft"], FORMATS["redraft-piped"])
        return next((own for own in ours if fits(own, has_token)), None)
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
