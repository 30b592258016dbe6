"""What was changed twice in one role: the third place."""

from __future__ import annotations

from typing import Any

from text_cases import data_cases
from typist import Typist

from lsp_server.text.documents.document import Document


def changed_twice(
    text: str, lines: tuple[int, int], old: str, new: str, **opened: Any
) -> tuple[Typist, Document]:
    typist = Typist()
    document = typist.open(text, **opened)
    for line in lines:
        column = document.lines[line].index(old)
        typist.now_s += 5
        typist.change(document, (line, column), (line, column + len(old)), new)
    typist.now_s += 1
    return typist, document


def test_a_literal_follows_in_the_same_argument_of_the_same_function() -> None:
    text = 'connect("a", timeout=30)\nconnect("b", timeout=30)\nretry(30)\nwait(timeout=30)\n'
    text += 'limit = 30\nconnect("c", timeout=30)\n'
    typist, document = changed_twice(text, (0, 1), "30", "60")
    made = typist.take_all(document, document.end())
    assert made == text.replace('"a", timeout=30', '"a", timeout=60').replace(
        '"b", timeout=30', '"b", timeout=60'
    ).replace('"c", timeout=30', '"c", timeout=60')


def test_a_literal_that_was_changed_once_says_nothing() -> None:
    typist = Typist()
    document = typist.open("connect(timeout=30)\nconnect(timeout=30)\n")
    cursor = typist.retype(document, 0, "30", "60")
    assert typist.next_edits(document, cursor) == []


def test_two_different_changes_say_nothing() -> None:
    typist = Typist()
    document = typist.open("connect(timeout=30)\n" * 3)
    typist.retype(document, 0, "30", "60")
    cursor = typist.retype(document, 1, "30", "90")
    assert typist.next_edits(document, cursor) == []


@data_cases("third")
def test_equal_literals_in_other_roles_stay(third: str) -> None:
    text = "connect(timeout=30)\nconnect(timeout=30)\n" + third
    typist, document = changed_twice(text, (0, 1), "30", "60")
    assert typist.next_edits(document, document.end()) == []


def test_the_function_of_calls_follows() -> None:
    text = "print(a)\nprint(b + 1)\nx = print\nprint(c)\n"
    typist, document = changed_twice(text, (0, 1), "print", "log.info")
    assert typist.take_all(document, document.end()) == (
        "log.info(a)\nlog.info(b + 1)\nx = print\nlog.info(c)\n"
    )


def test_an_import_follows() -> None:
    text = "from typing import List\ndef f():\n    from typing import List\n"
    text += "def g():\n    from typing import List\n"
    typist, document = changed_twice(text, (0, 2), "typing", "collections")
    assert typist.take_all(document, document.end()) == text.replace("typing", "collections")


def test_strings_of_other_languages_follow() -> None:
    text = 'load("http://a", 1);\nload("http://a", 2);\nsave("http://a");\nload("http://a", 3);\n'
    typist, document = changed_twice(
        text, (0, 1), "//a", "//b", language="javascript", uri="file:///project/a.js"
    )
    assert typist.take_all(document, document.end()) == text.replace(
        'load("http://a', 'load("http://b'
    )
