"""Patterns of git's ignore files and conditions as regular expressions of bytes, as ``wildmatch.c``
and ``dir.c`` of git read them."""

from __future__ import annotations

import json
import re
from pathlib import Path

_BYTES = bytes(range(1, 256))
_CLASSES = {
    name.encode(): expression.encode()
    for name, expression in json.loads(Path(__file__).with_suffix(".json").read_text()).items()
}


def path_expression(
    pattern: bytes, *, ignore_case: bool = False, any_depth: bool = True
) -> bytes | None:
    """Return the expression of ``pattern`` (git's ``WM_PATHNAME``), or None where it never matches.
    With ``ignore_case`` it is for paths in small letters, without ``any_depth`` for names."""
    # Git compares what stands before the first wildcard as text: what follows begins a pattern.
    literal = re.match(rb"[^*?\[\\]*", pattern)
    assert literal is not None
    start, expressions, i = literal.end(), [], 0
    while i < len(pattern):
        char = pattern[i : i + 1]
        i += 1
        if char == b"*":
            first = i - 1
            while pattern[i : i + 1] == b"*":
                i += 1
            deep = any_depth and i - first > 1
            deep = deep and (first == start or pattern[first - 1 : first] == b"/")
            if deep and pattern[i : i + 1] == b"/":
                expressions.append(b"(?:.*/)?")
                i += 1
            elif deep and pattern[i : i + 2] in (b"", b"\\/"):
                expressions.append(rb"[^\0]*")
            else:
                expressions.append(rb"[^/\0]*")
        elif char == b"?":
            expressions.append(rb"[^/\0]")
        elif char == b"[":
            parsed = _bracket(pattern, i, ignore_case)
            if parsed is None:
                return None
            accepted, i = parsed
            expressions.append(b"[" + re.escape(accepted) + b"]" if accepted else b"(?!)")
        elif char == b"\\":
            char = pattern[i : i + 1]
            if not char:
                return None
            i += 1
            expressions.append(re.escape(char))
        else:
            expressions.append(re.escape(char.lower() if ignore_case else char))
    return b"".join(expressions)


def _bracket(pattern: bytes, i: int, ignore_case: bool) -> tuple[bytes, int] | None:
    """Return the bytes that the set accepts which begins at ``i`` of ``pattern``, behind its
    bracket, and the offset behind it; None where the set is malformed."""
    negated = pattern[i : i + 1] in (b"!", b"^")
    i += negated
    accepted: set[int] = set()
    previous = 0
    first = True
    while first or pattern[i : i + 1] != b"]":
        first = False
        char = pattern[i] if i < len(pattern) else 0
        if char == ord("[") and pattern[i + 1 : i + 2] == b":":
            end = pattern.find(b"]", i + 2)
            if end < 0:
                return None
            if end > i + 2 and pattern[end - 1] == ord(":"):
                name = pattern[i + 2 : end - 1]
                if name not in _CLASSES:
                    return None
                if ignore_case and name == b"upper":
                    name = b"alpha"
                accepted.update(b"".join(re.findall(_CLASSES[name], _BYTES)))
                previous, i = 0, end + 1
                continue
        if char == ord("-") and previous and pattern[i + 1 : i + 2] not in (b"", b"]"):
            i += 1 + (pattern[i + 1] == ord("\\"))
            if i >= len(pattern):
                return None
            among = bytes(range(previous, pattern[i] + 1))
            accepted.update(among.lower() if ignore_case else among)
            if ignore_case:
                accepted.update(among)
            previous, i = 0, i + 1
            continue
        if char == ord("\\"):
            i += 1
            char = pattern[i] if i < len(pattern) else 0
        if not char:
            return None
        accepted.add(char)
        previous, i = char, i + 1
    chosen = set(_BYTES) - accepted if negated else accepted
    return bytes(sorted(chosen - {ord("/")})), i + 1


def ignore_expression(line: bytes, *, ignore_case: bool) -> tuple[bytes, bool] | None:
    """Return the expression of a line of an ignore file and whether it ignores what it matches;
    None for a line that matches nothing. Paths are relative to the file's folder, those of folders
    end in a zero."""
    without_blanks = re.fullmatch(rb"((?:\\.|[^\\])*?) *", line, re.DOTALL)
    pattern = without_blanks[1] if without_blanks else line
    ignores = not pattern.startswith(b"!")
    pattern = pattern[not ignores :]
    end = rb"\0" if pattern.endswith(b"/") else rb"\0?"
    pattern = pattern.removesuffix(b"/")
    is_path = b"/" in pattern
    expression = path_expression(
        pattern.removeprefix(b"/"), ignore_case=ignore_case, any_depth=is_path
    )
    if not expression or line.startswith(b"#"):
        return None
    return (b"" if is_path else b"(?:.*/)?") + expression + end, ignores
