"""Next edits while the user goes on: they move, end, stay away and reach other files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from text_cases import data_cases
from typist import Typist

from lsp_server.text.documents.document import Position

TEXT = "def f(count):\n    a = count\n    b = count\n    return a + b + count\n"


def test_they_come_from_the_cursor_on_and_then_from_the_top() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.retype(document, 0, "count", "total")
    found = typist.next_edits(document, Position(2, 0))
    assert [one.region.start.line for one in found] == [2, 3, 1]
    assert {one.title for one in found} == {"rename count to total"}


def test_a_taken_one_leaves_the_others_at_their_places() -> None:
    typist = Typist()
    document = typist.open("def f(n): return n + n\n")
    cursor = typist.retype(document, 0, "n", "number")
    first, second = typist.next_edits(document, cursor)
    typist.take(document, second)
    (left,) = typist.next_edits(document, cursor)
    assert left.number == first.number
    typist.take(document, left)
    assert document.text == "def f(number): return number + number\n"
    assert typist.provider.accepted == 2


def test_they_move_with_what_is_typed_elsewhere() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    cursor = typist.retype(document, 0, "count", "total")
    typist.next_edits(document, cursor)
    typist.now_s += 5
    typist.change(document, (0, 0), (0, 0), "import os\n\n")
    typist.now_s += 1
    found = typist.next_edits(document, cursor)
    assert [one.region.start.line for one in found] == [3, 4, 5]


def test_one_ends_when_its_text_is_changed() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    cursor = typist.retype(document, 0, "count", "total")
    typist.next_edits(document, cursor)
    typist.now_s += 5
    typist.change(document, (1, 8), (1, 13), "0")
    assert [one.region.start.line for one in typist.next_edits(document, cursor)] == [2, 3]


def test_one_that_is_typed_stays_until_another_text_is_typed() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    cursor = typist.retype(document, 0, "count", "total")
    first, *_ = typist.next_edits(document, Position(1, 8))
    typist.now_s += 5
    typist.change(document, (1, 8), (1, 13), "t")
    typist.change(document, (1, 9), (1, 9), "o")
    typist.now_s += 1
    left, *others = typist.next_edits(document, Position(1, 8))
    assert (left.number, left.old_text, left.new_text) == (first.number, "", "tal")
    assert [one.region.start.line for one in others] == [2, 3]
    typist.change(document, (1, 10), (1, 10), "p")
    typist.now_s += 1
    found = typist.next_edits(document, cursor)
    assert [one.region.start.line for one in found] == [2, 3]


@pytest.mark.parametrize(("column", "text"), [(13, "er"), (8, "my_"), (13, "2")])
def test_one_ends_when_its_name_becomes_a_longer_one(column: int, text: str) -> None:
    typist = Typist()
    document = typist.open(TEXT)
    cursor = typist.retype(document, 0, "count", "total")
    typist.next_edits(document, cursor)
    typist.now_s += 5
    typist.change(document, (1, column), (1, column), text)
    assert [one.region.start.line for one in typist.next_edits(document, cursor)] == [2, 3]


def test_one_that_is_typed_to_its_end_is_taken() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    typist.retype(document, 0, "count", "total")
    typist.next_edits(document, Position(1, 8))
    typist.change(document, (1, 8), (1, 13), "")
    for column, character in enumerate("total", 8):
        typist.change(document, (1, column), (1, column), character)
    typist.now_s += 1
    found = typist.next_edits(document, Position(1, 13))
    assert [one.region.start.line for one in found] == [2, 3]
    assert document.lines[1] == "    a = total\n"


def test_all_end_when_the_edit_is_undone() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    cursor = typist.retype(document, 0, "count", "total")
    assert typist.next_edits(document, cursor)
    typist.now_s += 5
    typist.change(document, (0, 6), (0, 11), "count")
    assert typist.next_edits(document, cursor) == []


def test_a_dismissed_one_stays_away() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    cursor = typist.retype(document, 0, "count", "total")
    found = typist.next_edits(document, cursor)
    for one in found:
        typist.provider.reject(one.number)
    assert typist.next_edits(document, cursor) == []
    assert typist.provider.rejected == 3


def test_a_name_that_goes_on_is_waited_for() -> None:
    """A request that comes in the midst of a word waits, and a newer one takes its place."""

    async def type_on() -> tuple[object, list[str | None]]:
        typist = Typist()
        document = typist.open(TEXT)
        typist.retype(document, 0, "count", "to")
        typist.now_s -= 1.0
        first = asyncio.ensure_future(typist.provider.next_edits(document, Position(0, 8)))
        await asyncio.sleep(0)
        typist.change(document, (0, 8), (0, 8), "tal")
        typist.now_s += 1.0
        second = await typist.provider.next_edits(document, Position(0, 11))
        assert second is not None
        return await first, [one.new_text for one in second]

    first, texts = asyncio.run(type_on())
    assert first is None
    assert texts == ["total"] * 3


def test_other_files_that_import_the_name_follow(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    module = tmp_path / "pkg" / "prices.py"
    module.write_text("def total(prices):\n    return sum(prices)\n\nprint(total([]))\n")
    user = tmp_path / "user.py"
    user.write_text("from pkg.prices import total\nfrom pkg import prices\n"
                    "def f(total):\n    return total\n"
                    "print(total([1]), prices.total([2]))\n")  # fmt: skip
    other = tmp_path / "other.py"
    other.write_text("from elsewhere import total\nprint(total(1))\n")
    secret = tmp_path / ".env"
    secret.write_text("total=1\n")
    typist = Typist(str(tmp_path))
    document = typist.open(module.read_text(), uri=module.as_uri())
    cursor = typist.retype(document, 0, "total", "amount")
    found = typist.next_edits(document, cursor)
    assert [one.uri for one in found[:1]] == [module.as_uri()]
    assert {one.uri for one in found[1:]} == {user.as_uri()}
    places = [(one.region.start.line, one.region.start.column) for one in found[1:]]
    assert places == [(0, 23), (4, 6), (4, 25)]
    # The file is opened to go there: its next edits are those of the document.
    opened = typist.open(user.read_text(), uri=user.as_uri())
    assert typist.take_all(opened, Position(0, 0)) == (
        "from pkg.prices import amount\nfrom pkg import prices\n"
        "def f(total):\n    return total\n"
        "print(amount([1]), prices.amount([2]))\n"
    )


def test_calls_in_other_files_follow_a_parameter(tmp_path: Path) -> None:
    module = tmp_path / "prices.py"
    module.write_text("def total(prices, tax):\n    return sum(prices)\n")
    user = tmp_path / "user.py"
    user.write_text("from prices import total\nprint(total([1], 2))\n")
    typist = Typist(str(tmp_path))
    document = typist.open(module.read_text(), uri=module.as_uri())
    typist.now_s += 5
    typist.change(document, (0, 16), (0, 21), "")
    typist.now_s += 1
    (found,) = typist.next_edits(document, Position(0, 16))
    assert (found.uri, found.old_text, found.new_text) == (user.as_uri(), ", 2", "")


def test_nothing_is_read_of_files_that_may_not_be(tmp_path: Path) -> None:
    typist = Typist(str(tmp_path), readable=False)
    document = typist.open(TEXT, uri=(tmp_path / "a.py").as_uri())
    cursor = typist.retype(document, 0, "count", "total")
    assert typist.next_edits(document, cursor) == []


def test_places_in_other_files_come_in_their_order_whatever_the_cursor(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from cart import total\n\n\nprint(total([]))\n")
    typist = Typist(str(tmp_path))
    document = typist.open(
        "\n\ndef total(items):\n    return sum(items)\n", uri=(tmp_path / "cart.py").as_uri()
    )
    cursor = typist.retype(document, 2, "total", "cost")
    found = typist.next_edits(document, cursor)
    assert [one.region.start.line for one in found] == [0, 3]


def test_a_cancelled_request_loses_nothing_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from cart import total\n")
    typist = Typist(str(tmp_path))
    document = typist.open(
        "def total(items):\n    return sum(items)\n", uri=(tmp_path / "cart.py").as_uri()
    )
    cursor = typist.retype(document, 0, "total", "cost")

    async def cancelled_and_asked_again() -> int:
        first = asyncio.create_task(typist.provider.next_edits(document, cursor))
        await asyncio.sleep(0)
        first.cancel()
        return len(await typist.provider.next_edits(document, cursor) or [])

    assert asyncio.run(cancelled_and_asked_again()) == 1


@data_cases()
def test_one_is_taken_however_the_editor_says_it(
    text: str, old: str, new: str, span: tuple[int, int], written: str
) -> None:
    typist = Typist()
    document = typist.open(text)
    cursor = typist.retype(document, 0, old, new)
    (only,) = typist.next_edits(document, cursor)
    last = typist.history.last
    typist.now_s += 5
    typist.change(document, (1, span[0]), (1, span[1]), written)
    assert document.lines[1] == f"    return {new}\n"
    assert typist.next_edits(document, cursor) == []
    assert only.source is typist.history.last is last


def test_two_that_are_taken_by_one_change_of_both_lines_are_taken() -> None:
    typist = Typist()
    document = typist.open(TEXT)
    cursor = typist.retype(document, 0, "count", "total")
    assert len(typist.next_edits(document, cursor)) == 3
    # What both texts begin and end with is left out, as editors do.
    typist.change(document, (1, 8), (2, 13), "total\n    b = total")
    (left,) = typist.next_edits(document, cursor)
    assert left.region.start.line == 3
