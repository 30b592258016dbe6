"""Which line defines what, by its words alone, and how deep lines are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

_DEFINITION = re.compile(
    r"\s*\(?(?:(?:export|default|public|private|protected|static|async|abstract|final|pub|virtual|"
    r"override|inline|unsafe|extern)\s+)*"
    r"(?:def|class|function\*?|func|fn|sub|interface|struct|enum|trait|module|method|proc|defun|"
    r"impl|type|namespace|record|mod)\b\s*(?:\([^)]*\)\s*)?(?P<name>[\w$]+(?:[.:][\w$]+)*)"
)
_METHOD = re.compile(
    r"\s*(?:[\w<>\[\],.*&]+\s+)*(?!(?:if|for|while|switch|catch|with|return|elif|"
    r"else)\b)(?P<name>[\w$]+)"
    r"\s*\([^()]*\)[^(){};=]*\{\s*$"
)
"""As Java, C and JavaScript write them."""
_NO_DEFINITION = re.compile(
    r"\s*(?:if|for|while|switch|catch|with|return|elif|else|case|import|from|use)\b"
)
_VALUE = re.compile(r"\s*(?P<name>[^=:(){}+*/|-]{1,60}?)\s*(?::?=(?![=>~])|:(?=\s))")


def assigned_name(line: str) -> str:
    """Return the variable or key that a line gives a value to; nothing where it gives none."""
    match = _VALUE.match(line)
    return match["name"].strip() if match else ""


@lru_cache(maxsize=1 << 14)
def defined_name(line: str) -> str:
    """Return what a line begins to define, such as a function; nothing where it defines nothing."""
    match = _DEFINITION.match(line)
    if match is None and line.rstrip().endswith("{"):
        match = _METHOD.match(line)
    return match["name"] if match else ""


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


def opens_block(line: str) -> bool:
    """Return whether a line ends with what opens a block."""
    return _OPENS.search(line) is not None


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
        if line.strip() != "{" and not opens_block(line):
            return end
    return end


class Definition(NamedTuple):
    """Lines of a text that define a name, the end exclusive. ``path``: its own name last."""

    path: tuple[str, ...]
    start: int
    end: int


_BEGINS_VALUE = re.compile(r"(?:[=\w)>]\s*\{|=>)\s*$")


def opens_definition(line: str) -> str:
    """Return the name that a line begins to define, also as a value of several lines."""
    if name := defined_name(line):
        return name
    is_value = _BEGINS_VALUE.search(line) is not None and not _NO_DEFINITION.match(line)
    return assigned_name(line) if is_value else ""


def definitions_of(lines: Sequence[str]) -> list[Definition]:
    """Return the definitions of a text, with those in others, in its order."""
    definitions: list[Definition] = []
    around: list[Definition] = []
    for number, line in enumerate(lines):
        name = opens_definition(line)
        if not name and "".join(lines[number + 1 : number + 2]).strip() == "{":
            name = defined_name(f"{line.rstrip()} {{")
        if not name:
            continue
        while around and (
            around[-1].end <= number or depth(lines[around[-1].start]) >= depth(line)
        ):
            around.pop()
        path = (*(around[-1].path if around else ()), name.split()[-1])
        around.append(Definition(path, number, block_end(lines, number)))
        definitions.append(around[-1])
    return definitions


_IMPORT = re.compile(
    r"\s*(?:import\b|from\s+\S+\s+import\b|use\s|using\s|#\s*include\b|require\b|"
    r"(?:const|let|var|local)\s.*\brequire\()"
)


def is_import(line: str) -> bool:
    """Return whether a line imports something."""
    return _IMPORT.match(line) is not None


_MODULE = re.compile(r"\s*from\s+(\S+)\s+import\b|.*\bfrom\s+[\"']([^\"']+)[\"'];?\s*$")


def module_of(line: str) -> str:
    """Return the module that names are imported from in a line; nothing for any other line."""
    match = _MODULE.match(line)
    return (match[1] or match[2]) if match else ""
