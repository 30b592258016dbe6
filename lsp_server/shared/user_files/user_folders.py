"""The user's folders for caches, data and state. Folders that cannot be used are replaced.

Standard library only. It is called once, before a command runs; children inherit what it found.
Source: the XDG Base Directory Specification 0.8.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lsp_server.shared.errors import NoUserFolder
from operating_system.files import problem_of_private
from operating_system.folders import base_folder, spare_folder
from operating_system.system import is_windows

_HOMES = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_OWN_FOLDERS = ("REDRAFT_LOG_DIR", "REDRAFT_DATA")
"""Folders that a user names for us; a relative one is meant from where the command runs."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A folder that cannot be used, why, and what is used in its place."""

    wanted: str
    reason: str
    used: str


def settle() -> list[Replaced]:
    """Put folders that can be written to into the environment; what had to be replaced.

    A relative HOME or XDG folder is passed over, as the specification says. Where nothing can be
    written below the home, a private folder among the temporary files is used. Raises NoUserFolder
    where that cannot be made either.
    """
    if is_windows():
        # The system names them there, and not the environment.
        return []
    for name in _OWN_FOLDERS:
        if value := os.environ.get(name):
            os.environ[name] = os.path.abspath(value)
    replaced = [*_settle_home(), *_settle_runtime()]
    for name in _HOMES:
        value = os.environ.get(name, "")
        if value and not os.path.isabs(value):
            del os.environ[name]
            value = ""
        requested = Path(value) if value else base_folder(name)
        if reason := _why_unusable(requested):
            fallback = _fallback_folder()
            used = fallback / name.split("_")[1].lower()
            if problem := _why_unusable(used):
                raise NoUserFolder(_no_folder(requested, reason, used, problem))
            os.environ[name] = str(used)
            replaced.append(Replaced(str(requested), reason, str(fallback)))
    return replaced


def replaced_message(replaced: list[Replaced]) -> str:
    """One sentence for the user about folders that had to be replaced."""
    requested, reasons, used = (
        ", ".join(dict.fromkeys(values))
        for values in zip(
            *(
                (replacement.wanted, replacement.reason, replacement.used)
                for replacement in replaced
            ),
            strict=True,
        )
    )
    return (
        f"cannot use {requested} ({reasons}); used instead: {used}; set HOME to a folder of yours"
    )


def _settle_home() -> list[Replaced]:
    value = os.environ.get("HOME", "")
    if os.path.isabs(value):
        return []
    # Without it, expanduser asks the system who the user is.
    os.environ.pop("HOME", None)
    used = os.path.expanduser("~")
    if not os.path.isabs(used):
        os.environ["HOME"] = used = str(_fallback_folder())
        return [Replaced("the home", "the system knows none of this user", used)]
    return [Replaced(f"HOME={value}", "it is relative", used)] if value else []


def _settle_runtime() -> list[Replaced]:
    """Without ``XDG_RUNTIME_DIR`` sockets are kept in the cache."""
    value = os.environ.get("XDG_RUNTIME_DIR")
    if not value:
        return []
    reason = _why_unusable(Path(value)) if os.path.isabs(value) else "it is relative"
    if not reason:
        return []
    del os.environ["XDG_RUNTIME_DIR"]
    return [Replaced(f"XDG_RUNTIME_DIR={value}", reason, "the folder for caches")]


def _why_unusable(folder: Path) -> str:
    """Return why no file can be kept below a folder, made if missing; empty if it can."""
    own = folder / "redraft"
    try:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=own):
            return ""
    except OSError as error:
        return error.strerror or str(error)


def _fallback_folder() -> Path:
    """Return a private folder among the temporary files. Raises NoUserFolder."""
    try:
        folder = spare_folder()
        folder.mkdir(mode=0o700, exist_ok=True)
        problem = problem_of_private(folder)
    except OSError as error:
        raise NoUserFolder(
            f"no folder can be written to ({error.strerror}); set HOME to a folder of yours"
        ) from error
    if problem:
        raise NoUserFolder(
            f"HOME cannot be written to, and {folder} is not yours alone; set HOME to a folder "
            "of yours, or remove that one"
        )
    return folder


def _no_folder(requested: Path, reason: str, used: Path, problem: str) -> str:
    return (
        f"neither {requested} ({reason}) nor {used} ({problem}) can be written to; set HOME to a "
        "folder of yours"
    )
