"""Notes to an engine about workspaces and documents. They have no answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from lsp_server.shared.contract.codec import read, to_json
from lsp_server.shared.contract.jobs import AcceptedText


@dataclass(frozen=True, slots=True)
class OpenWorkspace:
    """Use the datastore of a workspace from now on. With ``store``, where that is, ``folder`` may
    be any name."""

    operation: ClassVar[str] = "open_workspace"
    folder: str
    store: str = ""


@dataclass(frozen=True, slots=True)
class ReloadIndex:
    """The datastore of a workspace, kept in ``store``, changed on disk."""

    operation: ClassVar[str] = "reload_index"
    folder: str
    store: str = ""


@dataclass(frozen=True, slots=True)
class CloseWorkspace:
    """No client has the workspace open any more."""

    operation: ClassVar[str] = "close_workspace"
    folder: str


@dataclass(frozen=True, slots=True)
class SetBuffer:
    """An open document reads ``text`` now; it counts in place of its file."""

    operation: ClassVar[str] = "set_buffer"
    folder: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class CloseBuffer:
    """A document was closed; its file counts again."""

    operation: ClassVar[str] = "close_buffer"
    folder: str
    path: str


@dataclass(frozen=True, slots=True)
class ForgetDocument:
    """A document is held back: nothing of it is kept, on disk or elsewhere."""

    operation: ClassVar[str] = "forget_document"
    folder: str
    path: str


Note = (
    OpenWorkspace
    | ReloadIndex
    | CloseWorkspace
    | SetBuffer
    | CloseBuffer
    | ForgetDocument
    | AcceptedText
)
_KINDS: dict[str, type[Note]] = {kind.operation: kind for kind in get_args(Note)}


def note_frame(note: Note) -> dict[str, Any]:
    """Return a note as a frame."""
    return {"op": note.operation, **to_json(note)}


def note_of(frame: dict[str, Any]) -> Note:
    """Return the note in a frame. Raises KeyError for an unknown one, Unreadable."""
    values = {name: value for name, value in frame.items() if name != "op"}
    return read(_KINDS[frame["op"]], values)
