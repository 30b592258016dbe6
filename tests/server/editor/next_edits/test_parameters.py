"""A parameter that comes or goes: what becomes of the calls."""

from __future__ import annotations

from textwrap import dedent

import pytest
from text_cases import data_cases
from typist import Typist

CALLS = """\
def f(a, b, c=1):
    return a
def g(c, d, other):
    f(1, d)
    f(1, b=2, c=3)
    f(b=1, a=2)
    f(*a)
    f(1, **c)
    other.f(1, 2)
    return f(a, b)
"""


def followed(text: str, line: int, old: str, new: str) -> list[str]:
    """The changed lines below the signature, after all next edits."""
    typist = Typist()
    document = typist.open(dedent(text))
    column = document.lines[line].index(old)
    typist.now_s += 5
    typist.change(document, (line, column), (line, column + len(old)), new)
    typist.now_s += 1
    before = list(document.lines)
    typist.take_all(document, typist.documents.get(document.uri).end())
    pairs = zip(before, document.lines, strict=True)
    return [after.strip() for one, after in pairs if one != after]


def test_a_parameter_that_went_leaves_the_calls_that_are_resolved() -> None:
    assert followed(CALLS, 0, ", b", "") == ["f(1)", "f(1, c=3)", "f(a=2)", "return f(a)"]


def test_the_first_parameter_goes_with_its_comma() -> None:
    assert followed(CALLS, 0, "a, ", "") == ["f(d)", "f(b=2, c=3)", "f(b=1)", "return f(b)"]


def test_a_parameter_that_came_is_given_the_name_that_the_caller_has() -> None:
    assert followed(CALLS, 0, "a, b", "a, d, b") == [
        "f(1, d, d)",
        "f(1, b=2, c=3, d=d)",
        "f(b=1, a=2, d=d)",
        "return f(a, d, b)",
    ]


def test_without_such_a_name_the_user_is_led_to_the_call() -> None:
    typist = Typist()
    document = typist.open(CALLS)
    typist.now_s += 5
    typist.change(document, (0, 11), (0, 11), " zone,")
    typist.now_s += 1
    found = typist.next_edits(document, document.end())
    assert [one.new_text for one in found] == [None] * 4
    assert [one.region.start.line for one in found] == [3, 4, 5, 9]


@pytest.mark.parametrize("new", ["a, b, c=1, d=2", "a, b, c=1, *rest", "a, b, c=1, **more", "b, a"])
def test_what_calls_need_not_follow_is_not_proposed(new: str) -> None:
    assert followed(CALLS, 0, "a, b, c=1", new) == []


def test_methods_are_called_by_self() -> None:
    text = """\
        class Cart:
            def add(self, item, count):
                pass
            def fill(self, cart):
                self.add(1, 2)
                cart.add(1, 2)
        """
    assert followed(text, 1, ", count", "") == ["self.add(1)"]


def test_static_methods_have_no_self() -> None:
    text = """\
        class Cart:
            @staticmethod
            def add(item, count):
                pass
            def fill(self):
                self.add(1, 2)
        """
    assert followed(text, 2, "item, ", "") == ["self.add(2)"]


def test_a_function_that_is_defined_twice_is_ambiguous() -> None:
    text = """\
        def f(a, b):
            pass
        def f(a):
            pass
        f(1, 2)
        """
    assert followed(text, 0, ", b", "") == []


@data_cases()
def test_an_argument_comes_and_goes_with_its_own_comments_alone(
    parameters: str, old: str, new: str, call: str, wanted: str
) -> None:
    head = f"d = 4\ndef f({parameters}):\n    return d\n"
    typist = Typist()
    document = typist.open(head + call + "\n")
    column = document.lines[1].index(old)
    typist.now_s += 5
    typist.change(document, (1, column), (1, column + len(old)), new)
    typist.now_s += 1
    got = typist.take_all(document, document.end())
    compile(got, "code.py", "exec")
    assert got.split("\n", 3)[3] == wanted + "\n"


def test_the_user_is_led_to_calls_in_macros_of_rust() -> None:
    typist = Typist()
    text = 'fn f(a: u32, b: u32) -> u32 { a }\nfn g() { println!("{}", f(1, 2)); f(3, 4); }\n'
    document = typist.open(text, "rust", "file:///project/a.rs")
    typist.now_s += 5
    typist.change(document, (0, 11), (0, 19), "")
    typist.now_s += 1
    found = typist.next_edits(document, document.end())
    assert [(one.region.start.line, one.new_text) for one in found] == [(1, None), (1, "")]
