"""Session ids: the requests of one document go to one replica."""

from __future__ import annotations

import hashlib
import hmac

SECRET_BYTES = 32


def session_id(secret: bytes, owner: str, path: str) -> str:
    """Return the id that the router hashes: HMAC-SHA-256 of the name of a key and the path of a
    document, in hex. Ray's metadata and logs hold it, and so neither of them."""
    names = (owner.encode(), path.encode())
    message = b"".join(len(name).to_bytes(8, "big") + name for name in names)
    return hmac.new(secret, message, hashlib.sha256).hexdigest()
