"""Texts that hold credentials. They enter no index, whatever the ignore files say."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from repo_index.token_shapes import KEY_BLOCKS, PASSWORDS, TOKENS

if TYPE_CHECKING:
    from repo_index.marks import Marks


_URL = re.compile(
    r"[a-z][a-z0-9+.-]{1,20}://[^\s:/@\"'<>{}$%]{1,64}:([^\s@/\"'<>{}$%]{6,})@[\w.-]+"
)
_WORDS = (
    *("password", "passwd", "passphrase", "secret", "token", "apikey", "api_key", "api-key"),
    *("access_key", "accesskey", "private_key", "privatekey", "auth_key", "authkey", "credential"),
    *("encryption_key", "signing_key"),
)
_VALUE = re.compile(
    r"""[\w.-]{0,40}["']?\s*(?::\s*[\w\[\]., |]{1,30}\s*=|=>|:=|=|:|,(?=\s*["']))\s*
    (?:[rbuf]{0,2}["'`](?P<quoted>[^"'`\s]{12,512})["'`]|(?P<bare>[A-Za-z0-9+/_=.~-]{16,512})\s*(?:$|;))""",
    re.VERBOSE,
)


_LONG_WORD = re.compile(r"[A-Za-z0-9+/_=.~:%-]{15,}")
_SPACED_MARKS = frozenset({"PRIVATE-TOKEN"})
"""Tokens that are apart from what they are known by."""
_FOLDED_MARKS = frozenset((*PASSWORDS, *_WORDS))
_MARKS = (*KEY_BLOCKS, *TOKENS, "://", *PASSWORDS, *_WORDS)


@lru_cache(maxsize=1)
def _marks() -> Marks:
    """Made when a long text is first looked at: the others load no compiled code."""
    from repo_index.marks import Marks

    return Marks(_MARKS)


_LONGEST_SCHEME = 21
_LONGEST_ADDRESS = 600
_STAND_INS = (
    *("example", "sample", "dummy", "fake", "placeholder", "changeme", "change-me", "change_me"),
    *("your", "test", "xxxx", "abcdef", "password", "secret", "token", "localhost", "redacted"),
)
_PLACEHOLDER = re.compile(
    "|".join(pattern for word in _STAND_INS for pattern in (word, word.upper(), word.capitalize()))
    + r"|\*\*\*|\.\.\.|1234567|<|>|\$\{|%\(|\{\{|https?:"
)
"""What is written where the reader is to put a credential. A word counts as people write it: random
letters spell a short one by chance, but seldom in one case."""


def secret_content(text: str, *, compiled: bool = True) -> str:
    """What in a text looks like a credential, with its line; empty when nothing does. ``compiled``:
    search by compiled code, which is loaded for it; otherwise none is."""
    place = secret_place(text, compiled=compiled)
    if place is None:
        return ""
    offset, what = place
    return f"secret: {what} on line {text.count(chr(10), 0, offset) + 1}"


def secret_place(text: str, *, compiled: bool = True) -> tuple[int, str] | None:
    """Where something that looks like a credential is, and what it is; None for nowhere."""
    folded = _folded(text)
    for mark in _marks().found_in(text) if compiled else _found_in(text, folded):
        if mark in KEY_BLOCKS:
            place = _key_place(text, mark)
        elif mark == "://":
            place = _address_place(text)
        elif mark in TOKENS:
            place = _token_place(text, mark)
        elif mark in PASSWORDS:
            place = _password_place(text, folded, mark)
        else:
            place = _value_place(text, folded, mark)
        if place is not None:
            return place
    return None


def _found_in(text: str, folded: str) -> Iterator[str]:
    """The marks that occur in a text, in the order of the others. Those of tokens are looked for
    where a word is long enough for one."""
    words = "\n".join(_LONG_WORD.findall(text))
    for mark in _MARKS:
        if mark in _FOLDED_MARKS:
            place = folded
        elif mark in TOKENS and mark not in _SPACED_MARKS:
            place = words
        else:
            place = text
        if mark in place:
            yield mark


def _key_place(text: str, mark: str) -> tuple[int, str] | None:
    for start in _places(text, mark):
        header = KEY_BLOCKS[mark].search(text, max(0, start - 40), start + 80)
        if header is None:
            continue
        if header[1] == "LS" or _has_key(text, header):
            return start, "a private key"
    return None


def _password_place(text: str, folded: str, mark: str) -> tuple[int, str] | None:
    before, pattern = PASSWORDS[mark]
    for start in _places(folded, mark):
        found = pattern.search(text, max(0, start - before), start + _LONGEST_ADDRESS)
        if found is None or _PLACEHOLDER.search(found[1]) or len(set(found[1])) <= 4:
            continue
        if _mixed(found[1]) and any(map(str.isdigit, found[1])):
            return start, "a login"
    return None


def _token_place(text: str, mark: str) -> tuple[int, str] | None:
    before, pattern = TOKENS[mark]
    for start in _places(text, mark):
        for place in range(max(0, start - before), start + 1):
            found = pattern.match(text, place)
            if found and _is_random(found[0]):
                return start, "an access token"
    return None


def _address_place(text: str) -> tuple[int, str] | None:
    for start in _places(text, "://"):
        end = start + _LONGEST_ADDRESS
        found = "@" in text[start:end] and _URL.search(text, max(0, start - _LONGEST_SCHEME), end)
        if (
            found
            and not _PLACEHOLDER.search(found[1])
            and len(set(found[1])) > 4
            and _mixed(found[1])
        ):
            return found.start(), "a password in an address"
    return None


def _folded(text: str) -> str:
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(c.lower() if c.isascii() else c for c in text)


def _value_place(text: str, folded: str, word: str) -> tuple[int, str] | None:
    for start in _places(folded, word):
        end = text.find("\n", start)
        end = min(len(text) if end < 0 else end, start + 600)
        given = _VALUE.match(text, start + len(word), end)
        if given and _is_credential(given["quoted"] or given["bare"], bare=given["quoted"] is None):
            return start, f"a value given to {word}"
    return None


def _places(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def _has_key(text: str, border: re.Match[str]) -> bool:
    """Whether key material lies inside of a private key's border: a mention of one has none."""
    if border[1] == "END":
        inside = text[max(0, border.start() - 400) : border.start()]
    else:
        inside = text[border.end() : border.end() + 400]
    return re.search(r"[A-Za-z0-9+/=]{40,}", inside.replace("\\n", "\n")) is not None


def _is_random(value: str) -> bool:
    if re.search(r"EXAMPLE|x{6}|X{6}|\.\.\.|0{8}|1234567|abcdef", value):
        return False
    return len(set(value)) >= 8


def _mixed(value: str) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    return sum(any(kind(c) for c in value) for kind in kinds) >= 2


def _is_credential(value: str, *, bare: bool) -> bool:
    """Whether a value given to a name like ``password`` is random enough to be one."""
    if _PLACEHOLDER.search(value) or not any(c.isdigit() for c in value):
        return False
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*(?:[./][A-Za-z0-9_]+)*", value) and not _mixed(value):
        return False
    if bare and re.search(r"[._]", value) and not re.search(r"[+/=]", value):
        return False
    return entropy(value) >= (3.6 if bare else 3.0 if len(value) < 20 else 3.3)


def entropy(value: str) -> float:
    """Shannon entropy of the characters of ``value``, in bits for each."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
