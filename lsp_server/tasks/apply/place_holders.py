"""Tells place holders of snippets and answers, such as ``# ... rest of the code unchanged``, from
comments that say something."""

from __future__ import annotations

import re

from lsp_server.tasks.apply.wordings import may_say_left_out, says_left_out

ELLIPSIS = r"(?:\.{3,}|…|\. \. \.)"
_MARKS = r"#%;'\"!/*\-<>{}()\[\]|\\=~:@^+&$⍝`"
_STRIPPED = re.compile(rf"^[\s{_MARKS}]+|[\s{_MARKS}]+$")
_WORD_MARK = re.compile(r"^\s*(?:rem|dnl|c|--\[\[|comment)\s+(?=\W*\w)", re.IGNORECASE)
BEGINS_COMMENT = re.compile(
    r"^\s*(?:#|//|/\*|\*|--|;|%|'|\"|!|<!--|\{#|\{/\*|\(\*|\{-|<%|@\*|::|rem\b|dnl\b|⍝|\||\\)",
    re.IGNORECASE,
)
_ONLY_DOTS = re.compile(rf"^[\s{_MARKS}]*{ELLIPSIS}[\s{_MARKS}]*$")
_BARE_DOTS = re.compile(rf"^\s*[\[({{<]?\s*{ELLIPSIS}\s*[\])}}>]?\s*$")

OF_CODE = re.compile(
    r"\b(?:rest|remain\w*|existing|unchanged|omitted|same|elided|brevity|before)\b", re.IGNORECASE
)
"""Words of place holders that stand behind code."""
LONGEST_COMMENT = 400
"""Characters of a comment that says what is left out, or is to go."""


def place_holder(line: str) -> bool:
    """Return whether a line stands for text that was left out and is nothing else."""
    return is_marked(line) or is_bare(line)


def said(line: str) -> str:
    return _STRIPPED.sub("", _WORD_MARK.sub("", line))


def is_marked(line: str) -> bool:
    is_comment = BEGINS_COMMENT.match(line) is not None
    if len(line) > LONGEST_COMMENT or not (is_comment or _is_bracketed(line)):
        return False
    text = said(line)
    return is_comment if _ONLY_DOTS.match(line) else bool(text) and _says_left_out(text)


def _says_left_out(text: str) -> bool:
    dotted_start = re.match(ELLIPSIS, text) is not None
    dotted_end = re.search(rf"{ELLIPSIS}[\s{_MARKS}]*$", text) is not None
    words = re.sub(ELLIPSIS, " ", text)
    words = re.sub(r"[()\[\]{}<>*_\"'`,;:!.]|(?<=\s)[-–—]+(?=\s)|^[-–—]+|[-–—]+$", " ", words)
    words = " ".join(words.split())
    if dotted_start and dotted_end:
        return True
    if not words:
        return dotted_start
    if says_left_out(words):
        return True
    if dotted_start or dotted_end:
        pieces = re.split(rf"\s*(?:{ELLIPSIS}|[(),;–—])\s*", text)
        if any(
            says_left_out(" ".join(piece.strip(" .:").split())) for piece in pieces if piece.strip()
        ):
            return True
        return dotted_start and len(words.split()) <= 5 and may_say_left_out(words)
    pieces = [*filter(None, (piece.strip(" .:()") for piece in re.split(r"[(),;–—]", text)))]
    return len(pieces) > 1 and all(says_left_out(" ".join(piece.split())) for piece in pieces)


def _is_bracketed(line: str) -> bool:
    stripped = line.strip()
    return stripped[:1] + stripped[-1:] in ("[]", "()", "<>", "{}", "**", "__") or bool(
        re.match(rf"{ELLIPSIS}\s", stripped)
    )


def is_bare(line: str) -> bool:
    """Dots alone; where a statement may consist of them the lines around decide."""
    return _BARE_DOTS.match(line) is not None
