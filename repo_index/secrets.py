"""Texts that hold credentials. They enter no index, also where ignore files would let them in."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_SHAPES = json.loads(Path(__file__).with_name("token_shapes.json").read_text("utf-8"))
TOKENS, PASSWORDS = (
    {mark: (before, re.compile(pattern)) for rows in groups for mark, before, pattern in rows}
    for groups in (_SHAPES["tokens"].values(), [_SHAPES["passwords"]])
)
"""As their issuers document them: what a token is known by, and in small letters a login; how many
characters may be before that, and its whole form. The group is what must stay secret."""
KEY_BLOCKS = {mark: re.compile(pattern) for mark, pattern in _SHAPES["key blocks"]}
"""How private keys begin or end, as they are and in base 64; the key lies on the inner side."""

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

_LEAST_WORD = 15
_LONG_WORD = re.compile(rf"[A-Za-z0-9+/_=.~:%-]{{{_LEAST_WORD},}}")
_SPACED_MARKS = frozenset({"PRIVATE-TOKEN"})
"""Tokens that are apart from what they are known by."""
_FOLDED_MARKS = frozenset((*PASSWORDS, *_WORDS))
_MARKS = (*KEY_BLOCKS, *TOKENS, "://", *PASSWORDS, *_WORDS)
_LONGEST_MARK = max(map(len, _MARKS))
_REACH = _LONGEST_MARK + _LEAST_WORD
_PART = 50_000
"""Characters that are looked at at a time, some milliseconds."""

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


def secret_content(text: str) -> str:
    """Return what in a text looks like a credential, with its line; empty when nothing does."""
    return _told(text, _secret_in(_Part(text, 0, len(text))))


def secret_content_by_parts(text: str) -> Iterator[str]:
    """``secret_content`` for callers with other work meanwhile: empty after each part of a long
    text in which nothing begins, and at last what was found."""
    for start in range(0, len(text), _PART):
        piece = _Part(text, start, min(start + _PART, len(text)))
        secret = _told(text, _secret_in(piece))
        yield secret
        if secret:
            return


def _told(text: str, secret: tuple[int, str] | None) -> str:
    if secret is None:
        return ""
    offset, what = secret
    return f"secret: {what} on line {text.count(chr(10), 0, offset) + 1}"


class _Part:
    """The part of a text from ``start`` to ``stop``: what begins in it is looked for, and may go on
    after it."""

    def __init__(self, text: str, start: int, stop: int) -> None:
        self.text = text
        self._start = start
        self._length = stop - start
        self._own = text[start : stop + _LONGEST_MARK]
        self._folded = _folded(self._own)

    def positions(self, mark: str) -> Iterator[int]:
        """Return where a mark begins in the piece, as offsets of the whole text."""
        own = self._folded if mark in _FOLDED_MARKS else self._own
        offset = own.find(mark)
        while 0 <= offset < self._length:
            yield self._start + offset
            offset = own.find(mark, offset + 1)

    def marks(self) -> Iterator[str]:
        """Yield the marks that occur in the part, in the order of the others. Those of tokens are
        looked for where a word is long enough for one."""
        around = slice(max(0, self._start - _LEAST_WORD), self._start + self._length + _REACH)
        words = "\n".join(_LONG_WORD.findall(self.text[around]))
        for mark in _MARKS:
            if mark in _FOLDED_MARKS:
                own = self._folded
            elif mark in TOKENS and mark not in _SPACED_MARKS:
                own = words
            else:
                own = self._own
            if mark in own:
                yield mark


def _secret_in(piece: _Part) -> tuple[int, str] | None:
    """Return where something like a credential begins, and what it is; None for nowhere."""
    for mark in piece.marks():
        if mark in KEY_BLOCKS:
            secret = _key_in(piece, mark)
        elif mark == "://":
            secret = _address_in(piece)
        elif mark in TOKENS:
            secret = _token_in(piece, mark)
        elif mark in PASSWORDS:
            secret = _password_in(piece, mark)
        else:
            secret = _value_in(piece, mark)
        if secret is not None:
            return secret
    return None


def _key_in(piece: _Part, mark: str) -> tuple[int, str] | None:
    for start in piece.positions(mark):
        header = KEY_BLOCKS[mark].search(piece.text, max(0, start - 40), start + 80)
        if header is None:
            continue
        if header[1] == "LS" or _has_key(piece.text, header):
            return start, "a private key"
    return None


def _password_in(piece: _Part, mark: str) -> tuple[int, str] | None:
    before, pattern = PASSWORDS[mark]
    for start in piece.positions(mark):
        match = pattern.search(piece.text, max(0, start - before), start + _LONGEST_ADDRESS)
        if match is None or _PLACEHOLDER.search(match[1]) or len(set(match[1])) <= 4:
            continue
        if _mixed(match[1]) and any(map(str.isdigit, match[1])):
            return start, "a login"
    return None


def _token_in(piece: _Part, mark: str) -> tuple[int, str] | None:
    before, pattern = TOKENS[mark]
    for start in piece.positions(mark):
        for first in range(max(0, start - before), start + 1):
            match = pattern.match(piece.text, first)
            if match and _is_random(match[0]):
                return start, "an access token"
    return None


def _address_in(piece: _Part) -> tuple[int, str] | None:
    text = piece.text
    for start in piece.positions("://"):
        end = start + _LONGEST_ADDRESS
        match = "@" in text[start:end] and _URL.search(text, max(0, start - _LONGEST_SCHEME), end)
        if (
            match
            and not _PLACEHOLDER.search(match[1])
            and len(set(match[1])) > 4
            and _mixed(match[1])
        ):
            return match.start(), "a password in an address"
    return None


def _value_in(piece: _Part, word: str) -> tuple[int, str] | None:
    text = piece.text
    for start in piece.positions(word):
        end = text.find("\n", start)
        end = min(len(text) if end < 0 else end, start + 600)
        value = _VALUE.match(text, start + len(word), end)
        if value and _is_credential(value["quoted"] or value["bare"], bare=value["quoted"] is None):
            return start, f"a value given to {word}"
    return None


def _folded(text: str) -> str:
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(c.lower() if c.isascii() else c for c in text)


def _has_key(text: str, border: re.Match[str]) -> bool:
    """Return True if there is key material inside of a private key's border."""
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
    """Return True if a value given to a name like ``password`` is random enough to be one."""
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
