"""Finds fenced blocks in an answer: CommonMark 0.31, and beyond it fences in list items and quotes,
after the last word of a line, and closing fences that are too short."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lsp_server.text.documents.document import with_line_feeds

_LEAD = r"(?P<lead>(?:[ \t]*(?:>|[-*+]|\d{1,3}[.)])(?=[ \t`~]))*[ \t]*)"
_OPENING = re.compile(rf"{_LEAD}(?P<fence>`{{3,}}(?=[^`]*$)|~{{3,}})(?P<info>.*)$")
_IN_SENTENCE = re.compile(r"(?P<said>.*\S)[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>[\w+#.-]*)[ \t]*$")
_RUN = re.compile(r"`{3,}|~{3,}")
_INLINE = re.compile(r"(?<!`)(`{1,2}|`{3,})(?!`)([^`\n]+)\1(?!`)")
_MARKDOWN = ("markdown", "md", "mdx", "rst", "quarto", "rmd", "asciidoc", "text", "plaintext")
TAB = 4
DEEPER = 3
"""A closing fence may be so many columns deeper than its opening."""


@dataclass(frozen=True, slots=True)
class AnswerBlock:
    """``text``: lines that end in newlines, without the indentation of the fence."""

    text: str
    info: str
    said_before: str
    """The line of prose before it."""

    @property
    def language(self) -> str:
        """The language that the opening fence names, in lower case."""
        return (self.info.strip().split() or [""])[0].strip("{}.").lower()


@dataclass(frozen=True, slots=True)
class _Opening:
    mark: str
    length: int
    lead: str
    info: str
    is_markdown: bool

    @property
    def indent(self) -> int:
        return len(self.lead.expandtabs(TAB))


def fenced_blocks(answer: str, given_text: str = "") -> list[AnswerBlock]:
    """Return the blocks of a whole answer in their order; ``given_text``: what the model was
    given."""
    lines = with_line_feeds(answer).split("\n")
    ends_in_fence = any(_is_behind_word(line, "`", 3) for line in given_text.split("\n"))
    blocks: list[AnswerBlock] = []
    number, prose = 0, ""
    while number < len(lines):
        opening = _opening_at(lines, number)
        if opening is None:
            prose = lines[number].strip() or prose
            number += 1
            continue
        prose = _before_fence(lines[number]) or prose
        last, tail, following = _end_of(lines, number + 1, opening, ends_in_fence)
        body = _without_lead([*lines[number + 1 : last], *([tail] if tail else [])], opening.lead)
        blocks.append(AnswerBlock("".join(f"{line}\n" for line in body), opening.info, prose))
        number, prose = following, ""
    return blocks


def whole_block(answer: str) -> AnswerBlock | None:
    """Return the text between the first fence and the last one: a block whose own code has such
    fences."""
    lines = with_line_feeds(answer).split("\n")
    openings = ((n, each) for n in range(len(lines)) if (each := _opening_at(lines, n)))
    first, opening = next(openings, (0, None))
    bare = [n for n, line in enumerate(lines) if _RUN.fullmatch(line.strip())]
    if opening is None or not bare or bare[-1] <= first:
        return None
    body = _without_lead(lines[first + 1 : bare[-1]], opening.lead)
    return AnswerBlock("".join(f"{line}\n" for line in body), opening.info, "")


def inline_code(answer: str) -> list[str]:
    """Return code within sentences."""
    return [match[2].strip() for match in _INLINE.finditer(answer)]


def _opening_at(lines: list[str], number: int) -> _Opening | None:
    line = lines[number]
    if "```" not in line and "~~~" not in line:
        return None
    match = _OPENING.match(line)
    if match is not None:
        return _opened(match, match["lead"])
    match = _IN_SENTENCE.match(line)
    if match is None or len(_RUN.findall(line)) % 2 == 0 or number + 1 == len(lines):
        return None
    following = next((later for later in lines[number + 1 :] if later.strip()), "")
    if not match["info"] and _OPENING.match(following):
        # The sentence is about fences, or ends in one by mistake.
        return None
    return _opened(match, "")


def _opened(match: re.Match[str], lead: str) -> _Opening:
    fence, info = match["fence"], match["info"].strip()
    name = info.split()[0].lower() if info else ""
    return _Opening(fence[0], len(fence), lead, info, name in _MARKDOWN)


def _end_of(
    lines: list[str], first: int, opening: _Opening, known_ends_in_fence: bool
) -> tuple[int, str, int]:
    """Return the line after a block's last one, the text of that line that belongs to the block,
    and the line that follows the block."""
    depth, nested, short = 0, None, None
    open_short = False
    for number in range(first, len(lines)):
        line = lines[number]
        if "```" not in line and "~~~" not in line:
            continue
        unquoted = _unquoted(line, opening.lead)
        stripped = unquoted.strip()
        run = _RUN.match(stripped)
        is_fence = run is not None and run.group()[0] == opening.mark
        if run is not None and not is_fence and run.group() == stripped:
            short = number
        if run is not None and is_fence and _width(unquoted) <= opening.indent + DEEPER:
            rest = stripped[run.end() :]
            if len(run.group()) < opening.length:
                open_short = bool(rest.strip()) or not open_short
                short = number if not rest.strip() else short
            elif rest.strip() and opening.mark not in rest:
                depth, nested = depth + 1, number if nested is None else nested
            elif not rest.strip() and depth:
                depth -= 1
            elif not rest.strip():
                return number, "", number + 1
        elif (
            not depth
            and not opening.is_markdown
            and not known_ends_in_fence
            and _is_behind_word(line, opening.mark, opening.length)
        ):
            return number, line.rstrip().rstrip(opening.mark).rstrip(), number + 1
    if nested is not None:
        # No block in the block: the first was not closed.
        return nested, "", nested
    following = [line for line in lines[(short or 0) + 1 :] if line.strip()]
    if (
        short is not None
        and (open_short or following)
        and not _is_paired(lines[first:short], opening)
    ):
        return short, "", short + 1
    return len(lines) - (not lines[-1] and len(lines) > first), "", len(lines)


def _is_paired(lines: list[str], opening: _Opening) -> bool:
    runs = (_RUN.match(line.strip()) for line in lines)
    return sum(run is not None and run.group()[0] == opening.mark for run in runs) % 2 == 1


def _is_behind_word(line: str, mark: str, length: int) -> bool:
    runs = _RUN.findall(line)
    stripped = line.rstrip()
    return (
        len(runs) == 1
        and runs[0][0] == mark
        and len(runs[0]) >= length
        and stripped.endswith(runs[0])
        and bool(stripped[: -len(runs[0])].strip())
    )


def _before_fence(line: str) -> str:
    match = None if _OPENING.match(line) else _IN_SENTENCE.match(line)
    return match["said"].strip() if match else ""


def _unquoted(line: str, lead: str) -> str:
    """Return a line with blanks in place of the marks of the quote that the block is in."""
    if ">" not in lead:
        return line
    match = re.match(r"[ \t]*(?:>[ \t]?)+", line)
    return line if match is None else " " * match.end() + line[match.end() :]


def _without_lead(lines: list[str], lead: str) -> list[str]:
    """Return the lines of a block without as much indentation as its fence has; as they are where
    some have less."""
    width = len(lead.expandtabs(TAB))
    texts = [_unquoted(line, lead) for line in lines]
    if not width or any(_width(text) < width for text in texts if text.strip()):
        return texts
    return [_without_width(text, width) for text in texts]


def _width(text: str) -> int:
    return len(text[: len(text) - len(text.lstrip(" \t"))].expandtabs(TAB))


def _without_width(text: str, width: int) -> str:
    end = 0
    while text[end : end + 1] in (" ", "\t") and _width(text[: end + 1]) <= width:
        end += 1
    return text[end:]
