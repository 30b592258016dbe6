"""Rewritten versions of an original: what an edit did so far, done to the rest of it: names that
become others, and blocks that are indented. Both work on text, which is tokenised anew."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray

_WORD = re.compile(r"\w+|[^\w\s]|\s+")
_NAME = re.compile(r"\w+")
# Measure with `python -m tests.benchmarks edit --cases CASES/edit_canitedit.jsonl`.
_LONGEST_OLD = 5
_LONGEST_NEW = 8
_MARKS = "`'\"“”‘’"
_ARROWS = ("->", "=>", "→")
_LINK = re.compile(r"\s(?:to|into|with|by|as|->|=>|→)\s+(?:be\s+)?(?:called\s+|named\s+)?")
_INSTEAD = re.compile(r"\binstead of\b")
_RENAMING = re.compile(r"renam|chang|convert|turn|refactor|from|name", re.IGNORECASE)
_REPLACING = re.compile(r"replac|swap|switch|substitut", re.IGNORECASE)
_CALL_INSTEAD = re.compile(r"\b(?:[Cc]all|[Nn]ame)\s+(?:\w+\s+){0,3}?(\S+)\s+(\S+)\s+instead\b")
_THE_FUNCTION = re.compile(r"\b(?:function|method|class|it|this|name)\b", re.IGNORECASE)
_PLAIN_NOUNS = re.compile(
    "an?|the|it|this|that|names?|function|method|class|variable|parameter|argument|param|var|local"
)
_DEFINED = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)
_CODE_LIKE = re.compile(r"[^\W_][_.(\[=]\S|^@\w")
_QUOTED = re.compile(r"`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)")
_NAME_CHAIN = re.compile(r"[A-Za-z_][\w.]*")
_WORDS_BACK = 4
_EDGE = 2
_PHRASES = 16


class TextCodec(Hashable, Protocol):
    """Text to tokens and back."""

    @property
    def vocabulary_size(self) -> int:
        """Number of token ids."""
        ...

    def encode(self, text: str) -> TokenArray:
        """Return token ids of ``text``, no special tokens added."""
        ...

    def bytes_of(self, token: int) -> bytes:
        """The bytes a token stands for; empty for special tokens."""
        ...


@dataclass(slots=True)
class Version:
    """Rewritten text: tokens int32 [n]; offsets int32 [n], the original's token each belongs to;
    rules int8 [n], number of the rename that made the token, -1 for none."""

    tokens: TokenArray
    offsets: TokenArray
    rules: NDArray[np.int8]


def shown_at(prompt: TokenArray, original: TokenArray) -> tuple[int, int]:
    """Return the span of the original in the prompt; empty, at the prompt's end, when it is
    missing.

    The first and last tokens need not agree: a token of the prompt may hold the edge of the
    original and the text around it.
    """
    edge = _EDGE if len(original) > 8 * _EDGE else 0
    core = original[edge : len(original) - edge]
    if 0 < len(core) <= len(prompt):
        windows = np.lib.stride_tricks.sliding_window_view(prompt, len(core))
        first = np.flatnonzero(windows[:, 0] == core[0])
        for start in first[::-1]:
            if np.array_equal(windows[start], core):
                return max(int(start) - edge, 0), min(int(start) + len(core) + edge, len(prompt))
    return len(prompt), len(prompt)


def still_due(renames: list[tuple[str, str]], original: str) -> list[tuple[str, str]]:
    """Renames whose old name occurs in ``original``."""
    return [(old, new) for old, new in renames if _stands_in(old, original)]


def learn_rename(text_before: str, old: str, new: str, right: str) -> tuple[str, str] | None:
    """Return the name and its replacement, when ``left + old + right`` became ``left + new +
    right``. Cut to whole words; None when the change is no replacement of a short piece, or an
    empty one."""
    head, tail = re.split(r"\W", text_before)[-1], re.split(r"\W", right)[0]
    old_words = _WORD.findall(head + old + tail)
    new_words = _WORD.findall(head + new + tail)
    while old_words and new_words and old_words[0] == new_words[0]:
        del old_words[0], new_words[0]
    common = ""
    while old_words and new_words and old_words[-1] == new_words[-1]:
        common = old_words[-1]
        del old_words[-1], new_words[-1]
    if not old_words and new_words:
        following = common if _NAME.fullmatch(common) else ""
        if not following:
            return None
        old_words, new_words = [following], [*new_words, following]
    if len(old_words) == len(new_words):
        pairs = {(a, b) for a, b in zip(old_words, new_words, strict=True) if a != b}
        if len(pairs) == 1:
            a, b = pairs.pop()
            old_words, new_words = [a], [b]
    if not 0 < len(old_words) <= _LONGEST_OLD or not 0 < len(new_words) <= _LONGEST_NEW:
        return None
    before, after = "".join(old_words), "".join(new_words)
    if "\n" in before or "\n" in after or not _NAME.search(before) or before == after:
        return None
    return before, after


def spoken_renames(instruction: str, original: str) -> list[tuple[str, str]]:
    """Renames that an instruction asks for in words, such as "rename a to b" or "a -> b". The old
    name is the nearest of the words before the link that occurs in ``original``."""
    pairs: list[tuple[str | None, str | None]] = []
    for link in _LINK.finditer(instruction):
        sentence = instruction[: link.start()].rsplit("\n", 1)[-1][-120:]
        sign = link.group().split()[0]
        pattern = _REPLACING if sign in ("with", "by") else _RENAMING
        if sign in _ARROWS or pattern.search(sentence):
            old = _last_known(sentence.split(), original)
            if old is None and pattern is _RENAMING and _THE_FUNCTION.search(sentence):
                defined = _DEFINED.search(original)
                old = defined.group(1) if defined else None
            pairs.append((old, _first_name(instruction[link.end() :])))
    for called in _CALL_INSTEAD.finditer(instruction):
        pairs.append((_first_name(called.group(1)), _first_name(called.group(2))))
    for link in _INSTEAD.finditer(instruction):
        words = instruction[: link.start()].split()
        new = _first_name(words[-1] if words else "")
        pairs.append((_first_name(instruction[link.end() :]), new))
    renames: dict[str, str] = {}
    for old, new in pairs:
        if old and new and _stands_in(old, original) and not _stands_in(new, original):
            renames.setdefault(old, new)
    return list(renames.items())


def spoken_phrases(instruction: str, original: str) -> list[str]:
    """Return the texts that an instruction quotes or writes as code and the original lacks: likely
    new text."""
    quoted = [next(filter(None, match.groups())) for match in _QUOTED.finditer(instruction)]
    chunks = [chunk.strip(".,;:!?" + _MARKS) for chunk in instruction.split()]
    written = [chunk for chunk in chunks if _CODE_LIKE.search(chunk)]
    fresh = [text for text in [*quoted, *written] if text.strip() and text not in original]
    return list(dict.fromkeys(fresh))[:_PHRASES]


def _last_known(words: list[str], original: str) -> str | None:
    for word in reversed(words[-_WORDS_BACK:]):
        name = _first_name(word)
        if name and not _PLAIN_NOUNS.fullmatch(word) and _stands_in(name, original):
            return name
    return None


def _first_name(text: str) -> str | None:
    match = _NAME_CHAIN.match(text.strip().lstrip(_MARKS))
    return match.group().rstrip(".") if match else None


def _stands_in(name: str, text: str) -> bool:
    return re.search(_whole(name), text) is not None


def rewrite(
    codec: TextCodec, original: TokenArray, start: int, renames: list[tuple[str, str]], shift: int
) -> Version:
    """Return the original from token ``start`` on with names replaced and lines indented by
    ``shift``. ``start`` should be at a line break, so that the first line is a whole one."""
    pieces = [codec.bytes_of(int(token)) for token in original[start:]]
    starts = np.cumsum([0] + [len(piece) for piece in pieces])
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    new_text, bounds = _replace(text, _changes(text, renames, shift))
    tokens = np.asarray(codec.encode(new_text), np.int32)
    sizes = np.array([len(codec.bytes_of(int(token))) for token in tokens], np.int64)
    new_offsets = np.cumsum(sizes) - sizes
    old_places, rules = new_offsets.copy(), np.full(len(tokens), -1, np.int8)
    if len(bounds):
        new_begins, new_ends, old_begins, old_ends, numbers = bounds.T
        last = np.searchsorted(new_begins, new_offsets, side="right") - 1
        moved = last >= 0
        inside = moved & (new_offsets < new_ends[last])
        old_places[moved] = (new_offsets - new_ends[last] + old_ends[last])[moved]
        old_places[inside] = old_begins[last[inside]]
        touched = np.searchsorted(new_begins, new_offsets + sizes, side="left") - 1
        touches = (touched >= 0) & (new_offsets < new_ends[touched])
        rules[touches] = numbers[touched[touches]]
    offsets = np.searchsorted(starts, old_places, side="right") - 1 + start
    return Version(tokens, np.minimum(offsets, len(original)).astype(np.int32), rules)


def _replace(text: str, changes: list[tuple[int, int, str, int]]) -> tuple[str, NDArray[np.int64]]:
    """The changed text; int64 [n, 5]: byte span in it, in the old one, number of the rule."""
    pieces: list[str] = []
    bounds: list[tuple[int, int, int, int, int]] = []
    done = old_at = new_at = 0
    for begin, end, new, rule in changes:
        unchanged = _size(text[done:begin])
        old_at, new_at = old_at + unchanged, new_at + unchanged
        old_size, new_size = _size(text[begin:end]), _size(new)
        bounds.append((new_at, new_at + new_size, old_at, old_at + old_size, rule))
        pieces += [text[done:begin], new]
        old_at, new_at, done = old_at + old_size, new_at + new_size, end
    pieces.append(text[done:])
    return "".join(pieces), np.array(bounds, np.int64).reshape(-1, 5)


def _changes(
    text: str, renames: list[tuple[str, str]], shift: int
) -> list[tuple[int, int, str, int]]:
    """Replacements as begin, end, new text and number of the rule (-1: indentation), in order."""
    changes: list[tuple[int, int, str, int]] = []
    if renames:
        rules = {old: (new, number) for number, (old, new) in enumerate(renames)}
        longest_first = sorted(rules, key=len, reverse=True)
        for match in re.finditer("|".join(_whole(old) for old in longest_first), text):
            new, number = rules[match.group()]
            changes.append((match.start(), match.end(), new, number))
    if shift > 0:
        changes += [
            (f.end(), f.end(), " " * shift, -1) for f in re.finditer(r"\n(?=[ ]*[^\s])", text)
        ]
    elif shift < 0:
        changes += [
            (f.start() + 1, f.end(), "", -1)
            for f in re.finditer(rf"\n[ ]{{{-shift}}}(?=[ ]*[^\s])", text)
        ]
    changes.sort()
    return changes


def _whole(old: str) -> str:
    before = r"(?<!\w)" if _NAME.match(old[0]) else ""
    right = r"(?!\w)" if _NAME.match(old[-1]) else ""
    return before + re.escape(old) + right


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
