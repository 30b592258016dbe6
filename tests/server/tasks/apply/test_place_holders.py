"""Comments that stand for what was left out, and those that say something."""

from __future__ import annotations

import pytest
from text_cases import lines_of

from lsp_server.tasks.apply.place_holders import place_holder


@pytest.mark.parametrize("line", lines_of("answers/place_holders.txt"))
def test_a_comment_in_any_syntax_may_stand_for_what_was_left_out(line: str) -> None:
    assert place_holder(line)
    assert place_holder(f"        {line}")


@pytest.mark.parametrize("line", lines_of("answers/comments.txt"))
def test_comments_that_say_something_are_none(line: str) -> None:
    assert not place_holder(line)


def test_five_words_behind_dots_are_a_place_holder_and_six_are_a_sentence() -> None:
    assert place_holder("# ... so other code goes on")
    assert not place_holder("# ... so other code goes on here")
