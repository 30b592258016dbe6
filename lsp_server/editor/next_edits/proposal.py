"""A next edit: replacements in one document, or a place to look at."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.editor.editing.hunks import Hunk


@dataclass(frozen=True, slots=True)
class Proposal:
    """What the user may want to change next.

    ``hunks`` are replacements in the text of the file at ``path``, in order; where there are none,
    the user is led to ``place`` and writes himself.
    """

    path: str
    """Of another file, in the workspace of the edited document; empty for that document."""
    hunks: tuple[Hunk, ...]
    title: str
    """What it does, in a line: ``rename count to total``."""
    text: str = ""
    """The text of the other file, as it was read."""
    place: int = -1
    """Code points before the place to look at."""

    @property
    def start(self) -> int:
        """Code points before what it changes, or before the place."""
        return self.hunks[0].start if self.hunks else self.place
