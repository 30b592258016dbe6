"""Which line defines what, by its words alone, and how deep lines are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_DEFINITION = re.compile(
    r"\s*\(?(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|virtual|"
    r"override|inline|unsafe|extern)\s+)*"
    r"(?:def|class|function\*?|func|fn|sub|interface|struct|enum|trait|module|method|proc|defun|"
    r"impl)\b\s*(?:\([^)]*\)\s*)?(?P<name>[\w$]+)"
)
_METHOD = re.compile(
    r"\s*(?:[\w<>\[\],.*&]+\s+)*(?!(?:if|for|while|switch|catch|with|return|elif|"
    r"else)\b)(?P<name>[\w$]+)"
    r"\s*\([^()]*\)[^(){};=]*\{\s*$"
)
"""As Java, C and JavaScript write them."""
_VALUE = re.compile(r"\s*(?P<name>[^=:(){}+*/|-]{1,60}?)\s*(?::?=(?![=>~])|:(?=\s))")


def assigned_name(line: str) -> str:
    """What a line gives a value to, such as a variable or a key; nothing where it gives none."""
    found = _VALUE.match(line)
    return found["name"].strip() if found else ""


@lru_cache(maxsize=1 << 14)
def defined_name(line: str) -> str:
    """What a line begins to define, such as a function; nothing where it defines nothing."""
    found = _DEFINITION.match(line)
    if found is None and line.rstrip().endswith("{"):
        found = _METHOD.match(line)
    return found["name"] if found else ""


def depth(line: str) -> int:
    """The width of a line's indentation."""
    indent = indentation(line)
    return len(indent.expandtabs(4)) if "\t" in indent else len(indent)


def indentation(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


_CLOSES = re.compile(r"\s*(?:[)\]}]|end\b|</|fi\b|done\b|esac\b)")
"""A line that ends the block it is as deep as."""
_OPENS = re.compile(r"[{(\[:]\s*(?:(?://|#|/\*).*)?$|=>?\s*$")


def closes_block(line: str) -> bool:
    """Return whether a line begins with what ends a block."""
    return _CLOSES.match(line) is not None


def block_end(lines: Sequence[str], start: int) -> int:
    """Return the line, exclusive, at which the block ends that the line ``start`` opens: with a
    closing bracket as deep as that line, else above the next line that is no deeper."""
    own, end = depth(lines[start]), start + 1
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if not line.strip() or depth(line) > own:
            end = number + 1 if line.strip() else end
            continue
        if depth(line) < own or not (closes_block(line) or (line.strip() == "{" and end == number)):
            return end
        end = number + 1
        if line.strip() != "{" and not _OPENS.search(line):
            return end
    return end
