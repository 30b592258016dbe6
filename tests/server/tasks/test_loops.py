"""Answers that repeat themselves are stopped and told apart from answers that were cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lsp_server.editor.editing.checks import checked_text
from lsp_server.shared.contract.jobs import JobResult, Span
from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing.loop_watch import LoopWatch, is_loop
from lsp_server.tasks.steps import finished

LINE = "    total = total + price\n"


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n" + LINE * 100,
        "x = [" + "0, " * 900,
        "".join(f"    value_{n} = {n}\n" for n in range(40)) + (LINE + "    pass\n") * 80,
        "\n" * 2000,
        "日本" * 900,
    ],
)
def test_a_loop_is_noticed_where_the_code_has_none(text: str) -> None:
    assert is_loop(text, "def f():\n    return 1\n")
    assert not is_loop(text, "# before\n" + text)


@pytest.mark.parametrize(
    "text",
    [
        LINE * 20,
        "".join(f"    value_{n} = {n}\n" for n in range(400)),
        "".join(f"case {n % 7}: return {n};\n" for n in range(400)),
        "x" * 1000,
        (LINE * 100) + "return total\n",
    ],
)
def test_code_that_looks_alike_is_no_loop(text: str) -> None:
    assert not is_loop(text, "")


def test_a_looping_answer_is_stopped_and_refused() -> None:
    watch = LoopWatch("total = 0\n", lambda: False)

    def steps() -> Iterator[list[Span]]:
        written = 0
        while not watch.cancelled() and written < 1000:
            written += 1
            yield [Span(LINE, "model")]
        text = LINE * written
        return JobResult(text, [], written, written, 0.0, 0.0, {}, "cancelled")

    result = finished(watch.over(steps()), None)  # type: ignore[arg-type]
    assert result.stopped_by == "loop"
    assert result.tokens < 100
    with pytest.raises(EditRefused, match="repeated itself"):
        checked_text("total = 0\n", result)


def test_what_a_user_stops_is_no_loop() -> None:
    watch = LoopWatch("", lambda: True)
    assert watch.cancelled()

    def steps() -> Iterator[list[Span]]:
        yield [Span("a", "model")]
        return JobResult("a", [], 1, 1, 0.0, 0.0, {}, "cancelled")

    assert finished(watch.over(steps()), None).stopped_by == "cancelled"  # type: ignore[arg-type]
