"""Finds the paths in a document's URI, whatever scheme is around them (RFC 3986): every part that
may be a path is given, as in ``git:/w/.env?{"path":"/w/.env"}``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_BORDERS = re.compile(r"[?#&=;,|\"'<>(){}\[\]]|!/|::")
_INSIDE = re.compile(r"!/|::")
_OLD_VERSION = re.compile(r"(.*)/\.git//[^/]*/(.*)")
"""Fugitive's name of a file in a commit."""
MOST_ENCODINGS = 4
"""Percent signs are themselves encoded by a scheme around a scheme."""
LONGEST_URI = 16_384


def paths_in(uri: str) -> list[str]:
    """Return every path in a URI, decoded, with ``/`` between its parts. Each occurs once."""
    paths: dict[str, None] = {}
    waiting = [(uri[:LONGEST_URI], 0)]
    while waiting:
        text, decodings = waiting.pop()
        for piece in dict.fromkeys(_parts(text)):
            decoded = unquote(piece)
            if decoded != piece and decodings < MOST_ENCODINGS:
                waiting.append((decoded, decodings + 1))
            else:
                paths.update(dict.fromkeys(_paths_of(piece)))
    return list(paths)


def _parts(text: str) -> Iterator[str]:
    """Yield the URI before its query and fragment, and then each piece of these."""
    path, *rest = re.split(r"[?#]", text, maxsplit=1)
    if '"' not in path:
        yield path
    # An archive and a repository have paths of their own inside.
    yield from ("/" + inside for inside in _INSIDE.split(path)[1:])
    if (version := _OLD_VERSION.fullmatch(path)) is not None:
        yield f"{version[1]}/{version[2]}"
    for query in rest:
        yield from _strings_of(query)
    yield from _BORDERS.split(text)


def _strings_of(query: str) -> Iterator[str]:
    try:
        waiting: list[Any] = [json.loads(query.split("#", 1)[0])]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            waiting += value


def _paths_of(piece: str) -> Iterator[str]:
    """Yield a part without its schemes and its authority, and what comes after colons in it."""
    piece = piece.strip().replace("\\", "/")
    while (scheme := _SCHEME.match(piece)) is not None:
        piece = piece[scheme.end() :]
        if piece.startswith("//"):
            yield normpath(piece)
            piece = "/" + piece[2:].partition("/")[2]
    if piece.strip("/"):
        yield normpath(piece)
    # A host, a revision or a drive may come before a path: HEAD:a/.env, ssh:host:/home/u/.netrc.
    while ":" in piece:
        piece = piece.partition(":")[2]
        if piece.strip("/"):
            yield normpath(piece)
