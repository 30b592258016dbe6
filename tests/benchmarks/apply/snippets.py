"""Makes snippets of edits, as agents are told to write them for an apply tool: the lines that
change, a few around them that do not, the headers of the definitions that they stand in, and a
comment for all that is left out (the instructions of Morph's and Relace's edit tools).

What goes is shown by what stood before and behind it. A line of context is one of code; empty ones
come along.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from lsp_server.text.line_diff import opcodes

WORDINGS = {
    "existing": "{mark} ... existing code ...",
    "rest": "{mark} ... rest of the code unchanged ...",
    "keep": "{mark} ... keep {name} ...",
    "remains": "{mark} {name} remains unchanged",
    "unchanged": "{mark} (unchanged)",
    "omitted": "{mark} … omitted",
    "same": "{mark} ... same as before ...",
    "comment dots": "{mark} ...",
    "other": "{mark} ... other code here ...",
    "bare": "...",
}
"""Ten ways to say that something is left out."""
_HEADER = re.compile(
    r"\s*(?:export\s+|default\s+|pub\s+|public\s+|private\s+|static\s+|async\s+)*"
    r"(?:def|class|function|func|fn|impl|interface|type|struct|enum|trait|module)\b"
)
_NAME = re.compile(r"(?:def|class|function|func|fn|struct|enum|trait|interface)\s+(\w+)")


def snippet_of(
    before: str,
    after: str,
    wording: str,
    *,
    context: int,
    ends: bool,
    mark: str = "#",
) -> str:
    """The snippet that makes ``after`` of ``before``. ``ends``: with place holders for what is left
    out above the first line and below the last one."""
    old, new = before.splitlines(), after.splitlines()
    shown = _shown(old, new, context)
    made: list[str] = []
    place = 0
    while place < len(new):
        if place in shown:
            made.append(new[place])
            place += 1
            continue
        end = next((n for n in range(place, len(new)) if n in shown), len(new))
        if ends or (made and end < len(new)):
            made.append(_holder(new, place, end, wording, mark))
        place = end
    return "\n".join(made) + "\n"


def _shown(old: Sequence[str], new: Sequence[str], context: int) -> set[int]:
    """The numbers of the new lines that the snippet shows."""
    shown: set[int] = set()
    for kind, _, _, start, end in opcodes(old, new):
        if kind == "equal":
            continue
        first, last = _around(new, start, -1, context), _around(new, end - 1, 1, context)
        shown |= {*range(first, last + 1)}
        shown |= _headers(new, first)
    return shown


def _around(lines: Sequence[str], number: int, step: int, count: int) -> int:
    """The line so many lines of code away, or the last that there is."""
    while count and 0 <= number + step < len(lines):
        number += step
        count -= bool(lines[number].strip())
    return number


def _headers(lines: Sequence[str], number: int) -> set[int]:
    """The headers of the definitions around a line."""
    found = set()
    inner = _depth(lines[number]) if lines[number].strip() else 1 << 30
    for at in range(number - 1, -1, -1):
        if lines[at].strip() and _depth(lines[at]) < inner and _HEADER.match(lines[at]):
            found.add(at)
            inner = _depth(lines[at])
    return found


def _holder(lines: Sequence[str], start: int, end: int, wording: str, mark: str) -> str:
    left_out = [line for line in lines[start:end] if line.strip()]
    named = [found[1] for line in left_out if (found := _NAME.search(line))]
    indent = " " * _depth(left_out[0]) if left_out else ""
    name = f"{named[0]} as is" if named and wording == "keep" else (named or ["the code"])[0]
    return indent + WORDINGS[wording].format(mark=mark, name=name)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def search_and_replace(before: str, after: str, context: int) -> list[tuple[str, str]]:
    """The edit as pairs of an old text and a new one, with so many lines around each change."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    changes = [one for one in opcodes(old, new) if one[0] != "equal"]
    pairs: list[tuple[str, str]] = []
    place = 0
    while place < len(changes):
        first = changes[place]
        last = first
        while place + 1 < len(changes) and changes[place + 1][1] - last[2] <= 2 * context:
            place += 1
            last = changes[place]
        above = min(context, first[1], first[3])
        below = min(context, len(old) - last[2], len(new) - last[4])
        pairs.append(
            (
                "".join(old[first[1] - above : last[2] + below]),
                "".join(new[first[3] - above : last[4] + below]),
            )
        )
        place += 1
    return pairs


def mutated(snippet: str, before: str, kind: str, seed: int) -> str:
    """A snippet with a slip that agents make; as it is where there is no line for it.

    kind: ``indentation`` (less deep by as much as all lines have), ``white space`` (blanks at the
    end of lines, and lost empty lines at place holders), ``comment`` (a line of context that is a
    comment is left out), ``context`` (a word of a line of context is another one).
    """
    chance = random.Random(seed)
    lines = snippet.splitlines()
    known = {line.strip() for line in before.splitlines()}
    kept = [n for n, line in enumerate(lines) if line.strip() and line.strip() in known]
    if kind == "indentation":
        least = min((_depth(line) for line in lines if line.strip()), default=0)
        made = [line[least:] if line.strip() else line for line in lines]
        if not least:
            made = [
                line[: _depth(line)].replace("    ", "\t") + line[_depth(line) :] for line in lines
            ]
        return "\n".join(made) + "\n"
    if kind == "white space":
        made = [
            line + " " * (2 * (n in kept and chance.random() < 0.3)) for n, line in enumerate(lines)
        ]
        return "\n".join(made) + "\n"
    if kind == "comment":
        comments = [n for n in kept if lines[n].lstrip().startswith(("#", "//"))]
        gone = chance.choice(comments) if comments else None
        return "\n".join(line for n, line in enumerate(lines) if n != gone) + "\n"
    able = [n for n in kept if len(re.findall(r"\w{4,}", lines[n])) > 1]
    if able:
        number = chance.choice(able)
        word = chance.choice(re.findall(r"\w{4,}", lines[number]))
        lines[number] = lines[number].replace(word, word[:-1], 1)
    return "\n".join(lines) + "\n"


MUTATIONS = ("indentation", "white space", "comment", "context")
