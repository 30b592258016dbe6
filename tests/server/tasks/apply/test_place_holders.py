"""Comments that stand for what was left out, and those that say something."""

from __future__ import annotations

import re

import pytest
from text_cases import data_cases, lines_of

from lsp_server.tasks.apply.place_holders import place_holder
from lsp_server.tasks.apply.wordings import WORDINGS, Wording, pattern_of


@pytest.mark.parametrize("line", lines_of("answers/place_holders.txt"))
def test_a_comment_in_any_syntax_may_stand_for_what_was_left_out(line: str) -> None:
    assert place_holder(line)
    assert place_holder(f"        {line}")


@pytest.mark.parametrize("line", lines_of("answers/comments.txt"))
def test_comments_that_say_something_are_none(line: str) -> None:
    assert not place_holder(line)


def test_a_long_comment_is_none() -> None:
    # Dots without end are looked at again from each of them.
    assert place_holder(f"# {'.' * 300} existing code")
    assert not place_holder(f"# {'.' * 9000} existing code")


def test_five_words_behind_dots_are_a_place_holder_and_six_are_a_sentence() -> None:
    assert place_holder("# ... so other code goes on")
    assert not place_holder("# ... so other code goes on here")


@pytest.mark.parametrize("wording", WORDINGS, ids=[one.case for one in WORDINGS])
def test_every_wording_has_its_case(wording: Wording) -> None:
    assert re.fullmatch(pattern_of(wording.words), f"{wording.case} ", re.IGNORECASE)
    for comment in ("# {}", "// ... {} ...", "/* {} */", "<!-- {}. -->", "-- ({})"):
        assert place_holder(comment.format(wording.case))


@data_cases()
def test_how_wordings_are_written(words: str, texts: list[str], others: list[str]) -> None:
    for text in (*texts, *others):
        assert bool(re.fullmatch(pattern_of(words), f"{text} ")) == (text in texts), text
