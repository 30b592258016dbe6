"""Checks paths that clients name: each must mean the same file below a folder on every system."""

from __future__ import annotations

import re
import unicodedata

LONGEST_PATH = 1_000
"""UTF-8 bytes of a path."""
LONGEST_PART = 200
"""UTF-8 bytes of one of its names."""
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
"""Control characters, and what Windows takes in no name (":" names a stream or a drive there)."""
_DEVICES = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])"
    r"\s*(?:\..*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Names that Windows takes for devices, whatever comes after a dot.

Source: Naming Files, Paths, and Namespaces (Microsoft)."""


def path_problem(path: str) -> str:
    """Why a path is no relative path of a file with ``/``; empty when it is one."""
    try:
        encoded = path.encode("utf-8")
    except UnicodeEncodeError:
        return "not Unicode"
    if not path or len(encoded) > LONGEST_PATH:
        return "empty or too long"
    if _FORBIDDEN.search(path):
        return "a character that no name may have"
    if unicodedata.normalize("NFC", path) != path:
        return "not in Unicode's composed form (NFC)"
    for part in path.split("/"):
        if part in ("", ".", ".."):
            return "not relative, or not normalised"
        if len(part.encode("utf-8")) > LONGEST_PART:
            return "a name that is too long"
        if part[-1] in ". ":
            return "a name that ends in a dot or a space"
        if _DEVICES.fullmatch(part):
            return "a name of a device"
    return ""


def colliding(paths: list[str]) -> set[str]:
    """Those of ``paths`` that another, which comes before them, leaves no room for: names that
    differ in case alone, and a file where another has a folder."""
    files: set[str] = set()
    folders: set[str] = set()
    refused = set()
    for path in paths:
        folded = path.casefold()
        above = _folders_of(folded)
        if folded in files or folded in folders or files.intersection(above):
            refused.add(path)
            continue
        files.add(folded)
        folders.update(above)
    return refused


def _folders_of(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
