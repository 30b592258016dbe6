"""Groups requests: those of one repository go to one replica."""

from __future__ import annotations

import hashlib
import hmac

SECRET_BYTES = 32


def session_id(secret: bytes, owner: str, repository: str) -> str:
    """The id that the router hashes: HMAC-SHA-256 of the name of a key and a repository, in hex. It
    is in Ray's metadata and logs, where it tells neither of them."""
    parts = (owner.encode(), repository.encode())
    message = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hmac.new(secret, message, hashlib.sha256).hexdigest()
