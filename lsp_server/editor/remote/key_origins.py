"""Remembers the first origin that a key was used for, by a salted hash. The key is sent to no
other."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from pathlib import Path
from typing import Any

from lsp_server.editor.remote.address import ServerAddress
from lsp_server.shared.errors import ServerUnavailable
from operating_system.files import write_private
from operating_system.folders import state_folder

logger = logging.getLogger(__name__)

CHECKED_EVERY_S = 60.0
"""A key that is refused here is looked at again after so long."""


def origins_file() -> Path:
    """Where they are kept."""
    return state_folder() / "server-keys.json"


def check_origin(key: str, address: ServerAddress) -> None:
    """Note whom a new key belongs to. Raises ServerUnavailable for a key of another origin."""
    if not key:
        return
    stored = _read()
    name = hashlib.blake2b(key.encode(), key=bytes.fromhex(stored["salt"])).hexdigest()
    known = stored["origins"].get(name)
    if known == address.origin or (known is None and address.is_local):
        return
    if known is not None:
        raise ServerUnavailable(
            f"the key belongs to {known} and is not sent to {address.origin}",
            f"set the key of {address.origin}; if the server moved, delete {origins_file()}",
            CHECKED_EVERY_S,
        )
    stored["origins"][name] = address.origin
    _write(stored)


def _read() -> dict[str, Any]:
    try:
        stored = json.loads(origins_file().read_text("utf-8"))
        bytes.fromhex(stored["salt"])
        if isinstance(stored["origins"], dict):
            return {"salt": stored["salt"], "origins": stored["origins"]}
    except FileNotFoundError:
        pass
    except (OSError, ValueError, TypeError, KeyError) as error:
        logger.warning("%s cannot be read (%s)", origins_file(), error)
    return {"salt": secrets.token_hex(32), "origins": {}}


def _write(stored: dict[str, Any]) -> None:
    try:
        write_private(origins_file(), json.dumps(stored))
    except OSError as error:
        logger.warning("%s cannot be written (%s)", origins_file(), error)
