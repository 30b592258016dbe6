"""Stores the user's answers: which workspaces a server may copy."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from operating_system.files import file_state, write_private
from operating_system.folders import state_folder

logger = logging.getLogger(__name__)


def answers_file() -> Path:
    """Where the answers are kept."""
    return state_folder() / "shared-workspaces.json"


class SharingAnswers:
    """Answers by the origin of a server and the folder of a workspace, shared by all clients."""

    def __init__(self, file: Path | None = None) -> None:
        """``file``: where they are kept; without one they are forgotten."""
        self._file = file
        self._state: tuple[int, ...] | None = None
        self._answers: dict[str, dict[str, str]] = {}

    def may(self, origin: str, folder: str) -> bool | None:
        """Whether a workspace may be sent to a server; None where the user was not asked."""
        self._read_again()
        answer = self._answers.get(origin, {}).get(_name(folder))
        return None if answer is None else answer != "no"

    def repository(self, origin: str, folder: str) -> str:
        """The id that a server gave a workspace; empty where it gave none."""
        self._read_again()
        answer = self._answers.get(origin, {}).get(_name(folder), "no")
        return "" if answer in ("no", "yes") else answer

    def allow(self, origin: str, folder: str, repository: str = "") -> None:
        """The user allows it; ``repository``: the id that the server gave."""
        self._set(origin, folder, repository or "yes")

    def refuse(self, origin: str, folder: str) -> None:
        """The user does not."""
        self._set(origin, folder, "no")

    def ended(self, origin: str, folder: str, repository: str) -> None:
        """The server has the repository no more: the user is to be asked again, unless they
        answered otherwise meanwhile."""
        if self.repository(origin, folder) == repository:
            del self._answers[origin][_name(folder)]
            self._save()

    def refuse_repository(self, origin: str, repository: str) -> None:
        """The user deleted a repository: its workspace is not sent again."""
        self._read_again()
        for folder, answer in self._answers.get(origin, {}).items():
            if answer == repository:
                self._answers[origin][folder] = "no"
        self._save()

    def _read_again(self) -> None:
        """Another process may have written the file."""
        if self._file is not None and (state := file_state(self._file)) != self._state:
            self._state = state
            self._answers = _read(self._file)

    def _set(self, origin: str, folder: str, answer: str) -> None:
        self._read_again()
        self._answers.setdefault(origin, {})[_name(folder)] = answer
        self._save()

    def _save(self) -> None:
        if self._file is None:
            return
        try:
            write_private(self._file, json.dumps(self._answers, indent=1, sort_keys=True))
            self._state = file_state(self._file)
        except OSError as error:
            logger.warning("%s cannot be written (%s)", self._file, error.strerror)


def _name(folder: str) -> str:
    return os.path.realpath(folder)


def _read(file: Path) -> dict[str, dict[str, str]]:
    """What was kept; a damaged file holds no answer."""
    try:
        stored: Any = json.loads(file.read_text("utf-8"))
        return {
            str(origin): {str(folder): str(answer) for folder, answer in answers.items()}
            for origin, answers in stored.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        logger.warning("nothing is sent to a server: %s cannot be read (%s)", file, error)
        return {}
