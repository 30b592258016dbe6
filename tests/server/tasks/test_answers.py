"""Answers of chat models as people read them: thinking, fences, several blocks, none, diffs."""

from __future__ import annotations

import pytest
from answer_texts import edited, fenced
from text_cases import cases_of, data_cases

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing.answer_blocks import fenced_blocks
from lsp_server.tasks.editing.answers import code_of_answer, code_so_far

OLD = (
    "def total(prices):\n    result = 0\n    for price in prices:\n        result += price\n"
    "    return result\n"
)
NEW = OLD.replace("result", "whole")
ASKED = "use whole in place of result everywhere"


READ = cases_of("answers/read.txt")


@pytest.mark.parametrize("answer", [case["answer"] for case in READ.values()], ids=READ)
def test_the_code_of_an_answer(answer: str) -> None:
    for text in (answer, answer.removesuffix("\n"), answer.replace("\n", "\r\n")):
        assert edited(OLD, text, ASKED) == NEW


@data_cases()
def test_an_answer_that_is_not_clear_is_refused(answer: str) -> None:
    with pytest.raises(EditRefused):
        edited(OLD, answer, ASKED)


@data_cases()
def test_a_diff_is_applied(old: str, diff: str, new: str) -> None:
    assert edited(old, fenced(diff, "diff"), language="text") == new


def test_a_diff_may_show_what_surrounds_the_selection_and_not_change_it() -> None:
    around = {"before": "def f():\n", "after": "    return b\n"}
    shown = "--- a\n+++ b\n@@ -1,3 +1,3 @@\n def f():\n-    b = 1\n+    b = 2\n     return b\n"
    assert edited("    b = 1\n", fenced(shown, "diff"), **around) == "    b = 2\n"
    for outside in (
        "@@ -1,2 +1,2 @@\n-def f():\n+def g():\n-    b = 1\n+    b = 2\n",
        "@@ -2,2 +2,2 @@\n     b = 1\n-    return b\n+    return 2\n",
    ):
        with pytest.raises(EditRefused, match="does not fit"):
            edited("    b = 1\n", fenced(outside, "diff"), **around)


@data_cases("diff")
def test_a_diff_that_fits_nowhere_or_twice_is_refused(diff: str) -> None:
    with pytest.raises(EditRefused, match="does not fit"):
        edited("a\nb\na\nb\n", fenced(diff, "diff"), language="text")


@data_cases()
def test_what_looks_like_a_mark_and_is_text(old: str, answer: str, new: str, language: str) -> None:
    assert edited(old, answer, language=language) == new


TABS = "def f(a):\n\tif a:\n\t\tx = 1\n\t\ty = 2\n\treturn x\n"
UNITS = {"tabs": "\t", "four": "    ", "two": "  "}


@pytest.mark.parametrize("answered", UNITS)
@pytest.mark.parametrize("document", UNITS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_indentation_and_line_ends_are_the_documents(
    document: str, answered: str, end: str
) -> None:
    unit, other = UNITS[document], UNITS[answered]
    old = TABS.replace("\t", unit)

    def written(text: str) -> str:
        return text.replace("\t", unit).replace("\n", end)

    changed = TABS.replace("y = 2", "z = 3").replace("return x", "return x + z")
    longer = TABS.replace("return x", "for q in a:\n\t\tprint(q)\n\treturn x")
    for text in (changed, longer):
        answer = fenced(text.replace("\t", other))
        assert edited(old.replace("\n", end), answer) == written(text)


def test_documents_with_tabs_and_spaces_keep_both() -> None:
    old = "def f(a):\n\tif a:\n\t\tx = 1\n\treturn x\n\ndef g(a):\n    if a:\n        y = 2\n"
    "    return y\n"
    new = old.replace("y = 2", "y = 5").replace("x = 1", "x = 4")
    for answer in (new.replace("\t", "    "), new.replace("    ", "\t"), new):
        assert edited(old, fenced(answer)) == new
    aligned = "int f(int a)\n{\n\tint x = 1;\n\treturn g(x,\n\t         a);\n}\n"
    answer = aligned.replace("\t", "    ").replace("x = 1", "x = 2")
    assert edited(aligned, fenced(answer, "c"), language="c") == aligned.replace("x = 1", "x = 2")


@data_cases()
def test_pieces_of_documents_stay_as_deep_as_they_are(old: str, answer: str, new: str) -> None:
    assert edited(old, fenced(answer)) == new


def test_an_instruction_may_ask_for_another_indentation() -> None:
    spaces = TABS.replace("\t", "    ")
    assert edited(TABS, fenced(spaces), "indent by four spaces") == spaces
    assert edited(spaces, fenced(TABS), "use tabs") == TABS


def test_an_answer_that_goes_on_from_a_fence_is_read_in_the_same_way() -> None:
    def read(answer: str, old: str = OLD) -> str:
        return code_of_answer(
            answer, old, opening="```python", language="python", instruction=ASKED
        )

    assert read(NEW) == read(f"{NEW}```\n") == NEW
    assert read(f"```python\n{NEW}```\n") == NEW
    assert read(f"{NEW.rstrip()}```") == NEW
    assert read(f"<think>\nhm\n```python\nx\n```\n</think>\n{fenced(NEW)}") == NEW
    assert read(
        "@@ -1,2 +1,2 @@\n-def total(prices):\n+def sum(prices):\n     result = 0\n```"
    ) == (OLD.replace("total", "sum"))
    with pytest.raises(EditRefused, match="left out"):
        read("def total(prices):\n    whole = 0\n    # ... rest of the code unchanged\n```\n")


def test_only_the_first_block_outside_of_thinking_is_shown_while_it_is_written() -> None:
    answer = f"<think>\n{fenced(OLD)}\n</think>\nSo:\n{fenced(NEW)}\n"
    shown = [code_so_far(answer[:end], OLD) for end in range(len(answer) + 1)]
    assert all(NEW.startswith(text) for text in shown)
    assert shown[-1] == NEW
    assert "def total(prices):\n" in shown


@pytest.mark.parametrize(("deeper", "closes"), [(3, True), (4, False)])
def test_a_closing_fence_stands_three_columns_deeper_at_most(deeper: int, closes: bool) -> None:
    answer = f"```python\nx = 1\n{' ' * deeper}```\ny = 2\n```\n"
    block = fenced_blocks(answer)[0]
    assert block.text == ("x = 1\n" if closes else f"x = 1\n{' ' * deeper}```\ny = 2\n")


@pytest.mark.parametrize(("fence", "closes"), [("````", True), ("```", False)])
def test_a_fence_is_closed_by_one_as_long(fence: str, closes: bool) -> None:
    answer = f"````python\nx = 1\n{fence}\ny = 2\n````\n"
    block = fenced_blocks(answer)[0]
    assert block.text == ("x = 1\n" if closes else f"x = 1\n{fence}\ny = 2\n")
