"""Bodies that clients compress: gzip, decompressed no further than they may be."""

from __future__ import annotations

import zlib

from lsp_server.repositories.errors import InvalidUpload, TooLarge

_GZIP = 16 + zlib.MAX_WBITS


def decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    """What ``body`` holds, at most ``limit`` bytes; ``encoding``: its Content-Encoding.

    Raises TooLarge, and InvalidUpload for another encoding or damaged data.
    """
    if encoding in ("", "identity"):
        data = body
    elif encoding == "gzip":
        data = _inflated(body, limit)
    else:
        raise InvalidUpload("compress with gzip, or not at all")
    if len(data) > limit:
        raise TooLarge(f"at most {limit} bytes are taken here")
    return data


def _inflated(body: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj(_GZIP)
    try:
        # One byte more than allowed tells that it is too much, without making all of it.
        data = inflater.decompress(body, limit + 1)
    except zlib.error:
        raise InvalidUpload("the body is no gzip data") from None
    if len(data) <= limit and (not inflater.eof or inflater.unused_data):
        raise InvalidUpload("the gzip data is cut off, or something stands behind it")
    return data
