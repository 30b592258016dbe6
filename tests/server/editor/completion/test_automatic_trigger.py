"""What is offered to somebody who did not ask: places, signs, lines that are whole, and what stands
there already."""

from __future__ import annotations

import random

import pytest

from lsp_server.editor.completion.automatic_trigger import is_place, is_prose, offered
from lsp_server.editor.completion.request import CompletionRequest


def at(text: str, language: str = "python") -> CompletionRequest:
    """The request at the ``|`` of a text."""
    prefix, suffix = text.split("|")
    return CompletionRequest("d", "d", "", language, prefix, suffix)


@pytest.mark.parametrize(
    "rest",
    ["", "  ", ")", ")]}", '")', "')", "`)", "):", ") {", ");", "},", ":", ";", ",", " }", '",'],
)  # fmt: skip
def test_places_where_something_may_be_missing(rest: str) -> None:
    assert is_place(at(f"total = count({'|'}{rest}\nprint(total)\n"))


@pytest.mark.parametrize(
    "rest",
    ["x", "(items)", ".append(1)", " = 3", ", b)", "), c)", "):;", " # why", "_total", "[0]",
     " + 1", '"a"', "()", "{}", ");x", " if a else b", "=>", " in items:"],
)  # fmt: skip
def test_places_where_nothing_is_missing(rest: str) -> None:
    assert not is_place(at(f"total = count({'|'}{rest}\nprint(total)\n"))


@pytest.mark.parametrize(
    ("language", "text", "is_told"),
    [
        ("python", "x = 1\n    # Counts all |\n", True),
        ("python", "x = 1  # the |\n", True),
        ("python", "x = '# |'\n", False),
        ("python", "# Counts.\n|\n", False),
        ("python", "x = a // |\n", False),
        ("typescript", "/**\n * Counts |\n */\n", True),
        ("typescript", "/* Counts |\n", True),
        ("typescript", "/* Counts. */\nconst a = |\n", False),
        ("typescript", "const a = 2\n  * |\n", False),
        ("c", "/* all */\n*first = |\n", False),
        ("go", "\t// Sum gives |\n", True),
        ("go", '\turl := "http://" + |\n', False),
        ("markdown", "# Shops\n\nA shop is |\n", True),
        ("markdown", "```python\nx = |\n```\n", False),
        ("markdown", "```\nx\n```\nThen |\n", True),
        ("git-commit", "Shops are |\n", True),
        ("plaintext", "# |\n", False),
        ("unknown", "# |\n", False),
    ],
)  # fmt: skip
def test_comments_and_prose(language: str, text: str, is_told: bool) -> None:
    assert is_prose(at(text, language)) == is_told


@pytest.mark.parametrize(
    ("place", "text", "shown"),
    [
        # A sign alone is no suggestion.
        ("x = foo|\n", ",", False),
        ("x = foo|\n", " )", False),
        ("x = |\n", "1", True),
        ("x = foo|\n", "()", True),
        # A line below one that is whole.
        ("x = foo|\n", "\n    y = bar", False),
        ("    return total|\n", "\n\n    print(total)", False),
        ("    total,|\n", "\n    count", True),
        ("def f():|\n", "\n    return 1", True),
        ("call(|\n", "\n    a,", True),
        ("x = 1\n|\n", "y = 2", True),
        # What stands behind the cursor.
        ("if (a == b|) {\n", ") {", False),
        ("f(a|);\n", ")", False),
        ("f(a|);\n", ", b", True),
        ("f(a|)\n", ");", False),
        ('x = ["a|"]\n', '"],', False),
        ("    }|\n    }\n", "; // closes", True),
    ],
)
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
