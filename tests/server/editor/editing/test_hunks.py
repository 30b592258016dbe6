"""Hunks put into the old text give exactly the new one, and are small."""

from __future__ import annotations

import difflib
import itertools
import random
import re

from lsp_server.editor.editing.hunks import apply_hunks, line_by_line, minimal_hunks, unified_diff
from lsp_server.text.text_edit import TextEdit

PIECES = [
    "a", "b", " ", "\n", "\r\n", "\r", "é", "e\u0301", "😀", "👍🏽", "x\u2028y", "\x0c", "\t",
    "word", "    ", "ﬀ", "\n\n", "\u0085", "👨\u200d👩",
]  # fmt: skip
CASES = 10_000


def random_pair(rng: random.Random) -> tuple[str, str]:
    old = "".join(rng.choice(PIECES) for _ in range(rng.randrange(40)))
    if rng.random() < 0.1:
        return old, "".join(rng.choice(PIECES) for _ in range(rng.randrange(40)))
    parts = list(old)
    for _ in range(rng.randrange(4)):
        start = rng.randrange(len(parts) + 1)
        stop = min(len(parts), start + rng.randrange(5))
        parts[start:stop] = [rng.choice(PIECES) for _ in range(rng.randrange(4))]
    return old, "".join(parts)


def test_random_pairs():
    """With Unicode and all line ends."""
    for seed in range(CASES):
        old, new = random_pair(random.Random(seed))
        hunks = minimal_hunks(old, new)
        assert apply_hunks(old, hunks) == new, f"seed {seed}"
        for left, right in itertools.pairwise(hunks):
            assert left.end < right.start, f"seed {seed}"
        for hunk in hunks:
            assert old[hunk.start : hunk.end] != hunk.text, f"seed {seed}"
            for place in (hunk.start, hunk.end):
                assert place in (0, len(old)) or old[place - 1 : place + 1] != "\r\n", (
                    f"seed {seed}"
                )


def test_a_changed_word_is_a_hunk_of_that_word():
    old = "def f(host):\n    return host.name\n"
    assert minimal_hunks(old, old.replace("name", "label")) == [TextEdit(29, 33, "label")]


def test_distant_changes_are_separate_hunks():
    old = "one\ntwo\nthree\nfour\n"
    assert minimal_hunks(old, "1\ntwo\nthree\n4\n") == [TextEdit(0, 3, "1"), TextEdit(14, 18, "4")]


def test_equal_texts_need_no_hunk():
    assert minimal_hunks("a\r\nb", "a\r\nb") == []


def test_a_mark_stays_with_its_letter():
    assert minimal_hunks("ae\u0301", "ae\u0300") == [TextEdit(1, 3, "e\u0300")]


def test_a_diff_says_where_the_last_line_has_no_end():
    diff = unified_diff("a\nb", "a\nc", "x.py")
    assert diff.startswith("--- a/x.py\n+++ b/x.py\n")
    assert diff.count("\\ No newline at end of file\n") == 2
    assert unified_diff("a", "a", "x.py") == ""


def test_line_by_line_makes_the_same_text() -> None:
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    words = ["name", "other", " ", "\t", "é", "e\u0301", "=", "\r\n", "\n", "\r"]
    split = 0
    for _ in range(2000):
        old = "".join(rng.choices(words, k=rng.randrange(30)))
        new = "".join(rng.choice(words) if rng.random() < 0.1 else piece for piece in old)
        whole = minimal_hunks(old, new.replace("name", "label"))
        hunks = [one for hunk in whole for one in line_by_line(old, hunk)]
        assert apply_hunks(old, hunks) == new.replace("name", "label"), f"seed {seed}"
        split += len(hunks) > len(whole)
    assert split, f"seed {seed}"


def test_a_line_that_keeps_less_than_half_of_itself_is_not_divided() -> None:
    for new, divided in (("x = 1234\ny = 2\n", True), ("x = 1 + f(0, g(1))\ny = 2\n", False)):
        old = "x = 1\ny = 3\n"
        hunk = TextEdit(0, len(old), new)
        assert (len(line_by_line(old, hunk)) == 2) is divided, new
        # The other way round it is the old line that keeps little.
        assert (len(line_by_line(new, TextEdit(0, len(new), old))) == 2) is divided, new


def test_a_diff_is_the_one_of_difflib() -> None:
    rng = random.Random(seed := random.randrange(1 << 30))
    print("seed", seed)
    lines = ["a\n", "b\n", "\n", "c\r\n", "d\r", "e\n", "f\n", "g\n"]
    for _ in range(2000):
        old = "".join(rng.choice(lines) for _ in range(rng.randrange(30)))
        parts = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", old)
        for _ in range(rng.randrange(4)):
            at = rng.randrange(len(parts) + 1)
            parts[at : at + rng.randrange(3)] = rng.choices(lines, k=rng.randrange(3))
        new = "".join(parts) + rng.choice(["", "", "end"])
        before, after = (
            re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text) for text in (old, new)
        )
        expected = "".join(
            (line if line.endswith("\n") else f"{line}\n")
            + ("" if line.endswith(("\n", "\r")) else "\\ No newline at end of file\n")
            for line in difflib.unified_diff(before, after, "a/x", "b/x")
        )
        assert unified_diff(old, new, "x") == expected
