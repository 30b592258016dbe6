"""The windows that a model is asked for in the middle of commits."""

from __future__ import annotations

from lsp_server.editor.next_edits.prompts import (
    block_borders,
    expected_answer,
    expected_rewrites,
    prefill,
)
from lsp_server.editor.next_edits.windows import Window, shown_line, window_at
from lsp_server.tasks.next_edits.formats import NextEditFormat
from tests.benchmarks.next_edits.commits import CommitStep


def window_of(step: CommitStep, fmt: NextEditFormat, most_tokens: int = 0) -> Window | None:
    """The window that the model is asked for in a step; ``most_tokens`` as in ``window_at``."""
    recent = step.edits[:32]
    return window_at(
        *(
            step.document,
            step.cursor,
            fmt,
            step.path,
            recent,
            {step.document.uri: step.path},
        ),
        is_typing=step.edits[0].is_at(step.cursor),
        most_tokens=most_tokens,
    )


def wanted_window(step: CommitStep, window: Window) -> str | None:
    """What the window becomes by the commit; None where the next change reaches out of it."""
    now = [shown_line(line) for line in step.document.lines]
    then = [shown_line(line) for line in step.wanted.splitlines(keepends=True)]
    if now and not now[-1]:
        now.pop()
    behind = len(now) - window.first - len(window.lines)
    inside = then[window.first : len(then) - behind]
    outside = then[: window.first] == now[: window.first] and (
        then[len(then) - behind :] == now[len(now) - behind :]
    )
    return "".join(f"{line}\n" for line in inside) if outside else None


def reference_answer(fmt: NextEditFormat, window: Window, wanted: str) -> str | None:
    """What a perfect model answers; None where it cannot: what is written ahead is no part of it.

    With markers that is the blocks that change alone, with every marker between them.
    """
    if fmt.answer == "markers":
        return _changed_blocks(fmt, window, wanted.splitlines(keepends=True))
    ahead = prefill(window, fmt)
    if not wanted.startswith(ahead):
        return None
    expected = expected_answer(window, fmt)
    # Where something is written ahead, the answer has no tags.
    return wanted.removeprefix(ahead) if ahead else expected.replace(window.text, wanted)


def _changed_blocks(fmt: NextEditFormat, window: Window, new: list[str]) -> str:
    old = [f"{line}\n" for line in window.lines]
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    borders = [*block_borders(window.lines), len(old)]
    if old == new:
        return expected_rewrites(window, fmt)[-1][1] * 2
    last = next(n for n, at in enumerate(borders) if at >= max(len(old) - tail, 1))
    first = (
        max(n for n, at in enumerate(borders[:-1]) if at <= head) if head < len(old) else last - 1
    )
    text = fmt.marker.format(number=first + 1)
    for number in range(first, last):
        start, end = (
            at if at <= head else max(at + len(new) - len(old), head)
            for at in borders[number : number + 2]
        )
        text += "".join(new[start:end]) + fmt.marker.format(number=number + 2)
    return text
