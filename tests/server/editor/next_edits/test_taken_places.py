"""What was taken of a rename follows when the name is typed on."""

from __future__ import annotations

from pathlib import Path

from text_cases import data_cases
from typist import Typist

from lsp_server.text.documents.document import Document, Position

TEXT = "def f(count):\n    a = count\n    b = count + count\n    return a + b + count\n"


def renamed(text: str = TEXT, old: str = "count", new: str = "total") -> tuple[Typist, Document]:
    typist = Typist()
    document = typist.open(text)
    cursor = typist.retype(document, 0, old, new)
    typist.take_all(document, cursor)
    return typist, document


def type_on(typist: Typist, document: Document, column: int, text: str) -> Position:
    """Behind a pause, in the same word."""
    typist.now_s += 5
    for number, character in enumerate(text):
        place = 0, column + number
        typist.change(document, place, place, character)
        typist.now_s += 0.1
    typist.now_s += 1
    return Position(0, column + len(text))


def test_all_that_was_taken_follows_and_once_more() -> None:
    typist, document = renamed()
    assert document.text == TEXT.replace("count", "total")
    cursor = type_on(typist, document, 11, "s")
    assert typist.take_all(document, cursor) == TEXT.replace("count", "totals")
    cursor = type_on(typist, document, 12, "_all")
    assert typist.take_all(document, cursor) == TEXT.replace("count", "totals_all")


@data_cases()
def test_it_ends_as_if_the_whole_name_had_been_typed_at_once(
    text: str, old: str, new: str, typed: str
) -> None:
    language = "javascript" if text.startswith("const") else "python"
    ways = []
    for first, rest in ((new, typed), (new + typed, "")):
        typist = Typist()
        document = typist.open(text, language)
        cursor = typist.retype(document, 0, old, first)
        typist.take_all(document, cursor)
        if rest:
            cursor = type_on(typist, document, cursor.column, rest)
        ways.append(typist.take_all(document, cursor))
    assert ways[0] == ways[1]
    assert new + typed in ways[0].replace(new + typed, "", 1)


def test_a_place_that_was_changed_since_then_does_not_follow() -> None:
    typist, document = renamed()
    typist.now_s += 5
    typist.change(document, (1, 8), (1, 13), "0")
    typist.now_s += 5
    cursor = type_on(typist, document, 11, "s")
    assert [one.region.start.line for one in typist.next_edits(document, cursor)] != []
    assert "a = 0" in typist.take_all(document, cursor)


def test_what_was_taken_in_another_file_follows(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("from cart import total\n\n\nprint(total([]))\n")
    typist = Typist(str(tmp_path))
    document = typist.open("def total(items):\n    return 1\n", uri=(tmp_path / "cart.py").as_uri())
    cursor = typist.retype(document, 0, "total", "cost")
    assert typist.next_edits(document, cursor)
    shop = typist.open((tmp_path / "shop.py").read_text(), uri=(tmp_path / "shop.py").as_uri())
    assert "print(cost([]))" in typist.take_all(shop, Position(0, 0))
    type_on(typist, document, cursor.column, "s")
    assert typist.take_all(shop, Position(0, 0)) == "from cart import costs\n\n\nprint(costs([]))\n"


def test_undoing_the_rename_leaves_nothing_to_follow() -> None:
    typist, document = renamed()
    typist.now_s += 5
    typist.change(document, (0, 6), (0, 11), "count")
    typist.now_s += 1
    assert all(one.new_text != "totals" for one in typist.next_edits(document, Position(0, 11)))
