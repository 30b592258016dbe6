"""Gives an answer the blank lines and the indentation of the text that it replaces."""

from __future__ import annotations

import itertools
import re

ABOUT_INDENTS = re.compile(
    r"indent|\btabs?\b|\bspaces?\b|white ?space|format|prettier|\bblack\b|pep ?8|\blint|\bstyle\b",
    re.IGNORECASE,
)
"""Instructions that may ask for another indentation."""


def with_end_of(old: str, new: str) -> str:
    """``new`` with as many line ends at its end as ``old``."""
    return new.rstrip("\n") + "\n" * (len(old) - len(old.rstrip("\n")))


def with_indentation_of(old: str, new: str) -> str:
    """``new`` shifted as a whole, so that its first visible line is indented as that of ``old``.
    Left alone where lines would have to lose more than they have."""
    old_indent, new_indent = first_indent(old), first_indent(new)
    if old_indent is None or new_indent is None or old_indent == new_indent:
        return new
    lines = new.split("\n")
    if old_indent.startswith(new_indent):
        added = old_indent[len(new_indent) :]
        return "\n".join(added + line if line.strip() else line for line in lines)
    if new_indent.startswith(old_indent):
        lost = new_indent[len(old_indent) :]
        if all(line.startswith(lost) or not line.strip() for line in lines):
            return "\n".join(line[len(lost) :] if line.strip() else line for line in lines)
    return new


def with_start_of(old: str, new: str) -> str:
    """``new`` with as many line ends at its start as ``old``."""
    return "\n" * (len(old) - len(old.lstrip("\n"))) + new.lstrip("\n")


def first_indent(text: str) -> str | None:
    """White space before the first visible character of the first line that has one."""
    match = re.search(r"^([ \t]*)[^\s]", text, re.MULTILINE)
    return match.group(1) if match else None


def with_indents_of(old: str, new: str) -> str:
    """``new`` indented by tabs, by spaces or by both as ``old`` is. A line that is one of ``old``
    is indented as that, others as the last such line above them."""
    old_lines, new_lines = old.split("\n"), new.split("\n")
    kinds = {kind for line in old_lines for kind in _indent(line)}
    own = {kind for line in new_lines for kind in _indent(line)}
    old_step, new_step = _step(old_lines), _step(new_lines)
    if not kinds or (own == kinds and not _is_other_step(old_lines, new_lines)):
        return new
    lines_by_text: dict[str, list[str]] = {}
    for line in reversed(old_lines):
        lines_by_text.setdefault(line.strip(), []).append(_indent(line))
    by_tabs = "\t" in kinds
    result = []
    for line in new_lines:
        text, indent = line.strip(), _indent(line)
        depth = _depth(indent, new_step)
        same = lines_by_text[text].pop() if text and lines_by_text.get(text) else None
        if same is not None and len(same.expandtabs(TAB)) > 1:
            by_tabs = "\t" in same
        if same is not None and abs(_depth(same, old_step) - depth) < _NEARLY:
            result.append(same + line[len(indent) :])
        elif not text:
            result.append(line)
        else:
            result.append(_written(depth, old_step, by_tabs) + line[len(indent) :])
    return "\n".join(result)


TAB = 4
"""Spaces of a step where no line tells."""
_NEARLY = 0.01


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))] if line.strip() else ""


def _step(lines: list[str]) -> int:
    """Spaces of a step of indentation, by the smallest one from line to line."""
    widths = [len(_indent(line)) for line in lines if line.strip() and "\t" not in _indent(line)]
    steps = [b - a for a, b in itertools.pairwise([0, *widths]) if b - a > 1]
    return min(steps, default=TAB)


def _is_other_step(old_lines: list[str], new_lines: list[str]) -> bool:
    """Return True if no line keeps its indentation because each step has more or fewer spaces."""
    if _step(old_lines) == _step(new_lines):
        return False
    old = {(line.strip(), _indent(line)) for line in old_lines if _indent(line)}
    texts = {text for text, _ in old}
    same = [line for line in new_lines if _indent(line) and line.strip() in texts]
    return bool(same) and all((line.strip(), _indent(line)) not in old for line in same)


def _depth(indent: str, step: int) -> float:
    return indent.count("\t") + indent.count(" ") / step


def _written(depth: float, step: int, by_tabs: bool) -> str:
    if not by_tabs:
        return " " * round(depth * step)
    return "\t" * int(depth + _NEARLY) + " " * round((depth + _NEARLY) % 1 * step - _NEARLY)
