"""Fences around answers: what is code and what ends it."""

from __future__ import annotations

import pytest

from accel.text.fences import closing_place, code_in, fence_for

NESTED = "Run it:\n\n```sh\nls\n```\n\nDone.\n"


@pytest.mark.parametrize(
    ("answer", "fence", "code"),
    [
        ("x = 1\n```\nThat is it.", "```", "x = 1\n"),
        ("x = '```'\n````\n", "````", "x = '```'\n"),
        ("x = 1\n", "```", "x = 1\n"),
        ("```\n", "```", ""),
        (NESTED + "```\nHere you are.", "```", NESTED),
        (NESTED + "````", "````", NESTED),
        (NESTED, "````", NESTED),
        (NESTED + "```", "````", NESTED),
        ("    ```\n    a\n    ```\n```", "```", "    ```\n    a\n    ```\n"),
        ("a ``` b\n```", "```", "a ``` b\n"),
    ],
)
def test_code_in_a_fenced_answer(answer: str, fence: str, code: str) -> None:
    assert code_in(answer, fence) == code


def test_an_answer_ends_at_its_own_fence_as_soon_as_that_is_known() -> None:
    answer = NESTED + "```\nmore"
    found = [closing_place(answer[:end], "```") for end in range(len(answer) + 1)]
    known = len(NESTED) + 4
    assert found == [None] * known + [len(NESTED)] * (len(answer) + 1 - known)


def test_a_fence_is_longer_than_any_in_the_texts() -> None:
    assert fence_for("a", "") == "```"
    assert fence_for("``", "x ```` y", "```") == "`````"
