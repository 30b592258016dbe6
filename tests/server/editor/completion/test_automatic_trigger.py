"""What is offered to somebody who did not ask: places, signs, lines that are whole, and what stands
there already."""

from __future__ import annotations

import random

from text_cases import data_cases

from lsp_server.editor.completion.automatic_trigger import is_place, is_prose, offered
from lsp_server.editor.completion.request import CompletionRequest


def at(text: str, language: str = "python") -> CompletionRequest:
    """The request at the ``|`` of a text."""
    prefix, suffix = text.split("|")
    return CompletionRequest("d", "d", "", language, prefix, suffix)


@data_cases("rest")
def test_places_where_something_may_be_missing(rest: str) -> None:
    assert is_place(at(f"total = count({'|'}{rest}\nprint(total)\n"))


@data_cases("rest")
def test_places_where_nothing_is_missing(rest: str) -> None:
    assert not is_place(at(f"total = count({'|'}{rest}\nprint(total)\n"))


@data_cases()
def test_comments_and_prose(language: str, text: str, is_told: bool) -> None:
    assert is_prose(at(text, language)) == is_told


@data_cases()
def test_which_texts_are_offered(place: str, text: str, shown: bool) -> None:
    assert offered(text, at(place)) == (text if shown else "")


def test_a_text_is_offered_as_it_is_or_not_at_all() -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    signs = "ab(),;:{}[]\"' \n"
    for _ in range(3000):
        before, text, behind = (
            "".join(rng.choice(signs) for _ in range(rng.randrange(9))) for _ in range(3)
        )
        ask = CompletionRequest("d", "d", "", "python", before, behind)
        assert offered(text, ask) in ("", text), f"seed {seed}"
        rest = ask.line_after.strip()
        if rest and text.strip(" ,;\n") == rest.strip(" ,;"):
            assert offered(text, ask) == "", f"seed {seed}"
