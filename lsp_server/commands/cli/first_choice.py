"""A model that was fetched is chosen at once where nothing is, so that every command finds it."""

from __future__ import annotations

from pathlib import Path

from lsp_server.editor.daemon.control import ask_daemon
from lsp_server.models.catalogue import model_at
from lsp_server.models.choices import field_of, read_choices, write_choice


def choose_if_none(file: Path, wanted_for: str | None = None) -> str:
    """Choose a fetched model if none is chosen, and return a sentence that says so, or how to
    choose it. ``wanted_for`` chooses it for this purpose in any case. Raises RedraftError."""
    if wanted_for is not None:
        return f"it is chosen for {_chosen(wanted_for, file)}"
    model = model_at(str(file))
    is_for_next_edits = "next-edit" in model.does and "fim" not in model.does
    purpose = "next-edits" if is_for_next_edits else "completion"
    purpose_option = f" --for {purpose}" if is_for_next_edits else ""
    fits = is_for_next_edits or "fim" in model.does
    if not fits or getattr(read_choices(), field_of(purpose)):
        return f"`redraft models use {file.stem}{purpose_option}` chooses it"
    return f"it is chosen for {_chosen(purpose, file)}, where nothing was"


def _chosen(purpose: str, file: Path) -> str:
    write_choice(purpose, str(file))
    ask_daemon("models")
    return purpose
