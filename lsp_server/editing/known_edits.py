"""What the embedded model understands, and how it says so when asked for something else."""

from __future__ import annotations

from accel.text.edit_rules.recognition import recognise
from lsp_server.errors import EditRefused

UNDERSTOOD = (
    "rename a to b; add or remove a docstring, decorators, comments, prints; hint a as int; "
    "remove type hints; change a default; add a parameter; use f-strings; make it async"
)
"""What the sentence lists: an error's message has room for 300 characters."""


def not_understood(instruction: str, selection: str) -> str:
    """Why the embedded model cannot follow an instruction; empty where it can.

    It was trained on edits of known kinds, in English; of others it makes something.
    """
    unix = selection.replace("\r\n", "\n").replace("\r", "\n")
    if recognise(instruction, unix) is not None:
        return ""
    return (
        f"the embedded model does not understand this; it knows, in English: {UNDERSTOOD}. "
        "For more, set redraft.model.path to a larger model"
    )


def refuse_not_understood(instruction: str, selection: str) -> None:
    """Raises EditRefused for what the embedded model cannot follow."""
    if reason := not_understood(instruction, selection):
        raise EditRefused(reason)
