"""Makes snippets of edits, as agents are told to write them for an apply tool: the lines that
change, a few around them that do not, the headers of the definitions that they stand in, and a
comment for all that is left out (the instructions of Morph's and Relace's edit tools).

What goes is shown by what stood before and behind it. A line of context is one of code; empty ones
come along.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from lsp_server.tasks.apply.definitions import definitions_of
from lsp_server.text.line_diff import Opcode, opcodes

_WORDINGS = {
    "existing": "{mark} ... existing code ...",
    "rest": "{mark} ... rest of the code unchanged ...",
    "keep": "{mark} ... keep {name} as is ...",
    "remains": "{mark} {name} remains unchanged",
    "unchanged": "{mark} (unchanged)",
    "omitted": "{mark} … omitted",
    "same": "{mark} ... same as before ...",
    "comment dots": "{mark} ...",
    "other": "{mark} ... other code here ...",
    "bare": "...",
}
"""Ten ways to say that something is left out."""


class Rules(NamedTuple):
    """What an agent is told. ``wordings`` of place holders, of which each snippet has one."""

    wordings: tuple[str, ...]
    is_minimal: bool = False
    """So much context as is needed: more where the lines that are shown stand in several places."""
    removes: bool = False
    """Lines that go have a comment in their place, by their name where they have one."""


MAKERS = {
    **{name: Rules((wording,)) for name, wording in _WORDINGS.items()},
    "Morph": Rules(("{mark} ... existing code ...",), is_minimal=True),
    "aiXapply": Rules(
        (
            "{mark} ... rest of code ...",
            "{mark} ... keep existing code ...",
            "{mark} ... code remains the same ...",
            "{mark} ... keep {name} ...",
        ),
        removes=True,
    ),
}
"""Ours, and those by the rules that docs.morphllm.com and aiXapply's prompt (as Relace's) state."""
MOST_CONTEXT = 8
"""Lines around a change that are shown so that it has one place."""
_HEADER = re.compile(
    r"\s*(?:export\s+|default\s+|pub\s+|public\s+|private\s+|static\s+|async\s+)*"
    r"(?:def|class|function|func|fn|impl|interface|type|struct|enum|trait|module)\b"
)
_NOTE = re.compile(r"\s*(?:@|#|//|/?\*)")
"""A line above a definition that goes with it."""
_NAME = re.compile(r"(?:def|class|function|func|fn|struct|enum|trait|interface)\s+(\w+)")


def snippet_of(
    before: str,
    after: str,
    maker: str,
    *,
    context: int,
    ends: bool,
    mark: str = "#",
    seed: int = 0,
) -> str:
    """The snippet that makes ``after`` of ``before``. ``ends``: with place holders for what is left
    out above the first line and below the last one."""
    rules, chance = MAKERS[maker], random.Random(seed)
    wording = chance.choice(rules.wordings)
    old, new = before.splitlines(), after.splitlines()
    removals = dict(_removals(old, new)) if rules.removes else {}
    shown = _shown(old, new, context, rules, {place for place in removals if removals[place].names})
    made: list[str] = []
    for place in range(len(new) + 1):
        if place in removals:
            made += removals[place].comments(mark)
        if place == len(new):
            break
        if place in shown:
            made.append(new[place])
        elif not place or place - 1 in shown or place in removals:
            left_out = range(place + 1, len(new))
            end = next((n for n in left_out if n in shown or n in removals), len(new))
            if ends or (made and end < len(new)):
                made.append(_holder(new, place, end, wording, mark))
    return "\n".join(made) + "\n"


class RemovedLines(NamedTuple):
    """Lines that go, none in their stead, with the definitions that they are or their text, which
    is empty for several lines."""

    names: tuple[str, ...]
    text: str
    indent: str

    def comments(self, mark: str) -> list[str]:
        """What is said in place of them."""
        says = [f"remove {name}" for name in self.names or ([self.text] if self.text else [])]
        return [f"{self.indent}{mark} {text}" for text in says or ["removed"]]


def _removals(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, RemovedLines]]:
    """Yield the places of lines that go."""
    for kind, start, end, place, _ in opcodes(old, new):
        code = [n for n in range(start, end) if old[n].strip()]
        if kind != "delete" or not code:
            continue
        least = min(_depth(old[n]) for n in code)
        own = [each for each in definitions_of(old) if each.start in code]
        outer = [each for each in own if _depth(old[each.start]) == least and each.end <= end]
        rest = [
            n
            for n in code
            if not any(each.start <= n < each.end for each in outer) and not _NOTE.match(old[n])
        ]
        names = [] if rest else [each.path[-1] for each in outer]
        text = old[code[0]].strip() if len(code) == 1 else ""
        yield place, RemovedLines(tuple(names), text, " " * least)


def _shown(
    old: Sequence[str], new: Sequence[str], context: int, rules: Rules, named: Collection[int]
) -> set[int]:
    """The numbers of the new lines that the snippet shows. ``named``: where definitions go, which
    are told by their names alone."""
    shown: set[int] = set()
    for change in opcodes(old, new):
        if change[0] == "equal":
            continue
        _, _, _, start, end = change
        count = context
        while rules.is_minimal and count < MOST_CONTEXT and _is_repeated(old, change, count):
            count += 1
        if start in named and start == end:
            shown |= _headers(new, start) if start < len(new) else set()
            continue
        first, last = _around(new, start, -1, count), _around(new, end - 1, 1, count)
        shown |= {*range(first, last + 1)}
        shown |= _headers(new, first)
    return shown


def _is_repeated(old: Sequence[str], change: Opcode, context: int) -> bool:
    """Return whether the old lines with so many around them stand in several places."""
    first, last = _around(old, change[1], -1, context), _around(old, change[2] - 1, 1, context)
    lines = old[first : last + 1]
    starts = range(len(old) - len(lines) + 1)
    return sum(old[start : start + len(lines)] == lines for start in starts) > 1


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
    name = named[0] if named else "the code"
    return indent + wording.format(mark=mark, name=name)


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
