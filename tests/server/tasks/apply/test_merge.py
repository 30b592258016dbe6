"""Snippets of agents, put into files: exactly, or refused."""

from __future__ import annotations

import difflib

import pytest
from text_cases import data_beside, data_cases

from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet

DATA = data_beside(__file__)
FILE = DATA["FILE"]
SNIPPET = DATA["SNIPPET"]
MERGED = FILE.replace("return 0\n", "return None\n")


def test_a_hunk_between_place_holders_replaces_what_it_stands_for() -> None:
    assert apply_snippet(FILE, SNIPPET, "python").text == MERGED


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False], ids=["ended", "not ended"])
def test_line_ends_a_mark_and_the_end_of_the_file_stay(end: str, mark: str, last: bool) -> None:
    def written(text: str) -> str:
        return mark + (text if last else text.removesuffix("\n")).replace("\n", end)

    assert apply_snippet(written(FILE), SNIPPET, "python").text == written(MERGED)


def test_a_snippet_that_is_indented_too_little_is_put_in_as_the_file_is() -> None:
    snippet = "def mean(self, prices):\n    if not prices:\n        return None\n"
    snippet += "    return self.total(prices) / len(prices)\n"
    assert apply_snippet(FILE, snippet, "python").text == MERGED


def test_a_snippet_in_tabs_is_put_into_a_file_in_spaces_as_that_is() -> None:
    mixed = SNIPPET.replace("    ", "\t").replace("\t\treturn self", "\t    return self")
    for snippet in (SNIPPET.replace("    ", "\t"), mixed):
        assert apply_snippet(FILE, snippet, "python").text == MERGED
    tabs = FILE.replace("    ", "\t")
    assert apply_snippet(tabs, SNIPPET, "python").text == MERGED.replace("    ", "\t")


def test_what_fits_two_places_is_refused_with_both() -> None:
    file = "a = 1\nx = 1\nb = 1\n\na = 1\nx = 1\nb = 1\n"
    with pytest.raises(AmbiguousSnippet, match=r"lines 1 to 3.*lines 5 to 7") as refusal:
        apply_snippet(file, "a = 1\nx = 2\nb = 1\n")
    assert [(one.first_line, one.last_line) for one in refusal.value.readings] == [(1, 3), (5, 7)]
    assert refusal.value.readings[0].text == "a = 1\nx = 2\nb = 1\n"


def test_lines_that_go_and_are_shown_by_nothing_are_not_guessed() -> None:
    # Below the last hunk nothing is said to be left out: the file may end with it.
    file = "a = 1\n\n\ndef f():\n    return 1\n\n\nf.x = 2\ndel f.y\n"
    for snippet in (f"# ...\n{above}def f():\n    x = 1\n    return 1\n" for above in ("", "\n\n")):
        with pytest.raises(AmbiguousSnippet):
            apply_snippet(file, snippet, "python")
        whole = apply_snippet(file, f"{snippet}# ...\n", "python").text
        assert whole == file.replace("return 1", "x = 1\n    return 1")


def test_a_reading_that_loses_many_lines_has_to_be_far_ahead() -> None:
    call = "    name = ask(\n        {},\n        choices=[1, 2],\n        stream=INPUT,\n    )\n"
    file = "".join(
        f"def test_{name}():\n{call.format(name)}    assert name == {name}\n\n\n" for name in "abc"
    )
    snippet = (
        "# ...\n        choices=[1, 2],\n        case=True,\n        stream=INPUT,\n    )\n# ...\n"
    )
    with pytest.raises(AmbiguousSnippet, match="several places"):
        apply_snippet(file, snippet, "python")


@data_cases()
def test_a_snippet_of_a_language_with_brackets(
    language: str, file: str, snippet: str, merged: str
) -> None:
    assert apply_snippet(file, snippet, language).text == merged


OPTIONS = DATA["OPTIONS"]


def test_a_block_beside_one_like_it_and_the_header_of_a_block_are_not_deleted_unseen() -> None:
    holder = "# ... existing code ...\n"
    beside = ')\n@app.option(\n    "--three",\n    flag=True,\n)\ndef run(one, two, three):\n'
    with pytest.raises(AmbiguousSnippet, match="go, and the snippet does not show them"):
        apply_snippet(OPTIONS, f"{holder}{beside}    {holder}", "python")
    beheaded = "def run(one, two):\n    return one or two\n        each.close()\n"
    with pytest.raises(AmbiguousSnippet):
        apply_snippet(OPTIONS, f"{holder}{beheaded}{holder}", "python")


def test_a_definition_that_is_shown_whole_may_lose_many_lines() -> None:
    holder = "# ... existing code ...\n"
    stop = "def stop():\n    close_all(running())\n    return None\n"
    text = apply_snippet(OPTIONS, f"{holder}{stop}", "python").text
    assert text == OPTIONS[: OPTIONS.index("def stop")] + stop


def test_a_snippet_of_several_hunks_that_is_sent_twice_says_that_nothing_changed() -> None:
    holder = "# ... existing code ...\n"
    snippet = f'def run(one, two):\n    return two or one\n{holder}        each.log("gone")\n'
    snippet = f"{holder}{snippet}    return 0\n"
    once = apply_snippet(OPTIONS, snippet, "python")
    again = apply_snippet(once.text, snippet, "python")
    assert (once.how, again.how, again.text) == ("exact", "unchanged", once.text)


def test_lines_with_signs_go_and_come_and_those_beside_them_stay() -> None:
    holder = "# ... existing code ...\n"
    signs = "-        each.close()\n-        each.wait()\n+        each.close(wait=True)\n"
    snippet = f"{holder} def stop():\n     for each in running():\n{signs}{holder}"
    text = apply_snippet(OPTIONS, snippet, "python").text
    old = "        each.close()\n        each.wait()\n"
    assert text == OPTIONS.replace(old, "        each.close(wait=True)\n")


def test_a_new_definition_may_have_lines_of_the_one_it_is_taken_from() -> None:
    holder = "# ... existing code ...\n"
    body = OPTIONS[OPTIONS.index("        each.close()") : OPTIONS.index("    return None")]
    new = f"def close(each):\n{body.replace('        ', '    ')}"
    stop = "def stop():\n    for each in running():\n        close(each)\n    return None\n"
    text = apply_snippet(OPTIONS, f"{holder}{stop}\n\n{new}", "python").text
    assert text == f"{OPTIONS[: OPTIONS.index('def stop')]}{stop}\n\n{new}"


def test_lines_that_the_file_has_not_are_not_left_out() -> None:
    holder = "# ... existing code ...\n"
    run = "def run(one, two):\n    return two or one\n\n\n"
    cut = f'{run}def go():\n    {holder}        each.log("gone")\n    return None\n'
    with pytest.raises(AmbiguousSnippet, match="go is new and has a place holder"):
        apply_snippet(OPTIONS, f"{holder}{cut}", "python")
    with pytest.raises(AmbiguousSnippet, match="does not parse"):
        apply_snippet(OPTIONS, f"{holder}{run}def go():\n    {holder}def stop():\n", "python")


def test_brackets_balance_in_a_file_without_a_grammar() -> None:
    file = "begin {\n  a\n  b\n}\n"
    with pytest.raises(AmbiguousSnippet, match="does not parse"):
        apply_snippet(file, "begin {\n  a\n}\n  b\n}\n")


@data_cases()
def test_what_syntax_tells_about_a_snippet_decides(
    language: str, file: str, snippet: str, diff: str
) -> None:
    old = DATA["SHOWN_FILES"][file]
    new = apply_snippet(old, snippet, language).text
    lines = difflib.unified_diff(old.splitlines(True), new.splitlines(True), n=0)
    assert "".join([*lines][2:]) == diff


@pytest.mark.parametrize("case", DATA["READINGS"].values(), ids=DATA["READINGS"])
def test_a_snippet_has_the_reading_that_is_meant_or_none(case: dict[str, str]) -> None:
    if "after" in case:
        assert apply_snippet(case["before"], case["snippet"], "python").text == case["after"]
        return
    with pytest.raises(AmbiguousSnippet):
        apply_snippet(case["before"], case["snippet"], "python")
