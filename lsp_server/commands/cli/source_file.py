"""Files that are named on the command line."""

from __future__ import annotations

from pathlib import Path

from lsp_server.shared.errors import RedraftError


def read_text(path: Path) -> str:
    """The text of a file. Raises RedraftError where it cannot be read or is not UTF-8."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as error:
        raise RedraftError(f"{path} cannot be read ({error.strerror})") from None
    except UnicodeDecodeError as error:
        raise RedraftError(f"{path} is not UTF-8 text ({error.reason})") from None


def workspace_of(path: Path) -> Path:
    """The repository that holds a file: the nearest folder with ``.git``, else its own folder."""
    for folder in path.parents:
        if (folder / ".git").exists():
            return folder
    return path.parent
