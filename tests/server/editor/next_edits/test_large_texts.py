"""Large texts: another process looks at them, what is too much is not looked at and told, and a key
ends it."""

from __future__ import annotations

import asyncio

import pytest
from typist import Typist

from lsp_server.editor.next_edits.finding import LARGEST_TEXT
from lsp_server.editor.next_edits.provider import NextEditProvider
from lsp_server.editor.next_edits.words import MOST_PLACES
from lsp_server.shared.processes.function_process import FunctionProcess
from lsp_server.shared.settings import NextEditSettings

USES = "def f():\n    count = 1\n    return count\ncount = 1\n" + "print(count, 1)\n" * 400
METHODS = "class A:\n    def __init__(self):\n        self.n = 1\n" + "".join(
    f"    def f{number}(self):\n        return self.n + {number}\n" for number in range(150)
)
CALLS = "def f(a, b):\n    return a\n" + "f(1, 2)  # what it gives\n" * 300


def reason(typist: Typist) -> str:
    return str(typist.provider.condition(NextEditSettings())["reason"])


@pytest.mark.parametrize(
    ("text", "line", "old", "new", "count"),
    [
        (USES, 3, "count", "total", 400),
        (METHODS, 2, "n", "m", 150),
        (CALLS, 0, "a", "c", 1),
        ("x = f(1, 2)\n" * 500, 0, "f", "g", 0),
    ],
)
def test_another_process_finds_the_same(
    text: str, line: int, old: str, new: str, count: int
) -> None:
    here = Typist()
    document = here.open(text)
    cursor = here.retype(document, line, old, new)
    wanted = [(one.region.start, one.new_text) for one in here.next_edits(document, cursor)]
    assert len(wanted) == count

    there = Typist()
    document = there.open(text)
    cursor = there.retype(document, line, old, new)

    async def asked() -> list[object]:
        process = FunctionProcess()
        there.provider._functions = process
        try:
            found = await there.provider.next_edits(document, cursor)
            assert found is not None
            assert process.pid is not None
            return [(one.region.start, one.new_text) for one in found]
        finally:
            await process.close()

    assert asyncio.run(asked()) == wanted


def test_a_parameter_goes_from_many_calls() -> None:
    typist = Typist()
    document = typist.open(CALLS)
    typist.now_s += 5
    typist.change(document, (0, 7), (0, 10), "")
    typist.now_s += 1
    assert len(typist.next_edits(document, document.end())) == 300


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("count = 1\n" + "print(count)\n" * (MOST_PLACES + 1), "count", "total"),
        ("count = 1\n" + "print(total)\n" * (MOST_PLACES + 1), "count", "total"),
        ("count = 1\n" + "# count\n" * (MOST_PLACES + 1), "count", "total"),
    ],
)
def test_too_many_places_are_not_looked_at_and_that_is_told(text: str, old: str, new: str) -> None:
    typist = Typist()
    document = typist.open(text)
    cursor = typist.retype(document, 0, old, new)
    assert typist.next_edits(document, cursor) == []
    assert reason(typist).endswith("times; next edits look at up to 1,000 places")


def test_a_word_within_others_is_not_counted() -> None:
    typist = Typist()
    document = typist.open("a = 1\nprint(a)\n" + "banana = 1\n" * MOST_PLACES)
    cursor = typist.retype(document, 0, "a", "b")
    assert len(typist.next_edits(document, cursor)) == 1
    assert reason(typist) == ""


@pytest.mark.parametrize("language", ["python", "typescript", "markdown", "unknown"])
def test_a_text_that_is_too_large_is_not_looked_at_and_that_is_told(language: str) -> None:
    typist = Typist()
    document = typist.open("count = 1\n" + "print(count + 1)\n" * (LARGEST_TEXT // 16), language)
    cursor = typist.retype(document, 0, "count", "total")
    assert typist.next_edits(document, cursor) == []
    assert "next edits look at up to 400,000" in reason(typist)
    # The next edit elsewhere is looked at again.
    other = typist.open("a = 1\nprint(a)\n", uri="file:///project/other.py")
    cursor = typist.retype(other, 0, "a", "b")
    assert len([one for one in typist.next_edits(other, cursor) if one.document is other]) == 1
    assert reason(typist) == ""


def test_a_key_ends_what_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    typist = Typist()
    document = typist.open(USES)
    cursor = typist.retype(document, 3, "count", "total")
    started = asyncio.Event()

    async def endless(*arguments: object) -> None:
        started.set()
        await asyncio.Event().wait()

    async def typed() -> None:
        monkeypatch.setattr(NextEditProvider, "_compute", endless)
        request = asyncio.create_task(typist.provider.next_edits(document, cursor))
        await started.wait()
        typist.change(document, (0, 0), (0, 0), "#")
        assert await request == []
        assert typist.provider._settling is not None
        assert typist.provider._settling.cancelled()

    asyncio.run(typed())
