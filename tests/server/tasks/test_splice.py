"""What an edit leaves alone is taken from the document, whatever the model can spell."""

from __future__ import annotations

import random

import pytest
from seeds import Amount
from text_cases import data_beside, data_cases

from lsp_server.shared.errors import EditRefused
from lsp_server.tasks.editing.shown_text import ShownText
from lsp_server.tasks.editing.splice import spliced
from lsp_server.text.documents.document import line_end, split_lines

DATA = data_beside(__file__)
CODE = DATA["CODE"]
STRANGE = [
    "😀", "€", "é", "e\u0301", "日本", "\x00", "\x07", "\x0b", "\x0c", "\x85", "\u2028", "\u2029",
    "\u200b", "\u200d", "\u202e", "\u2066", "\ufeff", "\u00a0", "\u3000", "\ud83d", "\x7f", "𝒳",
    "\U000e0041", "\U0010ffff", "ﬀ", "ñandú", "цена", "x1", "<1>", "👩\u200d💻", "\ue000", "١٢",
]  # fmt: skip
ENDS = ["\n", "\r\n", "\r"]
LEGIBLE = str.isascii
"""What a model reads whose vocabulary carries nothing else."""


def random_text(rng: random.Random) -> str:
    """Code of some language, with strange characters, blanks, tabs and line ends put in."""
    text = rng.choice(list(CODE.values()))
    if rng.random() < 0.3:
        text = text.replace("    ", "\t").replace("  ", "\t")
    for _ in range(rng.randrange(5)):
        place = rng.randrange(len(text) + 1)
        strange = rng.choice(STRANGE) if rng.random() < 0.7 else chr(rng.randrange(0x110000))
        text = text[:place] + strange * rng.randrange(1, 3) + text[place:]
    lines = text.replace("\r", "").split("\n")
    if rng.random() < 0.3:
        lines = [line + rng.choice(["", " ", "\t", " \t "]) for line in lines]
    if rng.random() < 0.2:
        number = rng.randrange(len(lines))
        lines[number] = rng.choice(["\t  ", "  \t", " "]) + lines[number]
    ends = ENDS if rng.random() < 0.2 else [rng.choice(ENDS)]
    text = "".join(line + rng.choice(ends) for line in lines[:-1]) + lines[-1]
    if rng.random() < 0.2:
        text = text.rstrip("\r\n")
    return "\ufeff" + text if rng.random() < 0.1 else text


def shown_to(rng: random.Random, text: str) -> ShownText:
    if rng.random() < 0.5:
        return ShownText(text, "rename a to b", legible=LEGIBLE)
    return ShownText(text, "rename a to b")


def check_one(seed: int) -> None:
    rng = random.Random(seed)
    text = random_text(rng)
    shown = shown_to(rng, text)
    assert spliced(shown, shown.text) == text, f"seed {seed}"
    lines = shown.text.split("\n")
    number = rng.randrange(len(lines))
    body = lines[number].lstrip(" \t")
    if not body:
        return
    changed = lines[number][: -len(body)] + "added " + body
    answer = [*lines[:number], changed, *lines[number + 1 :]]
    before, after = split_lines(text), split_lines(spliced(shown, "\n".join(answer)))
    assert before[:number] == after[:number], f"seed {seed}"
    assert before[number + 1 :] == after[number + 1 :], f"seed {seed}"
    assert line_end(before[number]) == line_end(after[number]), f"seed {seed}"
    assert after[number].replace("added ", "", 1) == before[number], f"seed {seed}"


def test_selections_keep_their_bytes(amount: Amount):
    first = random.SystemRandom().randrange(1 << 40)
    for seed in range(first, first + amount(2_000, 100_000)):
        check_one(seed)


def test_nothing_is_shown_that_a_vocabulary_does_not_carry():
    rng = random.Random(1)
    for _ in range(300):
        text = ShownText(random_text(rng), legible=LEGIBLE).text
        assert all(character in "\n\t" or character.isprintable() for character in text)
        assert LEGIBLE(text)


def shown_in_ascii(text: str, instruction: str = "") -> ShownText:
    return ShownText(text, instruction, legible=LEGIBLE)


@pytest.mark.parametrize(
    ("old", "model", "new"),
    [
        ("\tif a:\n\t\tb()\n", lambda t: t.replace("b()", "c()\n        d()"),
         "\tif a:\n\t\tc()\n\t\td()\n"),
        ("\ta\n", lambda t: t.replace("a", "a:\n        b"), "\ta:\n\t\tb\n"),
        ("a\t= 1  \r\nb\r\n", lambda t: t.replace("1", "2"), "a\t= 2  \r\nb\r\n"),
        ("a\r\nb\nc\n", lambda t: t.replace("b", "b\nx"), "a\r\nb\nx\nc\n"),
        ("a\r\nb", lambda t: t + "\nc", "a\r\nb\r\nc"),
        ("a\r\nb\r\nc", lambda t: t.replace("\nc", ""), "a\r\nb"),
        ("\x0cdef a():\n    b\n", lambda t: t.replace("a", "c"), "\x0cdef c():\n    b\n"),
        ("é = 1  # é€\n", lambda t: t.replace("x1 =", "x1, x1 ="), "é, é = 1  # é€\n"),
        ("a  # 😀 a\n", lambda t: t.replace("a", "b"), "b  # 😀 b\n"),
        ("a = '\0b'\n", lambda t: t.replace("a", "c"), "c = '\0b'\n"),
        ("a  # 😀\nb\n", lambda t: "a\nb\n", "a\nb\n"),
        ("a\rb", lambda t: "a\n\nc\nb", "a\r\rc\rb"),
    ],
)  # fmt: skip
def test_changed_lines_are_written_as_their_neighbours_are(old, model, new):
    shown = shown_in_ascii(old)
    assert spliced(shown, model(shown.text)) == new


@data_cases()
def test_an_answer_that_spoils_a_stand_in_is_refused(stand_in, written):
    shown = shown_in_ascii("é = '€'  # price\n")
    assert shown.text == "x1 = '<2>'  # price\n"
    with pytest.raises(EditRefused, match="vocabulary"):
        spliced(shown, shown.text.replace(stand_in, written))


def test_an_instruction_names_words_as_the_text_shows_them():
    shown = shown_in_ascii("größe = 1\nreturn größe\n", "rename größe to länge")
    assert shown.text == "x1 = 1\nreturn x1\n"
    assert shown.instruction == "rename x1 to x2"
    assert spliced(shown, shown.text.replace("x1", "x2")) == "länge = 1\nreturn länge\n"
