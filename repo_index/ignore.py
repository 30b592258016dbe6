"""Ignore files, read as git reads them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from repo_index.wildmatch import ignore_expression

MAX_IGNORE_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class IgnoreFile:
    """The patterns of one ignore file. They apply below the folder ``base``, an absolute path that
    ends in ``/``."""

    origin: str
    base: str
    ignore_case: bool
    patterns: tuple[tuple[re.Pattern[bytes], bool, str], ...]
    """Expression, whether it ignores (or takes back in), and the line as written."""
    any_pattern: re.Pattern[bytes]

    @classmethod
    def parse(
        cls, content: bytes, origin: str, base: str, *, ignore_case: bool = False
    ) -> IgnoreFile | None:
        """Return the patterns of ``content``, or None when it holds none."""
        lines = [
            line.removesuffix(b"\r") for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        ]
        parsed = [(ignore_expression(line, ignore_case=ignore_case), line) for line in lines]
        patterns = tuple(
            (re.compile(pattern[0], re.DOTALL), pattern[1], line.decode("utf-8", "replace").strip())
            for pattern, line in parsed
            if pattern is not None
        )
        if not patterns:
            return None
        either = b"|".join(expression.pattern for expression, _, _ in patterns)
        return cls(origin, base, ignore_case, patterns, re.compile(either, re.DOTALL))

    @classmethod
    def read(
        cls, path: Path, origin: str, base: str, *, ignore_case: bool = False, link: bool = True
    ) -> IgnoreFile | None:
        """Return the patterns of ``path``, or None when it holds none or cannot be read; ``link``
        says whether it may be a symbolic link."""
        content = read_small(path, link=link)
        return cls.parse(content, origin, base, ignore_case=ignore_case) if content else None

    def decide(self, path: str, *, folder: bool) -> tuple[bool, str] | None:
        """Return whether the absolute ``path`` is ignored, with the pattern that says so; None when
        nothing matches. The last pattern that matches decides."""
        inside = self._inside(path, folder=folder)
        if not self.any_pattern.fullmatch(inside):
            return None
        for expression, ignores, line in reversed(self.patterns):
            if expression.fullmatch(inside):
                return ignores, line
        return None

    def _inside(self, path: str, *, folder: bool) -> bytes:
        """Return ``path`` as expressions see it; a path that is not below ``base`` matches none."""
        if not path.startswith(self.base):
            return b"\0\0"
        inside = os.fsencode(path[len(self.base) :]) + (b"\0" if folder else b"")
        return inside.lower() if self.ignore_case else inside


def read_small(path: Path, *, link: bool = True) -> bytes | None:
    """Return what a regular file of a sensible size holds; None when there is none. ``link`` says
    whether it may be a symbolic link."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not link and path.is_symlink():
            return None
        with os.fdopen(os.open(path, flags), "rb") as file:
            content = file.read(MAX_IGNORE_FILE_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= MAX_IGNORE_FILE_BYTES else None
