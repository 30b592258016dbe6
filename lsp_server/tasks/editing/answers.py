"""Finds the code in a whole answer of a chat model: the block that rewrites the selection, a diff
applied, what was left out filled in where that can be done in one way only."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Sequence

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing.answer_blocks import (
    AnswerBlock,
    fenced_blocks,
    inline_code,
    whole_block,
)
from lsp_server.tasks.editing.answer_diffs import is_diff, patched
from lsp_server.tasks.editing.thinking import WORDS, without_thinking
from lsp_server.tasks.indentation import ABOUT_INDENTS, with_indents_of

NO_CODE = "the model answered without code; ask again or use another model"
STILL_THINKING = (
    "the model thought and did not answer; ask again, allow longer answers or use another model"
)
IN_PARTS = "the model answered in several parts; edit again or select fewer lines"
NEARLY = 0.6
"""A block rewrites the selection that is so nearly as like it as the likeliest is."""
REWRITES = 0.3
"""So alike is a block to the selection that may be its new text."""
BARE = 0.5
"""So alike is an answer without a fence that is taken as code."""
BETTER_JOINED = 0.15
SLIGHTLY = 0.02
_WORD = re.compile(r"\w+|[^\w\s]")
_ALTERNATIVE = re.compile(WORDS["alternative"], re.IGNORECASE)
_COMMANDS = {"sh", "bash", "shell", "zsh", "console", "shellsession", "shellscript", "output"}
"""Languages of blocks that say how something is run, or what it prints."""
_MARKED_UP = re.compile(
    r"<pre[^>]*>\s*<code[^>]*>\n?(?P<code>.*?)</code>\s*</pre>", re.DOTALL | re.IGNORECASE
)
_PROSE = re.compile(r"^[A-Z\"'(`*][^\n]*[.:!?]\**$")
_CODE_MARKS = re.compile(r"[{}()\[\];=<>]|^\s*(?:#|//|/\*|--|\*)")


def code_of_answer(
    answer: str,
    selection: str,
    *,
    opening: str = "",
    language: str = "",
    instruction: str = "",
    before: str = "",
    after: str = "",
) -> str:
    """Return the new text of the selection by a whole answer.

    opening: the fence and language that the answer goes on from, where it was begun. All texts have
    lines that end in newlines. Raises EditRefused with the reason where that is not clear.
    """
    # Its patterns take long to compile, and a start does not wait for them.
    from lsp_server.tasks.editing.elided_code import filled_in

    given_text = "\n".join((selection, before, after, instruction))
    spoken = without_thinking(answer, given_text)
    if spoken.is_open and not spoken.text.strip():
        raise EditRefused(STILL_THINKING)
    text = spoken.text
    if opening and not spoken.had_thinking:
        text = _continued(opening, text)
    block = _rewriting(text, selection, given_text, language)
    if is_diff(block.text, block.language, selection):
        return patched(block.text, selection, before, after)
    text = block.text
    if not ABOUT_INDENTS.search(instruction):
        text = with_indents_of(selection, text)
    return filled_in(text, selection, language, instruction)


def code_so_far(answer: str, selection: str) -> str:
    """Whole lines of the first block of an answer that is being written, for people to look at."""
    spoken = without_thinking(answer[: answer.rfind("\n") + 1], selection)
    blocks = fenced_blocks(spoken.text, selection) if not spoken.is_open else []
    return blocks[0].text.rstrip("\n") + "\n" if blocks and blocks[0].text.strip() else ""


def _continued(opening: str, text: str) -> str:
    """Return the whole answer of which the opening fence was given. A model may write one again."""
    again = fenced_blocks(text)
    first = next((line for line in text.split("\n") if line.strip()), "")
    mark = opening[: len(opening) - len(opening.lstrip("`"))]
    is_again = first.strip().startswith(mark[:3]) and first.strip().strip("`") != ""
    return text if again and is_again else f"{opening}\n{text}"


def _rewriting(text: str, selection: str, given_text: str, language: str) -> AnswerBlock:
    """Return the block of an answer that rewrites the selection. Raises EditRefused without one."""
    fenced = fenced_blocks(text, given_text)
    blocks = [block for block in fenced if block.text.strip()]
    if not blocks:
        return fenced[0] if fenced else _bare(text, selection, language)
    words = _words(selection)
    if len(blocks) == 1:
        is_other = blocks[0].language in _COMMANDS and language not in _COMMANDS
        if is_other and _alike(_words(blocks[0].text), words) < REWRITES:
            raise EditRefused(NO_CODE)
        return _whole_if_cut(blocks[0], text, selection)
    diffs = [block for block in blocks if is_diff(block.text, block.language, selection)]
    others = [block for block in blocks if block not in diffs]
    likeness = {id(block): _alike(_words(block.text), words) for block in others}
    changed = [block for block in others if block.text.split() != selection.split()]
    able = [block for block in changed if likeness[id(block)] >= REWRITES]
    if not able and diffs:
        if len(diffs) > 1:
            return AnswerBlock("".join(block.text for block in diffs), "diff", "")
        return diffs[0]
    if not able:
        able = [block for block in others if block not in changed] or others
    best = max(likeness[id(block)] for block in able)
    nearly = [block for block in able if likeness[id(block)] >= NEARLY * best]
    whole_answer = whole_block(text)
    if (
        whole_answer is not None
        and _alike(_words(whole_answer.text), words) > best + BETTER_JOINED
        and "```" in given_text
    ):
        return whole_answer
    joined = _alike(_words("".join(block.text for block in able)), words)
    if len(able) > 1 and joined > best + SLIGHTLY:
        raise EditRefused(IN_PARTS)
    plain = [block for block in nearly if not _ALTERNATIVE.search(block.said_before)]
    return (plain or nearly[:1])[-1]


def _whole_if_cut(block: AnswerBlock, text: str, selection: str) -> AnswerBlock:
    """Return the block, or all between the outermost fences where the selection itself has such
    fences."""
    whole_answer = whole_block(text) if "```" in selection or "~~~" in selection else None
    if whole_answer is None:
        return block
    words = _words(selection)
    is_more = _alike(_words(whole_answer.text), words) > _alike(_words(block.text), words)
    return whole_answer if is_more else block


def _bare(text: str, selection: str, language: str) -> AnswerBlock:
    """Return an answer without a fence, where it is code: the selection's lines, changed."""
    body = _without_prose(text.strip("\n").split("\n"), selection)
    code = "\n".join(body)
    words = _words(selection)
    if is_diff(code, "", selection):
        return AnswerBlock(f"{code}\n", "diff", "")
    if "<pre" not in selection and (marked := _MARKED_UP.search(text)):
        return AnswerBlock(html.unescape(marked["code"]).rstrip("\n") + "\n", language, "")
    selected_lines = {line.strip() for line in selection.split("\n") if line.strip()}
    own = [line.strip() for line in body if line.strip()]
    unchanged = sum(line in selected_lines for line in own)
    if own and (_alike(_words(code), words) >= BARE or 2 * unchanged >= len(own) > 0):
        return AnswerBlock(f"{code}\n", language, "")
    if len(selected_lines) == 1:
        inline = {*inline_code(text)} - {selection.strip()}
        alike = [span for span in inline if _alike(_words(span), words) >= BARE]
        if len(alike) == 1:
            return AnswerBlock(f"{alike[0]}\n", language, "")
    raise EditRefused(NO_CODE)


def _without_prose(lines: Sequence[str], selection: str) -> list[str]:
    selected_lines = {line.strip() for line in selection.split("\n")}

    def is_said(line: str) -> bool:
        text = line.strip()
        is_sentence = _PROSE.match(text) is not None and len(text.split()) >= 3
        is_code = text in selected_lines or _CODE_MARKS.search(re.sub(r"`[^`]*`", "", text))
        return not text or (is_sentence and not is_code)

    first, last = 0, len(lines)
    while first < last and is_said(lines[first]):
        first += 1
    while last > first and is_said(lines[last - 1]):
        last -= 1
    return list(lines[first:last]) or list(lines)


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text))


def _alike(first: Counter[str], other: Counter[str]) -> float:
    total = first.total() + other.total()
    return 2.0 * (first & other).total() / total if total else 1.0
