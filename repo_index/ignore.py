"""Ignore files, read as git reads them. Git itself is never run: it would run the repository's
configuration."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

MAX_IGNORE_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class IgnoreFile:
    """The patterns of one ignore file. They apply below ``base`` (relative, ends in ``/``)."""

    origin: str
    base: str
    patterns: tuple[tuple[re.Pattern[str], bool, str], ...]
    """Expression, whether it ignores (or takes back in), and the line as written."""
    any_pattern: re.Pattern[str]

    @classmethod
    def parse(cls, text: str, origin: str, base: str) -> IgnoreFile | None:
        """None when the text holds no pattern. Lines that are no pattern are left out."""
        patterns = []
        for line in text.splitlines():
            try:
                parsed = GitIgnoreSpec.from_lines([line]).patterns
            except ValueError:
                continue
            patterns += [
                (pattern.regex, bool(pattern.include), line.strip())
                for pattern in parsed
                if pattern.regex is not None and pattern.include is not None
            ]
        if not patterns:
            return None
        either = "|".join(re.sub(r"\(\?P<\w+>", "(?:", regex.pattern) for regex, _, _ in patterns)
        return cls(origin, base, tuple(patterns), re.compile(either))

    @classmethod
    def read(cls, path: Path, origin: str, base: str) -> IgnoreFile | None:
        """None when there is no such regular file of a sensible size."""
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(path, flags)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(MAX_IGNORE_FILE_BYTES + 1)
        except OSError:
            return None
        if len(data) > MAX_IGNORE_FILE_BYTES:
            return None
        return cls.parse(data.decode("utf-8-sig", "replace"), origin, base)

    def decide(self, path: str, *, folder: bool) -> tuple[bool, str] | None:
        """Whether a path is ignored, with the pattern that says so; None when nothing matches. The
        last pattern that matches decides. ``path`` is relative to the workspace."""
        inside = path[len(self.base) :] + ("/" if folder else "")
        if not self.any_pattern.match(inside):
            return None
        for regex, ignored, line in reversed(self.patterns):
            if regex.match(inside):
                return ignored, line
        return None
