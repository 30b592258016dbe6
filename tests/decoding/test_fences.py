"""Fences around answers: what is code and what ends it."""

from __future__ import annotations

from accel.text.fences import closing_place, fence_for

NESTED = "Run it:\n\n```sh\nls\n```\n\nDone.\n"


def test_an_answer_ends_at_its_own_fence_as_soon_as_that_is_known() -> None:
    answer = NESTED + "```\nmore"
    actual = [closing_place(answer[:end], "```") for end in range(len(answer) + 1)]
    known = len(NESTED) + 4
    assert actual == [None] * known + [len(NESTED)] * (len(answer) + 1 - known)


def test_a_fence_is_longer_than_any_in_the_texts() -> None:
    assert fence_for("a", "") == "```"
    assert fence_for("``", "x ```` y", "```") == "`````"
