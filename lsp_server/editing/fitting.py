"""An answer brought back to the blank lines and the indentation of the text that it replaces."""

from __future__ import annotations

import re


def with_end_of(old: str, new: str) -> str:
    """``new`` with as many line ends at its end as ``old``."""
    return new.rstrip("\n") + "\n" * (len(old) - len(old.rstrip("\n")))


def with_indentation_of(old: str, new: str) -> str:
    """``new`` shifted as a whole, so that its first visible line is indented as that of ``old``.

    Left alone where lines would have to lose more than they have.
    """
    wanted, found = first_indent(old), first_indent(new)
    if wanted is None or found is None or wanted == found:
        return new
    lines = new.split("\n")
    if wanted.startswith(found):
        added = wanted[len(found) :]
        return "\n".join(added + line if line.strip() else line for line in lines)
    if found.startswith(wanted):
        lost = found[len(wanted) :]
        if all(line.startswith(lost) or not line.strip() for line in lines):
            return "\n".join(line[len(lost) :] if line.strip() else line for line in lines)
    return new


def with_start_of(old: str, new: str) -> str:
    """``new`` with as many line ends at its start as ``old``."""
    return "\n" * (len(old) - len(old.lstrip("\n"))) + new.lstrip("\n")


def first_indent(text: str) -> str | None:
    """White space before the first visible character of the first line that has one."""
    found = re.search(r"^([ \t]*)[^\s]", text, re.MULTILINE)
    return found.group(1) if found else None
