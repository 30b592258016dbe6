"""Other people's text in a form that a terminal may show.

Names of files, what is in a model's header or on its page, and what a server answers may hold
characters that steer a terminal, or turn the order of those around them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

_UNSEEN = "\N{REPLACEMENT CHARACTER}"
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "\N{SYMBOL FOR DELETE}"}
"""What is seen in place of a control character."""
_C1 = range(0x80, 0xA0)
_SURROGATES = range(0xD800, 0xE000)
"""What no encoding has: the bytes of a file's name that are no text."""
_ORDERING = (0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
_ALL = _PICTURES | dict.fromkeys((*_C1, *_SURROGATES, *_ORDERING), _UNSEEN)
_LAID_OUT = {code: shown_as for code, shown_as in _ALL.items() if code not in (0x09, 0x0A)}


def printable(text: str) -> str:
    """Return a text whose lines and tabs stay; another control character is seen as its picture
    (``␛``) or as ``�``. A line may end as on Windows."""
    return "\r\n".join(line.translate(_LAID_OUT) for line in text.split("\r\n"))


def in_one_line(text: str) -> str:
    """Return a name or a message: no character of it begins another line."""
    return text.translate(_ALL)


def from_home(text: str) -> str:
    """Return a message whose paths begin at the user's home: editors cut what is long."""
    return text.replace(f"{Path.home()}{os.sep}", "~/")


def say(text: str = "", *, file: TextIO | None = None, flush: bool = False) -> None:
    """Print a text, by default on standard output."""
    print(printable(text), file=file, flush=flush)
