"""What is shown, by language: brackets, blocks that repeat, loops. `¦` is the cursor."""

from __future__ import annotations

import random
import re
import time
from pathlib import Path

import pytest
from counted_calls import counted_calls
from text_cases import data_cases

from lsp_server.editor.completion.postfilter import shown_text
from lsp_server.text.syntax.brackets import code_brackets, unpaired
from lsp_server.text.syntax.incremental_brackets import IncrementalBrackets
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.syntax.tree import SyntaxTree

DATA = Path(__file__).parents[3] / "data" / "languages"


def shown(language: str, place: str, text: str) -> str:
    prefix, suffix = place.split("¦")
    return shown_text(text, prefix, suffix, IncrementalBrackets.of(language))


# The text closes what is open, behind signs that look like comments, strings or brackets.


@data_cases()
def test_a_closing_bracket_that_is_needed_stays(language: str, place: str, text: str) -> None:
    assert shown(language, place, text) == text


# What the text after the cursor closes already is cut, and no more.


@data_cases()
def test_a_closing_bracket_that_stands_there_already_is_cut(
    language: str, place: str, text: str, wanted: str
) -> None:
    assert shown(language, place, text) == wanted


@data_cases()
def test_a_bracket_that_closes_nothing_is_cut(
    language: str, place: str, text: str, wanted: str
) -> None:
    assert shown(language, place, text) == wanted


# The model wrote a block that stands above already. It is shown.


@data_cases()
def test_a_block_that_comes_again_is_shown(language: str, place: str, text: str) -> None:
    assert shown(language, place, text) == text


# It goes on like that to the end: cut after the first round, or not shown.


@pytest.mark.parametrize("language", ["plaintext", "python", "javascript"])
@data_cases()
def test_a_loop_is_cut(language: str, prefix: str, text: str, wanted: str) -> None:
    assert shown(language, prefix + "¦\n", text) == wanted


# It ends by itself: no loop.


@data_cases()
def test_what_ends_by_itself_is_no_loop(prefix: str, text: str) -> None:
    assert shown("plaintext", prefix + "¦\n", text) == text


# What comes below, or stands at the end of the line, is not written twice.


@data_cases()
def test_what_follows_is_not_doubled(language: str, place: str, text: str, wanted: str) -> None:
    assert shown(language, place, text) == wanted


@data_cases()
def test_what_only_looks_like_the_rest_stays(language: str, place: str, text: str) -> None:
    assert shown(language, place, text) == text


BLOCKS = {
    "shop.py": "f(a, [1], {})  # (\n\n",
    "queue.js": "f(a, [1], `}`);\n\n",
    "ring.c": "int f(int a[], int b); /* ( */\n\n",
    "page.css": "#a { b: c(d) }\n\n",
}


@pytest.mark.parametrize("name", BLOCKS)
def test_kept_brackets_are_those_of_the_whole_document(name: str) -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    language = language_of_path(name)
    text = (DATA / name).read_text(encoding="utf-8") * 4
    kept = IncrementalBrackets.of(language)
    assert kept is not None
    block = BLOCKS[name]
    for _ in range(10):
        if block in text and chance.random() < 0.4:
            start = end = text.find(block)
            text = text[:start] + text[start + len(block) :]
        else:
            start = chance.choice([at.end() for at in re.finditer(r"\n\n(?=[^\s@])", text)])
            end = start + len(block)
            text = text[:start] + block + text[start:]
        around = kept.around(text, start, end)
        assert around is not None
        tree = SyntaxTree.parsed(text, language)
        every = code_brackets(tree, tree.pieces())
        assert around.open_before == unpaired(at.sign for at in every if at.place < start).opening
        assert around.closed_after == unpaired(at.sign for at in every if at.place >= end).closing


def test_a_long_comment_or_string_is_never_divided() -> None:
    prose = "it's a line (of prose\n" * 400
    signs = {"python": '"""/"""', "c": "/*|*/", "javascript": "x = `/`", "html": "<!--/-->"}
    for language, both in signs.items():
        opens, closes = both.split("|" if "|" in both else "/")
        kept = IncrementalBrackets.of(language)
        assert kept is not None
        around = kept.around(f"{opens}\n{prose}{closes}\n" * 3, 0, 0)
        assert around is not None
        assert around.closed_after == ""
        place = len(opens + prose + closes)
        around = kept.around(f"{opens}\n{prose}{closes}\n" * 3, place, place)
        assert around is not None
        assert around.open_before == ""


def _document() -> str:
    block = (DATA / "queue.js").read_text(encoding="utf-8")
    return block * (100_000 // len(block) + 1)


def _times_of_typing(keys: int) -> list[float]:
    """Milliseconds of the filter while a text is typed at several places of a document."""
    document = _document()
    kept = IncrementalBrackets.of("javascript")
    shown_text("f(a)", document, "", kept)
    chance = random.Random(1)
    places = [at for at, sign in enumerate(document) if sign == "\n"]
    times = []
    text = "\n  if (x) { f(a, [b, 'it"
    while len(times) < keys:
        place = chance.choice(places)
        for typed in range(1, len(text)):
            prefix, suffix = document[:place] + text[:typed], document[place:]
            started = time.thread_time()
            shown_text(text[typed:] + f"{typed}', c]);\n  }}", prefix, suffix, kept)
            times.append((time.thread_time() - started) * 1000)
    return sorted(times)


def test_the_filter_does_no_more_in_a_long_document_than_in_a_short_one() -> None:
    def calls(document: str) -> int:
        kept = IncrementalBrackets.of("javascript")
        shown_text("f(a)", document, "", kept)
        prefix = f"{document}\n  if (x) {{ f("
        return counted_calls(lambda: shown_text("a, [b, 'it', c]);\n  }", prefix, "\n", kept))

    long = _document()
    assert calls(long) <= 2 * calls(long[: len(long) // 20])


@pytest.mark.long
def test_the_filter_takes_three_milliseconds_in_a_long_document() -> None:
    times = _times_of_typing(1000)
    print("p50", times[500], "p95", times[950], "max", times[-1])
    assert times[950] <= 3
