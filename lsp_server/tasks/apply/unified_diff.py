"""Unified diffs, as ``diff -u`` and git write them and as models do: without header lines, with
bare ``@@``, without context."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lsp_server.tasks.apply.definitions import depth
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.tasks.apply.replacements import FileUpdate, LineReplacement

MARKS = re.compile(
    r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|^--- .*\n\+\+\+ |^diff --git |"
    r"^@@(?: .*)?\n(?:.*\n){0,60}?[-+]",
    re.MULTILINE,
)
"""What tells a diff from other texts."""
_HEADER = re.compile(
    r"@@(?: -(?P<line>\d+)(?:,(?P<count>\d+))? \+\d+(?:,\d+)? @@)?(?P<scope>.*?)(?:@@)?$"
)
SKIPPED = re.compile(
    r"(?:--- |\+\+\+ |diff |index |\*\*\* |new file|deleted file|old mode|new mode|similarity |"
    r"dissimilarity |rename |copy |\\ )"
)
"""Lines above the first hunk of a file."""
_NOTHING = "/dev/null"


def read(text: str) -> list[FileUpdate]:
    """Return the updates of a diff, file by file. Raises AmbiguousSnippet for binary files."""
    lines = text.split("\n")
    starts = [number for number, line in enumerate(lines) if _is_file(lines, number)]
    if not starts or any(line.startswith("@@") for line in lines[: starts[0]]):
        starts = [0, *starts]
    ends = [*starts[1:], len(lines)]
    return [_update(lines[start:end]) for start, end in zip(starts, ends, strict=True)]


def _is_file(lines: Sequence[str], number: int) -> bool:
    line, above = lines[number], lines[number - 1] if number else ""
    if line.startswith("diff --git "):
        return True
    is_pair = line.startswith("--- ") and "".join(lines[number + 1 : number + 2]).startswith("+++ ")
    return is_pair and not SKIPPED.match(above)


def _update(lines: list[str]) -> FileUpdate:
    first = next((n for n, line in enumerate(lines) if line.startswith("@@")), len(lines))
    old_path = new_path = moved_to = ""
    for line in lines[:first]:
        word, _, rest = line.partition(" ")
        path = rest.split("\t")[0].strip()
        if word == "---":
            old_path = path
        elif word == "+++":
            new_path = path
        elif line.startswith("rename to "):
            moved_to = line.removeprefix("rename to ").strip()
        elif line.startswith(("Binary files", "GIT binary patch")):
            raise AmbiguousSnippet("the diff is of a binary file; send text")
        elif not SKIPPED.match(line) and line[:1] in ("+", "-"):
            first = min(first, lines.index(line))
            break
    hunks = diff_hunks("\n".join(lines[first:]))
    path = re.sub(r"^[ab]/", "", old_path if new_path in ("", _NOTHING) else new_path)
    kind = "add" if old_path == _NOTHING else "delete" if new_path == _NOTHING else "update"
    return FileUpdate(path, tuple(hunks), kind="move" if moved_to else kind)


def diff_hunks(text: str) -> list[LineReplacement]:
    """Return what the hunks of one file change, in their order."""
    hunks: list[tuple[re.Match[str] | None, list[str]]] = []
    for line in text.split("\n"):
        if header := _HEADER.match(line):
            hunks.append((header, []))
        elif line.strip() in ("...", "…"):
            hunks.append((None, []))
        elif line.startswith("\\"):
            continue
        elif hunks or not SKIPPED.match(line):
            if not hunks:
                hunks.append((None, []))
            hunks[-1][1].append(line)
    signs = signs_of([line for _, lines in hunks for line in lines])
    replacements = (_replacement(header, lines, signs) for header, lines in hunks)
    return [replacement for replacement in replacements if replacement]


def _replacement(
    header: re.Match[str] | None, lines: list[str], signs: str
) -> LineReplacement | None:
    line = header["line"] if header else None
    scope = header["scope"].strip() if header else ""
    hunk = hunk_of(lines, int(line) if line else None, (scope,) if scope else (), signs)
    return hunk if lines and (hunk.old or hunk.new) else None


def signs_of(lines: list[str]) -> str:
    """Return what a line of hunks may begin with: signs, and a blank if the lines that stay have
    one in front of them."""
    signed = [depth(text[1:]) % 2 for text in lines if text.startswith(("+", "-"))]
    bare = [depth(text) % 2 for text in lines if text.strip() and text[0] not in "+-"]
    # Most are as deep as code is, by twos: the blanks in front of them were left out.
    return "+-" if 2 * sum(bare) < len(bare) and 2 * sum(signed) < len(signed) else "+- "


def hunk_of(
    lines: list[str], line: int | None, scopes: tuple[str, ...], signs: str
) -> LineReplacement:
    """Return the hunk of ``lines``, which may begin with one of ``signs``."""
    while lines and not lines[-1].strip():
        # A difference ends with its last line, and what is empty after it is none of its lines.
        lines = lines[:-1]
    old = [text[text[:1] in signs :] for text in lines if not text.startswith("+")]
    new = [text[text[:1] in signs :] for text in lines if not text.startswith("-")]
    return LineReplacement(tuple(old), tuple(new), line, scopes)
