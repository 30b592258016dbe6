"""The innermost loops of a program in Arm's assembly."""

from __future__ import annotations

import re


def innermost_loops(assembly: str) -> list[list[list[str]]]:
    """The words of the instructions of each loop that a branch at its end repeats and that has no
    other loop inside. Apple's names of vectors' instructions come without their kind."""
    lines = [re.split(r"//|;", line)[0].split() for line in assembly.splitlines()]
    labels = {words[0][:-1]: at for at, words in enumerate(lines) if words and words[0][-1] == ":"}
    spans = [
        (labels[words[-1]], at)
        for at, words in enumerate(lines)
        if words and labels.get(words[-1], at) < at
    ]
    inner = [
        (first, last)
        for first, last in spans
        if not any(first <= start and end < last for start, end in spans)
    ]
    return [
        [
            [name if name[:2] == "b." else name.split(".")[0], *rest]
            for name, *rest in filter(None, lines[first + 1 : last + 1])
            if name[0] != "." and name[-1] != ":"
        ]
        for first, last in inner
    ]
