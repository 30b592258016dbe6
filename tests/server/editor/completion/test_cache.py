"""Known suggestions: found while typing into them, after scrolling, never in the wrong place."""

from __future__ import annotations

import random

import pytest

from lsp_server.editor.completion.cache import ENTRIES_PER_DOCUMENT, HEAD, TAIL, SuggestionCache

PREFIX = "import os\n" * 60 + "def f():\n    return os."
SUFFIX = "\n\n\ndef g():\n    pass\n" * 20
TEXT = "path.join(a, b)"


@pytest.fixture
def cache() -> SuggestionCache:
    made = SuggestionCache()
    made.add("d", PREFIX, SUFFIX, TEXT, complete=True)
    return made


def test_every_typed_prefix_finds_the_rest(cache: SuggestionCache) -> None:
    for typed in range(len(TEXT)):
        found = cache.find("d", PREFIX + TEXT[:typed], SUFFIX)
        assert found is not None
        assert found.text == TEXT[typed:]


def test_all_of_it_typed_is_not_known(cache: SuggestionCache) -> None:
    assert cache.find("d", PREFIX + TEXT, SUFFIX) is None


def test_other_text_is_not_found(cache: SuggestionCache) -> None:
    assert cache.find("d", PREFIX + "x", SUFFIX) is None
    assert cache.find("d", PREFIX[:-1], SUFFIX) is None
    assert cache.find("d", PREFIX, "x" + SUFFIX) is None
    assert cache.find("other", PREFIX, SUFFIX) is None


def test_edits_far_away_do_no_harm(cache: SuggestionCache) -> None:
    assert cache.find("d", "# new first line\n" + PREFIX, SUFFIX) is not None
    assert cache.find("d", PREFIX, SUFFIX + "# new last line\n") is not None


def test_brackets_that_the_editor_closed_do_no_harm() -> None:
    cache = SuggestionCache()
    cache.add("d", PREFIX, SUFFIX, "join(a[0])", complete=True)
    found = cache.find("d", PREFIX + "join(", ")" + SUFFIX)
    assert found is not None
    assert found.text == "a[0])"
    assert cache.find("d", PREFIX + "join(a[", "])" + SUFFIX) is not None
    assert cache.find("d", PREFIX + "join(", "))))" + SUFFIX) is None


def test_of_an_unfinished_text_whole_lines_are_used() -> None:
    cache = SuggestionCache()
    cache.add("d", PREFIX, SUFFIX, "one()\n    two()\n    thr", complete=False)
    found = cache.find("d", PREFIX + "on", SUFFIX)
    assert found is not None
    assert (found.text, found.complete) == ("e()\n    two()", False)
    assert cache.find("d", PREFIX + "one()\n    two()\n    t", SUFFIX) is None


def test_that_nothing_is_suggested_is_known_too() -> None:
    cache = SuggestionCache()
    cache.add("d", PREFIX, SUFFIX, "", complete=True)
    found = cache.find("d", PREFIX, SUFFIX)
    assert found is not None
    assert found.text == ""
    assert cache.find("d", PREFIX + "x", SUFFIX) is None


def test_the_beginning_of_a_document_is_only_itself() -> None:
    cache = SuggestionCache()
    cache.add("d", "im", "", "port os", complete=True)
    assert cache.find("d", "im", "") is not None
    assert cache.find("d", "x = im", "") is None


def test_the_newest_is_found_and_the_oldest_forgotten() -> None:
    cache = SuggestionCache()
    for number in range(ENTRIES_PER_DOCUMENT + 10):
        cache.add("d", PREFIX + f"{number}_", SUFFIX, "old", complete=True)
    assert cache.find("d", PREFIX + "9_", SUFFIX) is None
    assert cache.find("d", PREFIX + "10_", SUFFIX) is not None
    cache.add("d", PREFIX + "20_", SUFFIX, "new", complete=True)
    found = cache.find("d", PREFIX + "20_", SUFFIX)
    assert found is not None
    assert found.text == "new"


def test_what_is_found_is_what_a_slow_search_finds() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for _ in range(300):
        cache = SuggestionCache()
        document = "".join(rng.choices("ab\n ", k=rng.randrange(1000)))
        place = rng.randrange(len(document) + 1)
        prefix, suffix = document[:place], document[place:]
        text = "".join(rng.choices("ab", k=rng.randrange(1, 8)))
        cache.add("d", prefix, suffix, text, complete=True)
        typed = "".join(rng.choices("ab", k=rng.randrange(5)))
        now = prefix + typed
        fits = [
            text[count:]
            for count in range(len(text))
            if now.endswith(text[:count])
            and now[: len(now) - count].endswith(prefix[-TAIL:])
            and (len(prefix) >= TAIL or now[: len(now) - count] == prefix)
        ]
        found = cache.find("d", now, suffix)
        where = f"seed {seed}: {prefix[-20:]!r} {text!r} {typed!r} {suffix[:HEAD]!r}"
        assert (found.text if found else None) == (fits[0] if fits else None), where
