"""Syntax trees: roles and identifiers over many languages, offsets in every kind of text."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from seeds import Amount
from text_cases import data_beside, data_cases

from lsp_server.text.syntax.languages import grammar_of, language_of_path
from lsp_server.text.syntax.offsets import Offsets, encoded
from lsp_server.text.syntax.tree import Role, SyntaxTree
from lsp_server.text.text_edit import TextEdit

# Each text names `price` once as an identifier, once in a comment and, where the language has
# strings, once in a string. {C} and {S} mark those two; the marks are taken out before parsing.
DATA = data_beside(__file__)
TEXTS = DATA["TEXTS"]


def marked(language: str) -> tuple[str, int, int, int]:
    """The text, and where the name stands in code, in the comment and in the string (or -1)."""
    text = TEXTS[language].replace("{{", "{").replace("}}", "}")
    places = {}
    for sign in sorted(("{C}", "{S}"), key=text.find):
        if sign in text:
            places[sign] = text.index(sign)
            text = text.replace(sign, "")
    found = [at for at in _all(text, "price") if at not in places.values()]
    assert len(found) == 1
    return text, found[0], places["{C}"], places.get("{S}", -1)


def _all(text: str, word: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(word, at)]


def tree_of(text: str, language: str) -> SyntaxTree:
    tree = SyntaxTree.of(text, language)
    assert tree is not None
    return tree


@pytest.mark.parametrize("language", TEXTS)
def test_a_name_is_told_from_a_comment_and_a_string(language: str) -> None:
    text, code, comment, string = marked(language)
    tree = tree_of(text, language)
    assert tree.role_at(comment) is Role.COMMENT
    if string >= 0:
        assert tree.role_at(string) is Role.STRING
    assert tree.identifiers("price") == [(code, code + 5)]
    assert tree.role_at(code) is Role.CODE


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("language", TEXTS)
def test_offsets_are_right_behind_every_kind_of_character(language: str, end: str) -> None:
    text, code, comment, string = marked(language)
    strange = "é€𝄞👩‍👩‍👧 "
    text = text[:comment] + strange + text[comment:]
    shift = {at: at + (len(strange) if at >= comment else 0) for at in (code, comment, string)}
    newlines = [at for at, character in enumerate(text) if character == "\n"]

    def moved(at: int) -> int:
        return shift[at] + (len(end) - 1) * sum(line < shift[at] for line in newlines)

    tree = tree_of(text.replace("\n", end), language)
    assert tree.identifiers("price") == [(moved(code), moved(code) + 5)]
    assert tree.role_at(moved(comment)) is Role.COMMENT
    if string >= 0:
        assert tree.role_at(moved(string)) is Role.STRING


@data_cases()
def test_what_runs_inside_of_a_string_is_code(language: str, text: str) -> None:
    tree = tree_of(text, language)
    at = text.index("price")
    assert tree.role_at(at) is Role.CODE
    assert tree.identifiers("price") == [(at, at + 5)]
    assert any(start < at for start, _ in tree.strings())


@pytest.mark.parametrize(
    ("language", "text", "role"),
    [
        ("html", "<p>it's | here</p>", Role.TEXT),
        ("html", "<script>let a = '|';</script>", Role.STRING),
        ("html", "<script>let a = 1; // |\n</script>", Role.COMMENT),
        ("html", "<style>a { b: c; } /* | */</style>", Role.COMMENT),
        ("vue", '<script lang="ts">let a: A = "|"</script>', Role.STRING),
        ("markdown", "it's | here", Role.TEXT),
        ("markdown", "```python\nx = '|'\n```\n", Role.STRING),
        ("markdown", "```nonesuch\nx = '|'\n```\n", Role.CODE),
        ("latex", "it's | here", Role.TEXT),
        ("latex", "a % | here\n", Role.COMMENT),
        ("typescriptreact", "const a = <p>it's | here</p>;", Role.TEXT),
        ("rst", "it's | here", Role.TEXT),
        ("xml", "<a>it's | here</a>", Role.TEXT),
        ("php", "it's | here <?php f(); ?>", Role.TEXT),
    ],
)
def test_prose_and_texts_inside_of_others(language: str, text: str, role: Role) -> None:
    at = text.index("|")
    text = text.replace("|", "x")
    assert tree_of(text, language).role_at(at) is role


@data_cases()
def test_identifiers_of_a_name(language: str, text: str, name: str, count: int) -> None:
    found = tree_of(text, language).identifiers(name)
    assert all(text[start:end] == name for start, end in found)
    assert len(found) == count


def test_broken_text_has_a_tree_with_errors() -> None:
    tree = tree_of('def f(:\n  x = "a\n# c\n', "python")
    assert tree.has_errors
    assert not tree_of("x = 1\n", "python").has_errors


def test_halves_of_characters_and_nul_do_no_harm() -> None:
    text = "x = '\ud800'  # \udfff\0 price\nprice = 1\n"
    tree = tree_of(text, "python")
    at = text.rindex("price")
    assert tree.identifiers("price") == [(at, at + 5)]


@pytest.mark.parametrize("language", ["", "plaintext", "nonesuch", "../os", "os.path", "comment"])
def test_an_unknown_language_has_no_tree(language: str) -> None:
    assert SyntaxTree.of("x = 1", language) is None
    assert SyntaxTree.of("x = 1", language, "a/b.py") is not None


@data_cases()
def test_the_ending_tells_the_language(path: str, grammar: str) -> None:
    assert grammar_of(language_of_path(path)) == grammar


def test_offsets_go_both_ways() -> None:
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(200):
        text = "".join(chance.choice("a\r\né€𝄞👍\ud800") for _ in range(chance.randrange(40)))
        offsets = Offsets(text)
        for index in range(len(text) + 1):
            assert offsets.byte(index) == len(encoded(text[:index]))
            assert offsets.index(offsets.byte(index)) == index


def test_importing_loads_no_grammar() -> None:
    code = (
        "import sys, lsp_server.text.syntax.tree, lsp_server.editor.server;"
        "print([name for name in sys.modules if name.startswith('tree_sitter')])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


LINES = {
    "python": ["def f(a):", "    return a", "class C:", "    x = 'é😀'", "", "f(1,", "2)", "'''"],
    "javascript": ["function f(a) {", "  return a", "}", "const s = `é😀", "`;", "", "f(1,", "2);"],
    "rust": ["fn f(a: u8) {", "    a", "}", 'let s = "é😀";', "", "f(1,", "2);", "/*", "*/"],
}


@pytest.mark.parametrize("language", LINES)
def test_the_tree_of_an_edited_text_is_that_of_the_new_text(language: str, amount: Amount) -> None:
    seed = random.SystemRandom().randrange(1 << 40)
    for number in range(seed, seed + amount(60, 20_000)):
        rng = random.Random(number)
        end = rng.choice(["\n", "\r\n", "\r"])

        def text(most: int, rng: random.Random = rng, end: str = end) -> str:
            return "".join(f"{line}{end}" for line in rng.choices(LINES[language], k=most))

        old = text(rng.randrange(12))
        borders = [0, *(n + len(end) for n in range(len(old)) if old.startswith(end, n))]
        found = sorted(rng.choices(borders, k=2 * rng.randrange(1, 4)))
        spans = zip(found[::2], found[1::2], strict=True)
        edits = [TextEdit(start, last, text(rng.randrange(4))) for start, last in spans]
        new, kept = "", 0
        for edit in edits:
            new, kept = new + old[kept : edit.start] + edit.text, edit.end
        new += old[kept:]
        tree, before = SyntaxTree.of(new, language), SyntaxTree.of(old, language)
        assert tree
        assert before
        edited = before.edited(edits)
        assert edited.text == new, f"seed {number}"
        if not before.has_errors:
            assert edited.has_errors == tree.has_errors, f"seed {number}: {old!r} {edits}"
        if not before.has_errors and not tree.has_errors:
            assert edited.pieces() == tree.pieces(), f"seed {number}"
