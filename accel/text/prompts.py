"""Prompts in token ids, from a vocabulary's own special tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from accel.draft_tree import TokenArray
from accel.errors import InvalidRequest, UnsupportedPrompt
from accel.text.chat import chat_tokens
from accel.text.families import Order
from accel.text.fences import fence_for
from accel.text.other_files import NO_FILES, OtherFiles, Snippet, laid_out
from accel.text.special_tokens import FimFormat, fim_format_of
from accel.text.tokenizer import Tokenizer

NOTHING = np.empty(0, np.int32)


@dataclass(slots=True)
class Prompt:
    """Tokens to generate from, and how to read what comes. All arrays int32."""

    tokens: TokenArray
    stop_tokens: frozenset[int]
    """No control token belongs into code, so each of them ends it."""
    required_prefix: bytes = b""
    """End of the typed text that was cut off to reach a border between tokens."""
    text: TokenArray = field(default_factory=lambda: NOTHING)
    """``tokens`` as the text that the answer continues, for drafts: ``tokens`` may end with a
    marker and have markers within. All of ``tokens`` when not given."""
    suffix_tokens: TokenArray = field(default_factory=lambda: NOTHING)
    """Text after the cursor."""
    original_tokens: TokenArray | None = None
    """The code that an edit starts from."""
    closing_tokens: TokenArray = field(default_factory=lambda: NOTHING)
    """Tokens expected between the code and the end of an answer."""
    stop_texts: tuple[str, ...] = ()
    """Text that begins another file, where the vocabulary has no token for that."""
    fence: str = ""
    """If set, the answer is code up to the line of this fence, see ``fences.closing_place``."""

    def __post_init__(self) -> None:
        if not len(self.text):
            self.text = self.tokens


def fim_prompt(
    tokenizer: Tokenizer,
    prefix: str,
    suffix: str,
    *,
    path: str = "",
    repository: str = "",
    snippets: Sequence[Snippet] = (),
    budget: int = 2048,
    snippet_budget: int | None = None,
    suffix_budget: int | None = None,
) -> Prompt:
    """Complete between ``prefix`` and ``suffix`` in at most ``budget`` prompt tokens,
    ``snippet_budget`` of them (by default a quarter) for ``snippets``, at most ``suffix_budget``
    for the suffix.

    The prompt stops at a border between tokens: the rest of what is typed becomes
    ``required_prefix``. Both are trimmed at line borders that stay while the user types, so that
    the KV cache can be reused. Without a suffix, or tokens for one, the prompt is the text itself.
    """
    fim = fim_format_of(tokenizer)
    share = budget // 4 if snippet_budget is None else snippet_budget
    files = laid_out(tokenizer, snippets, path, repository, share) if snippets else NO_FILES
    head = _joined(tokenizer.opening, files.before)
    available = budget - len(head) - len(files.inside) - 3
    if available < 16:
        raise InvalidRequest(f"a budget of {budget} tokens leaves no room for text; give more")
    alone = not suffix or fim is None
    by_lines = fim is not None and fim.order == Order.PREFIX_FIRST and not alone
    # By lines the hole begins where the line does, as holes did that the model was trained on.
    start = prefix.rfind("\n") + 1 if by_lines else 0
    lines, (line, typed) = prefix[:start], back_off(tokenizer, prefix[start:])
    share = _suffix_share(lines + line, available)
    most = min(share, suffix_budget or share)
    after = _first_lines(tokenizer, suffix, most, Preceding.CONTROL)
    room = available if alone else available - len(after)
    preceding = _preceding(files, alone)
    if by_lines:
        in_hole = _last_lines(tokenizer, line, room // 2)
        reserved = (len(in_hole) // _LINE_STEP + 1) * _LINE_STEP
        before = _last_lines(tokenizer, lines, room - min(reserved, room // 2), preceding)
    else:
        in_hole, before = NOTHING, _last_lines(tokenizer, line, room, preceding)
    before = _joined(files.inside, before)
    if fim is not None and not alone:
        around = around_hole(fim, before, after)
        body = _joined(around, in_hole)
    elif len(before) == 0 and (len(head) == 0 or tokenizer.reads_blanks):
        before, typed = _encoded(tokenizer, typed, preceding), ""
        body = before
    else:
        body = before
    return Prompt(
        _joined(head, body),
        tokenizer.special_tokens | (frozenset() if fim is None else fim.ends),
        required_prefix=typed.encode(),
        text=_joined(head, before, in_hole),
        suffix_tokens=after,
        stop_texts=files.stop_texts,
    )


@dataclass(frozen=True, slots=True)
class Beginning:
    """The beginning of a document's prompts, int32, of which the first ``others`` tokens are of
    other files."""

    tokens: TokenArray
    others: int


def fim_beginning(
    tokenizer: Tokenizer,
    text: str,
    *,
    path: str = "",
    repository: str = "",
    snippets: Sequence[Snippet] = (),
    budget: int = 2048,
    snippet_budget: int | None = None,
) -> Beginning:
    """Return the tokens that ``fim_prompt`` begins with for any cursor in the first ``budget``
    tokens of ``text``, a document from its start. If the suffix comes first, it is that of a cursor
    at the start."""
    fim = fim_format_of(tokenizer)
    share = budget // 4 if snippet_budget is None else snippet_budget
    files = laid_out(tokenizer, snippets, path, repository, share) if snippets else NO_FILES
    head = _joined(tokenizer.opening, files.before)
    available = max(budget - len(head) - len(files.inside) - 3, 0)
    if fim is not None and fim.order != Order.PREFIX_FIRST:
        most = _suffix_share("", available)
        after = _first_lines(tokenizer, text, most, Preceding.CONTROL)
        body = around_hole(fim, files.inside, after)
    else:
        preceding = _preceding(files, fim is None)
        body = _joined(files.inside, _encoded(tokenizer, text[: 8 * budget], preceding)[:available])
        if fim is not None:
            body = _joined(fim.prefix, body)
    return Beginning(_joined(head, body), len(head))


def edit_prompt(
    tokenizer: Tokenizer,
    instruction: str,
    selection: str,
    *,
    before: str = "",
    after: str = "",
    language: str = "",
    path: str = "",
    budget: int = 4096,
) -> Prompt:
    """Rewrite ``selection`` by ``instruction``, through the model's chat template.

    Raises UnsupportedPrompt when the model has none, InvalidRequest when the selection does not fit
    the budget.
    """
    if tokenizer.chat_template is None:
        raise UnsupportedPrompt("the model has no chat template; use an instruct model for edits")
    if tokenizer.edit_lines is not None:
        before, after = lines_around(before, after, tokenizer.edit_lines)
    fence = fence_for(selection, before, after, instruction)
    original = tokenizer.encode(selection)
    available = max(budget - len(original) - 256, 0) // 2
    around = (before, after) if available else ("", "")
    question = edit_question(
        instruction,
        selection,
        before=tokenizer.decode(_last_lines(tokenizer, around[0], available)),
        after=tokenizer.decode(_first_lines(tokenizer, around[1], available)),
        opening=fence + language,
        path=path,
    )
    closing = fence if selection.endswith("\n") else f"\n{fence}"
    prompt = Prompt(
        chat_tokens(tokenizer, question, answer=f"{fence}{language}\n"),
        tokenizer.special_tokens,
        original_tokens=original,
        closing_tokens=tokenizer.encode(closing),
        fence=fence,
    )
    if len(prompt.tokens) > budget:
        raise InvalidRequest(
            f"the selection makes a prompt of {len(prompt.tokens)} tokens and {budget} fit; "
            "select less"
        )
    return prompt


def back_off(tokenizer: Tokenizer, prefix: str) -> tuple[str, str]:
    """Split a prefix at the last border between tokens that no continuation can move."""
    piece = tokenizer.last_piece(prefix[-_PIECE:])
    if not piece or len(piece) > _PIECE // 2:
        return prefix, ""
    index = tokenizer.byte_index
    last = index.bytes_of(int(tokenizer.encode(piece)[-1]))
    if not index.can_grow(last) and not index.can_grow(piece.encode()):
        return prefix, ""
    return prefix[: len(prefix) - len(piece)], piece


_PIECE = 256
"""Characters in which the last piece is looked for."""

_LINE_STEP = 64
"""Step of the cursor line's budget, in tokens, so that the lines before it stay."""


def around_hole(fim: FimFormat, prefix: TokenArray, suffix: TokenArray) -> TokenArray:
    """Return the tokens that ask for what is between ``prefix`` and ``suffix``."""
    if fim.middle is None:
        return _joined(fim.suffix, suffix, fim.prefix, prefix)
    if fim.order == Order.SUFFIX_FIRST:
        return _joined(fim.prefix, fim.suffix, suffix, fim.middle, prefix)
    if fim.order == Order.SUFFIX_PREFIX_MIDDLE:
        return _joined(fim.suffix, suffix, fim.prefix, prefix, fim.middle)
    return _joined(fim.prefix, prefix, fim.suffix, suffix, fim.middle)


def _joined(*pieces: int | TokenArray) -> TokenArray:
    return np.concatenate([np.atleast_1d(np.asarray(piece, np.int32)) for piece in pieces])


def _suffix_share(prefix: str, available: int) -> int:
    """Return tokens for the suffix: a quarter, and what a short prefix leaves, in steps of an
    eighth so that it changes rarely while the prefix grows."""
    step = max(available // 8, 1)
    expected = -(-(len(prefix) // 2) // step) * step
    return min(max(available - expected, available // 4), 3 * available // 4)


class Preceding(Enum):
    """The kind of text before a text in a prompt."""

    NOTHING = "nothing"
    CONTROL = "control"
    TEXT = "text"


def _preceding(files: OtherFiles, alone: bool) -> Preceding:
    """Return the kind of text before the cursor's. ``alone``: without markers of a hole."""
    if len(files.inside) or (alone and len(files.before)):
        return Preceding.TEXT
    return Preceding.NOTHING if alone else Preceding.CONTROL


def _encoded(tokenizer: Tokenizer, text: str, preceding: Preceding) -> TokenArray:
    if preceding is Preceding.TEXT:
        return tokenizer.encode(text)
    return tokenizer.encode_beginning(text, is_first=preceding is Preceding.NOTHING)


def _last_lines(
    tokenizer: Tokenizer, text: str, budget: int, preceding: Preceding = Preceding.TEXT
) -> TokenArray:
    """Return tokens of the last lines that fit, from a start that moves in large steps only."""
    step = max(budget, 64)
    start = max(-(-(len(text) - 8 * budget) // step), 0) * step
    while True:
        tokens = _encoded(tokenizer, text[_line_start(text, start) :], preceding)
        excess = len(tokens) - budget
        if excess <= 0:
            return tokens
        per_token = max((len(text) - start) / len(tokens), 0.5)
        start += max(-(-int(excess * per_token) // step), 1) * step
        if start >= len(text):
            return tokens[-budget:]


def _first_lines(
    tokenizer: Tokenizer, text: str, budget: int, preceding: Preceding = Preceding.TEXT
) -> TokenArray:
    """Return tokens of the first lines that fit."""
    text = text[: 8 * budget]
    tokens = _encoded(tokenizer, text, preceding)
    if len(tokens) <= budget:
        return tokens
    head = tokenizer.decode(tokens[:budget])
    end = head.rfind("\n") + 1
    # A blank before the text is a character of what is decoded.
    return tokenizer.encode(head[:end])[:budget] if end else tokens[:budget]


def _line_start(text: str, offset: int) -> int:
    """Return the first line border at or after ``offset``; ``offset`` itself when there is none."""
    if offset <= 0 or text[offset - 1] == "\n":
        return max(offset, 0)
    line_break = text.find("\n", offset)
    return offset if line_break < 0 else line_break + 1


def lines_around(before: str, after: str, count: int) -> tuple[str, str]:
    """Return the last lines before a selection and the first after it."""
    above = before.splitlines(keepends=True)
    # The end of the selection's last line is no line of its own.
    below = after.removeprefix("\n").splitlines(keepends=True)
    return "".join(above[max(len(above) - count, 0) :]), "".join(below[:count])


def edit_question(
    instruction: str, selection: str, *, before: str, after: str, opening: str, path: str
) -> str:
    """Return the message to a chat model for an edit; ``opening``: the fence that the code is in,
    with its language."""
    fence = re.match(r"`+", opening)
    assert fence is not None, "a fence begins with backticks"
    close = fence.group()
    lines = [f"Edit the code as instructed: {instruction}"]
    if path:
        lines.append(f"File: {path}")
    if before.strip():
        lines.append(f"Before it stands:\n{opening}\n{before}\n{close}")
    if after.strip():
        lines.append(f"After it stands:\n{opening}\n{after}\n{close}")
    lines.append(f"The code to edit:\n{opening}\n{selection}\n{close}")
    lines.append("Answer with the whole edited code in one fenced block and nothing else.")
    return "\n\n".join(lines)
