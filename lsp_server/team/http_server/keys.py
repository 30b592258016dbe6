"""The keys of the server in one file: a line is ``NAME SECRET``, where SECRET is
``hmac-sha256:SALT:DIGEST`` or the key itself. A key has 256 random bits, so a fast keyed hash will
do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from lsp_server.shared.errors import RedraftError
from operating_system.files import file_state, write_private

logger = logging.getLogger(__name__)

_HASHED = "hmac-sha256"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_SALT_BYTES = 16
MOST_KEY_CHARACTERS = 512


class BadKeysFile(RedraftError):
    """A file of keys that cannot be read; the message says what to mend."""


@dataclass(frozen=True, slots=True)
class HashedKey:
    """A key that can be recognised and not be told."""

    holder: str
    """The name of whom it belongs to."""
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, key: str, holder: str) -> HashedKey:
        """Return the hash of ``key`` with a salt of its own. Raises ValueError for a bad name."""
        if not _NAME.fullmatch(holder):
            raise ValueError("a name may have letters, digits and . _ @ + - only")
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(holder, salt, _digest(key, salt))

    @classmethod
    def of_line(cls, line: str) -> HashedKey:
        """Return a line of the file. Raises ValueError."""
        holder, secret, *rest = line.split()
        if rest:
            raise ValueError("a line must be NAME KEY")
        if not secret.startswith(f"{_HASHED}:"):
            return cls.of(secret, holder)
        _, salt, digest = secret.split(":")
        # Looked at as a new one would be.
        cls.of("", holder)
        return cls(holder, _unpacked(salt), _unpacked(digest))

    @property
    def line(self) -> str:
        """As it is in the file."""
        return f"{self.holder} {_HASHED}:{_packed(self.salt)}:{_packed(self.digest)}"

    def is_of(self, key: str) -> bool:
        """Return if this is the hash of ``key``, in the same time for each key."""
        return hmac.compare_digest(self.digest, _digest(key, self.salt))


class Keys:
    """The keys of a file, read again whenever it changes."""

    def __init__(self, file: Path) -> None:
        """Raise BadKeysFile."""
        self._file = file
        self._state = file_state(file)
        self._keys = read_keys(file)

    def holder(self, key: str) -> str | None:
        """Return the holder of ``key``, or None. All keys are compared, in constant time."""
        self._read_again()
        holder = None
        for hashed in self._keys:
            if hashed.is_of(key):
                holder = hashed.holder
        return holder

    def _read_again(self) -> None:
        state = file_state(self._file)
        if state == self._state:
            return
        self._state = state
        if state is None:
            logger.error("the keys' file is gone: no key is valid")
            self._keys = []
            return
        try:
            self._keys = read_keys(self._file)
        except BadKeysFile as error:
            logger.error("the keys stay as they were: %s", error)


def read_keys(file: Path) -> list[HashedKey]:
    """Return the keys of a file. Raises BadKeysFile."""
    try:
        text = file.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise BadKeysFile(
            f"{file} cannot be read ({error}); `redraft keys add NAME --keys {file}` makes it"
        ) from error
    keys: list[HashedKey] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            keys.append(HashedKey.of_line(line))
        except ValueError as error:
            raise BadKeysFile(f"line {number} of {file} is no key: {error}") from None
    return keys


def write_keys(file: Path, keys: list[HashedKey]) -> None:
    """Replace the file, readable for its owner alone. Raises OSError."""
    write_private(file, "".join(f"{key.line}\n" for key in keys))


def new_key() -> str:
    """Return a new key, which cannot be guessed."""
    return f"rd-{secrets.token_urlsafe(32)}"


def own_keys_file(file: Path, name: str = "local") -> str | None:
    """Have a file with one key in it; the key if it was made now. Raises OSError."""
    if file.exists():
        return None
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    key = new_key()
    # Of two servers that start at once one keeps its key, and the other ends.
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(f"{name} {key}\n")
    return key


def _digest(key: str, salt: bytes) -> bytes:
    return hmac.digest(salt, key.encode("utf-8", "surrogateescape"), hashlib.sha256)


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpacked(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
