"""The models that the user chose, in one file. ``used`` decides what follows from it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from lsp_server.shared.errors import RedraftError
from operating_system.files import write_private
from operating_system.folders import config_folder

PURPOSES = ("completion", "edits", "next-edits", "drafts")


def field_of(purpose: str) -> str:
    """Return the name of a purpose in ``Choices`` and in its file."""
    return purpose.replace("-", "_")


@dataclass(frozen=True, slots=True)
class Choices:
    """Paths of models; empty where none is chosen. completion: for suggestions, and for edits where
    ``edits`` is empty, and for next edits likewise; drafts: a small one that proposes the new text
    of edits."""

    completion: str = ""
    edits: str = ""
    next_edits: str = ""
    drafts: str = ""


def choices_file() -> Path:
    """Return the file that holds the user's choices."""
    return config_folder() / "models.json"


def read_choices() -> Choices:
    """Return the user's choices; a damaged file counts as none."""
    try:
        values = json.loads(choices_file().read_text("utf-8"))
        names = map(field_of, PURPOSES)
        chosen = {name: values.get(name, "") for name in names}
    except (OSError, ValueError, AttributeError):
        return Choices()
    return Choices(**{name: path for name, path in chosen.items() if isinstance(path, str)})


def write_choice(purpose: str, path: str) -> None:
    """Choose a model; an empty path takes a choice back. Raises RedraftError."""
    assert purpose in PURPOSES, purpose
    file = choices_file()
    chosen = replace(read_choices(), **{field_of(purpose): path})
    try:
        write_private(file, json.dumps(asdict(chosen), indent=2) + "\n")
    except OSError as error:
        raise RedraftError(
            f"{file} cannot be written ({error.strerror}); set redraft.model.path in your editor"
        ) from error
