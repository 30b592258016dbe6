"""Separates a model's thinking, and the words around its answer, from the answer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

WORDS: dict[str, str] = json.loads(Path(__file__).with_name("answer_words.json").read_text("utf-8"))
_RARE = WORDS["rare"]
"""Names that markup has, too: they count where an answer begins with them."""
_OPENING, _CLOSING = (WORDS[end].replace("{name}", WORDS["name"]) for end in ("opening", "closing"))
_TAG = re.compile(rf"(?P<opening>{_OPENING})|(?P<closing>{_CLOSING})", re.IGNORECASE)
_RARE_OPENING = re.compile(rf"\s*<({_RARE})>", re.IGNORECASE)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\b[^<\n]*<\|message\|>")
_CHANNEL = re.compile(r"\s*(?:<\|start\|>\w*)?\s*<\|channel\|>")
_CHANNEL_END = re.compile(r"<\|(?:return|end|call)\|>")
_FINAL_WORD = re.compile(r"\Aanalysis.*?assistant(?:commentary.*?assistant)?final", re.DOTALL)
"""The same where the special tokens were taken out of the text."""
_SPOKEN = re.compile(WORDS["spoken"], re.DOTALL | re.IGNORECASE)
_WRAPPED = re.compile(WORDS["wrapped"], re.DOTALL | re.IGNORECASE)
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_BLOCK = re.compile(r"^[ \t]*(`{3,}|~{3,})[^`\n]*\n.*?^[ \t]*\1", re.MULTILINE | re.DOTALL)


class Spoken(NamedTuple):
    """An answer without its thinking. ``is_open``: the thinking did not end."""

    text: str
    is_open: bool
    had_thinking: bool


def without_thinking(answer: str, given_text: str) -> Spoken:
    """Return a model's answer without its thinking. given_text: the text that the model edits;
    marks that occur in it are code, unless the answer begins with them."""
    if (spoken := _of_channels(answer)) is not None:
        return spoken
    text, had = _SPOKEN.sub("", answer, count=1), False
    if rare := _RARE_OPENING.match(text):
        close = f"</{rare[1]}>"
        if rare.group().strip() not in given_text and close in text:
            text = text[text.index(close) + len(close) :]
    offset = 0
    while tag := _TAG.search(text, offset):
        if not _counts(text, tag, given_text):
            offset = tag.end()
        elif tag["closing"]:
            # What comes before it was thought, whoever began it.
            text, offset, had = text[tag.end() :], 0, True
        else:
            had = True
            closing = _closing_of(text, tag, given_text)
            if closing is None:
                return Spoken(text[: tag.start()].strip("\n"), True, True)
            text, offset = text[: tag.start()] + text[closing.end() :], tag.start()
    had = had or text != answer
    if had or not _FENCE_LINE.search(text):
        text = _unwrapped(text, given_text)
    return Spoken(text, False, had)


def _of_channels(answer: str) -> Spoken | None:
    """Return the answer of a model that writes in channels; None of another."""
    finals = list(_FINAL_CHANNEL.finditer(answer))
    if finals and _CHANNEL.match(answer):
        final = answer[finals[-1].end() :]
        end = _CHANNEL_END.search(final)
        return Spoken(final[: end.start()] if end else final, False, True)
    if _CHANNEL.match(answer):
        return Spoken("", True, True)
    if match := _FINAL_WORD.match(answer):
        return Spoken(answer[match.end() :], False, True)
    return None


def _counts(text: str, tag: re.Match[str], given_text: str) -> bool:
    """Return True if a mark belongs to thinking and not to the code of an answer."""
    before, after = text[: tag.start()], text[tag.end() :]
    if tag["opening"] and not before.strip():
        return True
    if tag.group().lower() in given_text.lower():
        # Such code is edited: a mark ends thinking where it stands alone before a block.
        is_alone = not before.rpartition("\n")[2].strip() and _FENCE_LINE.match(after.lstrip())
        return bool(tag["closing"] and is_alone and _BLOCK.search(after))
    if len(_FENCE_LINE.findall(before)) % 2 == 0:
        return True
    # Inside of a block, it seems; thinking may leave one open.
    return bool(tag["closing"]) and _BLOCK.search(after) is not None


def _closing_of(text: str, tag: re.Match[str], given_text: str) -> re.Match[str] | None:
    for closing in _TAG.finditer(text, tag.end()):
        is_code = closing.group().lower() in given_text.lower()
        rest_of_line = text[closing.end() :].split("\n", 1)[0]
        if closing["closing"] and not (is_code and rest_of_line.strip()):
            return closing
    return None


def _unwrapped(text: str, given_text: str) -> str:
    match = _WRAPPED.match(text)
    return text if match is None or match["begin"] in given_text else match["text"]
