"""How snippets and answers say that something is left out, as data: one table, with a case each.

A wording is a row of words. ``a|b`` is one of them, ``{code}`` a word of that list, ``<4>`` up to
four of any, ``<1-2>`` one or two; ``?``, ``*`` and ``+`` at the end say how often it stands there.
``_`` is a blank within an alternative; ``~`` is any word, ``un~`` one that begins so.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

STAYS = "{be}* {wholly}? {unchanged} {again}*"
"""That something stays as it is; ``{stays}`` in wordings."""


class Wording(NamedTuple):
    """A row of the table, and a text that it is of."""

    words: str
    case: str


_TABLE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
LISTS: dict[str, str] = _TABLE["lists"]
WORDINGS = tuple(Wording(*row) for row in _TABLE["wordings"])


def pattern_of(words: str) -> str:
    """A regular expression for a row, each of whose words is followed by a blank."""
    patterns = []
    for token in words.replace("{stays}", STAYS).split():
        if count := re.fullmatch(r"<(?:(\d)-)?(\d)>", token):
            patterns.append(rf"(?:\w+ ){{{count[1] or 0},{count[2]}}}")
            continue
        often = token[-1] if token[-1] in "?*+" else ""
        pattern = re.sub(
            r"\{(\w+)\}", lambda name: f"({LISTS[name[1]]})", token.removesuffix(often)
        )
        pattern = pattern.replace("<number>", r"\d+").replace("_", " ")
        pattern = re.sub(r"(?<![^\s|(])~(?=$|[\s|)])", r"\\w+", pattern).replace("~", r"\w*")
        patterns.append(f"(?:(?:{pattern}) ){often}")
    return "".join(patterns)


_ANY = re.compile(
    "|".join(f"(?:{pattern_of(wording.words)})" for wording in WORDINGS), re.IGNORECASE
)
_LEFT_OUT = re.compile(
    r"\b(?:rest|remain\w*|existing|unchanged|previous|omitted|other|same|before|above|original|more|"
    rf"continu\w+|elided|snip\w*|truncat\w*|skip\w*|brevity|etc|your|{LISTS['what']})\b",
    re.IGNORECASE,
)


def says_left_out(words: str) -> bool:
    """Return whether words, parted by blanks, are one of the wordings."""
    return _ANY.fullmatch(f"{words} ") is not None


def may_say_left_out(words: str) -> bool:
    """Return whether one of the words is such as stands in a place holder."""
    return _LEFT_OUT.search(words) is not None
