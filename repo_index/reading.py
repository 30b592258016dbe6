"""The text of a file, read so that no link, pipe or race leads elsewhere or holds us up."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from operating_system.files_inside import open_inside
from repo_index.files import Fingerprint
from repo_index.secrets import secret_content

_LONG_LINES = 400
"""Mean characters of a line above which a text is data or minified."""
_RACY_NS = 50_000_000


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a file. ``reason`` says why it is left out; its ``text`` is empty then. key:
    hash of the bytes on disk as two numbers below 2 ** 64, also of an excluded file."""

    text: str
    reason: str
    fingerprint: Fingerprint
    key: tuple[int, int]

    def without_text(self, reason: str) -> Content:
        """Return the same file, left out."""
        return Content("", self.reason or reason, self.fingerprint, self.key)


def read_content(root: Path, path: str, limit: int) -> Content:
    """Read ``path`` below ``root``; at most ``limit`` bytes are read of a file that grows.

    Raises OSError when the file is gone, no regular file, behind a link, or keeps changing.
    """
    for _ in range(3):
        descriptor = open_inside(root, path)
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise OSError(f"{path} is not a regular file")
            data = _read_all(descriptor, limit + 1)
            after = Fingerprint.of(os.fstat(file.fileno()))
        if Fingerprint.of(before) == after:
            break
    else:
        raise OSError(f"{path} changes while it is read")
    digest = hashlib.blake2b(data, digest_size=16).digest()
    key = (int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little"))
    reason = f"larger than {limit >> 10} KiB" if len(data) > limit else ""
    text = "" if reason else decoded(data)
    if text is None:
        text, reason = "", "binary or not UTF-8 text"
    elif path.casefold().endswith(".ipynb") and not reason:
        cells = notebook_source(text)
        text, reason = (cells, "") if cells is not None else ("", "a damaged notebook")
    reason = reason or text_reason(text)
    return Content("" if reason else text, reason, settled(after), key)


def text_reason(text: str) -> str:
    """Return why a text is left out for what it holds; empty when it counts."""
    if not text.strip():
        return "empty"
    return long_lines(text) or secret_content(text)


def long_lines(text: str) -> str:
    """Says so when the lines of a text are too long for code."""
    if len(text) > 2000 and len(text) / (text.count("\n") + 1) > _LONG_LINES:
        return "very long lines: minified or data"
    return ""


def settled(fingerprint: Fingerprint) -> Fingerprint:
    """Return the fingerprint, or one that nothing equals when the file may change again within one
    tick of the file system's clock (git calls this racily clean), or its time is still to come."""
    now = time.time_ns()
    if max(fingerprint.modified, fingerprint.changed) > now - _RACY_NS:
        return Fingerprint(fingerprint.size, fingerprint.modified, -1)
    return fingerprint


def _read_all(descriptor: int, limit: int) -> bytes:
    pieces = []
    while limit > 0 and (piece := os.read(descriptor, min(limit, 1 << 20))):
        pieces.append(piece)
        limit -= len(piece)
    return b"".join(pieces)


def decoded(data: bytes) -> str | None:
    """Return text of a file with ``\\n`` as its line end; None for what is no text."""
    try:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            text = data.decode("utf-16")
        else:
            text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else unix_lines(text)


def unix_lines(text: str) -> str:
    """``text`` with line ends as models are trained on."""
    return text.replace("\r\n", "\n") if "\r" in text else text


def notebook_source(text: str) -> str | None:
    """Return the source of a notebook's cells, an empty line between them; None when it is none."""
    try:
        cells = json.loads(text)["cells"]
        sources = [cell["source"] for cell in cells]
        return "\n\n".join(
            source if isinstance(source, str) else "".join(source) for source in sources
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
