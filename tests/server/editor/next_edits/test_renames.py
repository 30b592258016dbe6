"""A name that is changed where it is given: its other uses are proposed, and no others."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest
from rename_cases import RenameCase, rename_cases
from text_cases import data_cases
from typist import Typist

SUFFIX = {"python": "py", "javascript": "js", "typescript": "ts", "go": "go", "rust": "rs",
          "java": "java", "html": "html", "vue": "vue"}  # fmt: skip


def renamed(
    text: str, line: int, old: str, new: str, language: str = "python", nth: int = 0
) -> str:
    """The text after a rename at one place and all next edits that follow."""
    typist = Typist()
    document = typist.open(dedent(text), language, f"file:///project/code.{SUFFIX[language]}")
    cursor = typist.retype(document, line, old, new, nth)
    return typist.take_all(document, cursor)


def test_a_parameter_is_renamed_in_its_function_and_in_calls() -> None:
    text = '''\
        def total(prices, tax):
            """Sum of prices."""
            return sum(p for p in prices) * tax
        def other(prices):
            return total(prices=prices, tax=1)
        '''
    assert renamed(text, 0, "prices", "amounts") == dedent('''\
        def total(amounts, tax):
            """Sum of prices."""
            return sum(p for p in amounts) * tax
        def other(prices):
            return total(amounts=prices, tax=1)
        ''')


def test_a_name_that_an_inner_function_gives_anew_stays() -> None:
    text = """\
        count = 1
        def inner():
            count = 2
            return count
        def reader():
            return count
        class Holder:
            count = 3
            def get(self):
                return self.count + count
        print(count, [count for count in (1, 2)])
        """
    assert renamed(text, 0, "count", "total") == dedent("""\
        total = 1
        def inner():
            count = 2
            return count
        def reader():
            return total
        class Holder:
            count = 3
            def get(self):
                return self.count + total
        print(total, [count for count in (1, 2)])
        """)


def test_nonlocal_and_global_names_follow_their_binding() -> None:
    text = """\
        state = 0
        def outer():
            state = 1
            def change():
                nonlocal state
                state += 1
            def other():
                global state
                state = 5
            return state
        """
    assert renamed(text, 2, "state", "level") == dedent("""\
        state = 0
        def outer():
            level = 1
            def change():
                nonlocal level
                level += 1
            def other():
                global state
                state = 5
            return level
        """)


def test_methods_and_attributes_of_self_are_renamed_in_their_class_alone() -> None:
    text = """\
        class Cart:
            def __init__(self, items):
                self.items = items
            def size(self, other: Box):
                return len(self.items) + len(other.items)
        class Box:
            def get(self):
                return self.items
        """
    assert renamed(text, 2, "items", "goods") == dedent("""\
        class Cart:
            def __init__(self, items):
                self.goods = items
            def size(self, other: Box):
                return len(self.goods) + len(other.items)
        class Box:
            def get(self):
                return self.items
        """)


def test_the_variable_of_one_loop_is_not_that_of_another() -> None:
    text = """\
        def show(rows):
            for row in rows:
                print(row)
            for row in rows:
                print(row)
        """
    assert renamed(text, 1, "row", "first") == dedent("""\
        def show(rows):
            for first in rows:
                print(first)
            for row in rows:
                print(row)
        """)


@data_cases()
def test_nothing_is_proposed_where_that_is_no_rename_or_collides(
    text: str, line: int, old: str, new: str, nth: int
) -> None:
    typist = Typist()
    document = typist.open(text)
    cursor = typist.retype(document, line, old, new, nth)
    assert typist.next_edits(document, cursor) == []


@data_cases()
def test_names_of_other_languages_follow_their_only_declaration(
    language: str, text: str, line: int, old: str, wanted: str
) -> None:
    assert renamed(text, line, old, "total", language) == wanted


def renamed_where_declared(case: RenameCase) -> tuple[str, str]:
    """The texts after the rename is typed, without and with its next edits."""
    text = case.text
    typist = Typist()
    document = typist.open(text, case.language, "file:///project/code")
    start = text.rfind("\n", 0, case.declared) + 1
    before = text[start : case.declared]
    nth = len(re.findall(r"(?<!\w)foo(?!\w)", before))
    cursor = typist.retype(document, text.count("\n", 0, start), "foo", "bar", nth)
    typed = document.text
    return typed, typist.take_all(document, cursor)


NOT_TOLD = {"elixir", "haskell", "julia", "zig"}
"""Languages whose declarations are not told apart from other uses: nothing is proposed."""


@pytest.mark.parametrize(
    "case", rename_cases("shorthand", "keys", "members", "in strings", "scopes", "fields"), ids=str
)
def test_what_a_name_means_is_renamed_and_nothing_else(case: RenameCase) -> None:
    typed, got = renamed_where_declared(case)
    assert got == (typed if case.language in NOT_TOLD else case.after)


@data_cases()
def test_what_the_text_does_not_tell_is_not_renamed(language: str, text: str) -> None:
    typed, got = renamed_where_declared(RenameCase(language, "", text))
    assert got == typed


def test_a_class_that_is_renamed_in_a_page_s_styles_is_renamed_everywhere_or_nowhere() -> None:
    page = "<style>\n.card {}\n.card:hover {}\n</style>\n<p class='a card'>card</p>\n"
    wanted = page.replace(".card", ".tile").replace("a card", "a tile")
    assert renamed(page, 1, "card", "tile", "html") == wanted
    typed = page.replace(".card {", ".tile {")
    for line in ("<script>f('.card')</script>\n", "<a href='.card'></a>\n"):
        assert renamed(page + line, 1, "card", "tile", "html") == typed + line
    other = page.replace("</style>", ".tile {}\n</style>")
    assert renamed(other, 1, "card", "tile", "html") == other.replace(".card {", ".tile {")


def test_names_that_a_script_and_its_template_share_are_left() -> None:
    page = "<template>{{ count }}</template>\n<script>\nconst count = 1; f(count)\n</script>\n"
    typed = page.replace("const count", "const total")
    assert renamed(page, 2, "count", "total", "vue") == typed
