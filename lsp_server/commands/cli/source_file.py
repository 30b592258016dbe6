"""Files that are named on the command line."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from lsp_server.shared.errors import RedraftError
from operating_system.files_inside import Replacement, read_inside


def read_text(path: Path) -> str:
    """Return the text of a file. Raises RedraftError where it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise RedraftError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise RedraftError(f"{path} is not UTF-8 text ({error.reason})") from None


def replace_text(path: Path, before: str, after: str) -> None:
    """Have a file that read ``before`` read ``after``, in one step and with the permissions it has.
    A link's target is written where it lies in the same workspace. Raises RedraftError, and leaves
    the file alone, where that cannot be done or it reads otherwise by now."""
    resolved, workspace = path.resolve(), workspace_of(path.absolute()).resolve()
    if not resolved.is_relative_to(workspace):
        raise RedraftError(
            f"{path} leads to {resolved}, outside of {workspace}; name that file itself"
        )
    old, new = (text.encode("utf-8", "surrogateescape") for text in (before, after))
    try:
        content = read_inside(resolved.parent, resolved.name, len(old) + 1)
        if content.data != old:
            raise RedraftError(f"{path} changed while it was edited; nothing written")
        with closing(Replacement(resolved.parent, resolved.name, content, new)) as replacement:
            replacement.commit()
    except OSError as error:
        raise RedraftError(
            f"{path} cannot be written ({error.strerror or error}); nothing changed"
        ) from error


def workspace_of(path: Path) -> Path:
    """Return the repository of a file: the nearest folder with ``.git``, else its own."""
    for folder in path.parents:
        if (folder / ".git").exists():
            return folder
    return path.parent
