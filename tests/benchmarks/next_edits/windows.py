"""The windows that a model is asked for in the middle of commits."""

from __future__ import annotations

from lsp_server.engine.next_edits.formats import NextEditFormat
from lsp_server.next_edits.windows import Window, shown_line, window_at
from tests.benchmarks.next_edits.commits import CommitStep


def window_of(step: CommitStep, fmt: NextEditFormat) -> Window | None:
    """The window that the model is asked for in a step."""
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
        is_typing=False,
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
