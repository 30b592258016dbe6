"""Diffs, patches and blocks of search and replace, put into files."""

from __future__ import annotations

import re

import pytest
from text_cases import cases_of, data_beside, data_cases

from lsp_server.tasks.apply.edit_text import apply_text, apply_update, parse_update, updates_of
from lsp_server.tasks.apply.file_text import lines_of
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.tasks.apply.replacements import FileUpdate, LineReplacement, apply_replacements

FILE = "a = 1\nb = 2\nc = 3\n\n\ndef total(prices):\n    return sum(prices)\n"
DEEP = "def total(prices):\n    sum = 0\n    for p in prices:\n        sum += p\n    return sum\n"
NEW = FILE.replace("b = 2\n", "b = 7\n").replace("sum(prices)", "sum(prices, 0)")
DATA = data_beside(__file__)
DIFF = DATA["DIFF"]
PATCH = DATA["PATCH"]
BLOCKS = DATA["BLOCKS"]


@pytest.mark.parametrize("text", [DIFF, PATCH, BLOCKS, DIFF.replace("\n", "\r\n")])
def test_differences_are_read_with_the_file_that_they_name(text: str) -> None:
    (update,) = parse_update(text)
    assert update.path == "till.py"
    assert apply_update(FILE, update, "python").text == NEW
    ended = FILE.replace("\n", "\r\n")
    assert apply_update(ended, update, "python").text == NEW.replace("\n", "\r\n")


def test_several_files_are_several_updates() -> None:
    both = DIFF + DIFF.replace("till.py", "shop/till.py")
    assert [one.path for one in parse_update(both)] == ["till.py", "shop/till.py"]
    blocks = BLOCKS + BLOCKS.replace("till.py", "`shop/till.py`:")
    assert [(one.path, len(one.replacements)) for one in parse_update(blocks)] == [
        ("till.py", 2),
        ("shop/till.py", 2),
    ]


def test_what_is_no_difference_is_a_snippet() -> None:
    assert parse_update("b = 7\n") == (FileUpdate("", snippet="b = 7\n"),)


def replaced(file: str, old: str, new: str) -> str:
    lines = LineReplacement(tuple(lines_of(old)), tuple(lines_of(new)))
    return apply_replacements(file, [lines]).text


def test_an_old_text_may_differ_in_white_space_and_slightly_in_a_line() -> None:
    new = "def total(prices):\n    return sum(prices, 0)\n"
    for old in (
        "def total(prices):  \n    return sum(prices)\n",
        "def  total(prices):\n    return  sum(prices)\n",
    ):
        assert replaced(FILE, old, new) == FILE.replace("sum(prices)", "sum(prices, 0)")
    old = "a = 1\nb = 2\nc = 3\n\n\ndef totals(prices):\n    return sum(prices)\n"
    assert replaced(FILE, old, old.replace("b = 2", "b = 7")) == FILE.replace("b = 2", "b = 7")
    dedented = "class A:\n    x = 1\n\n    def f(self):\n        return 1\n"
    assert replaced(dedented, "def f(self):\n    return 1\n", "def f(self):\n    return 2\n") == (
        dedented.replace("return 1", "return 2")
    )


@data_cases()
def test_an_old_text_that_is_elsewhere_or_nowhere_is_refused(old: str, why: str) -> None:
    file = FILE.replace("c = 3", "c = 1")
    with pytest.raises(AmbiguousSnippet, match=why):
        replaced(file, old, "y")


@data_cases()
def test_lines_are_as_deep_as_those_of_the_file(old: str, new: str, made: str) -> None:
    if not made:
        with pytest.raises(AmbiguousSnippet, match="lost its indentation"):
            replaced(DEEP, old, new)
        return
    assert replaced(DEEP, old, new) == f"def total(prices):\n{made}    return sum\n"


def test_a_level_may_be_wider_in_the_old_text_than_in_the_new_one() -> None:
    file = "def f(a, b):\n    :param a: one\n              two\n    :param b: three\n"
    old = ":param a: one\n          two\n:param b: three\n"
    made = replaced(file, old, old.replace(":param b", ":param c:\n    four\n:param b"))
    assert made == file.replace("    :param b", "    :param c:\n        four\n    :param b")


def test_a_replacement_that_is_made_again_changes_nothing() -> None:
    old, new = "a = 1\n", "a = 1\nz = 9\n"
    once = replaced(FILE, old, new)
    assert once == "a = 1\nz = 9\n" + FILE.removeprefix("a = 1\n")
    assert replaced(once, old, new) == once


SEVERAL = DATA["SEVERAL"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_diff_of_several_files_is_read_file_by_file(end: str) -> None:
    plain = re.sub("^(diff|index|old|new) .*\n", "", SEVERAL, flags=re.MULTILINE)
    for text in (SEVERAL, plain):
        first, second = parse_update(text.replace("\n", end))
        hunk = LineReplacement(("a = 1", "b = 1"), ("a = 2", "b = 1"), 1)
        assert first == FileUpdate("src/a.py", (hunk,))
        assert second == FileUpdate("src/b.py", (LineReplacement(("c = 1",), ("c = 2",), 1),))
    assert list(updates_of(SEVERAL, "/repository/src/b.py")) == ["/repository/src/b.py", "src/a.py"]
    for path in ("b/a.py", "c.py", "src"):
        with pytest.raises(AmbiguousSnippet, match="the diff is of"):
            updates_of(SEVERAL, path)


CASES = cases_of("applied_edits.txt")


@pytest.mark.parametrize("name", CASES)
def test_an_edit_is_put_in_or_refused_with_its_cause(name: str) -> None:
    case = CASES[name]
    language = case.get("language")
    if "refused" in case:
        with pytest.raises(AmbiguousSnippet, match=case["refused"]):
            apply_text(case["old"], case["edit"], language, case.get("path", ""))
        return
    merge = apply_text(case["old"], case["edit"], language, case.get("path", ""))
    assert merge.text == case["new"]
    assert merge.how == ("unchanged" if case["new"] == case["old"] else "exact")
    # Line ends of the file stay, whatever those of the edit are.
    ended = apply_text(case["old"].replace("\n", "\r\n"), case["edit"], language).text
    assert ended == case["new"].replace("\n", "\r\n")


LOST_BLANKS = """\
@@ @@
class Till:
    def add(self, price):
        total = price
+        self.total += total
        return total

    def clear(self):
        call(1,
             2)
"""


def test_one_line_of_context_of_an_odd_depth_has_its_blank() -> None:
    file = "a:\n  b\n   c\n d\ne:\n  f\n"
    diff = "@@ -3,2 +3,3 @@\n    c\n+  x\n  d\n@@ -5,2 +6,3 @@\n e:\n+  y\n   f\n"
    assert apply_text(file, diff).text == "a:\n  b\n   c\n  x\n d\ne:\n  y\n  f\n"


def test_context_lines_may_lack_their_blank() -> None:
    file = LOST_BLANKS.removeprefix("@@ @@\n")
    before = "".join(line for line in file.splitlines(True) if not line.startswith("+"))
    after = "".join(line for line in file.splitlines(True) if not line.startswith("-"))
    before, after = (text.replace("\n-", "\n").replace("\n+", "\n") for text in (before, after))
    signed = "\n".join(
        line if line[:1] in ("@", "+", "-") else f" {line}" for line in LOST_BLANKS.splitlines()
    )
    for diff in (LOST_BLANKS, f"{signed}\n"):
        assert apply_text(before, diff, "python").text == after
