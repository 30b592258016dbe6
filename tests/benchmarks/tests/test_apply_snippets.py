"""Made snippets of many languages: whatever is applied is right; the makers of snippets."""

from __future__ import annotations

import json
import random
import re
import subprocess
from pathlib import Path

import pytest
from seeds import Amount
from text_cases import data_beside

from lsp_server.tasks.apply.merge import apply_snippet
from lsp_server.tasks.apply.refusals import AmbiguousSnippet
from lsp_server.text.syntax.languages import language_of_path
from lsp_server.text.syntax.tree import SyntaxTree
from tests.benchmarks.__main__ import main
from tests.benchmarks.apply.commit_cases import LEAST_LINES
from tests.benchmarks.apply.snippets import (
    MAKERS,
    MUTATIONS,
    mutated,
    search_and_replace,
    snippet_of,
)

DATA = data_beside(__file__)

FOLDER = Path(__file__).parents[2] / "data" / "languages"
FILES = DATA["FILES"]
"""With what begins a comment."""
CASES = 60
SEEDS = {"Ledger.java": 140627405932, "queue.js": 13694}
"""Of the first case; these two were once wrong."""
MOST_APPLIED = 0.4
"""Of the snippets with three lines of context more than that are applied."""


def edited(rng: random.Random, text: str, name: str) -> str:
    """A text with one or two changes: a name is another, a comment comes, lines go."""
    lines = text.splitlines(keepends=True)
    for _ in range(rng.randrange(1, 3)):
        number = rng.choice([n for n, line in enumerate(lines) if re.search(r"[a-z]{4}", line)])
        kind = rng.randrange(3)
        if kind == 0:
            word = rng.choice(re.findall(r"\w*[a-z]{4}\w*", lines[number]))
            lines[number] = lines[number].replace(word, f"{word}s", 1)
        elif kind == 1:
            indent = lines[number][: len(lines[number]) - len(lines[number].lstrip())]
            close = " -->" if FILES[name] == "<!--" else ""
            lines.insert(number, f"{indent}{FILES[name]} {rng.randrange(90)} of them{close}\n")
        # Not the first ones or the last: that they go is seen by nothing.
        elif 3 <= number < len(lines) - 5:
            del lines[number : number + rng.randrange(1, 3)]
    return "".join(lines)


def parses(text: str, name: str) -> bool:
    tree = SyntaxTree.of(text, language_of_path(name))
    return tree is not None and not tree.has_errors


def changed(rng: random.Random, before: str, name: str) -> str:
    """A change that parses as the text did."""
    while True:
        after = edited(rng, before, name)
        if after != before and parses(after, name) == parses(before, name):
            return after


@pytest.mark.parametrize("name", FILES)
def test_what_is_applied_to_a_file_of_any_language_is_right(name: str, amount: Amount) -> None:
    before = (FOLDER / name).read_text("utf-8")
    # Fixed where there are few, so that no fault of one case in thousands is met by chance.
    cases = amount(CASES, 2_000)
    seed = SEEDS.get(name, 71) if cases == CASES else random.SystemRandom().randrange(1 << 40)
    applied = 0
    for number in range(seed, seed + cases):
        rng = random.Random(number)
        after = changed(rng, before, name)
        wording = rng.choice(list(MAKERS)[:10])
        ends = rng.random() < 0.5
        snippet = snippet_of(before, after, wording, context=3, ends=ends, mark=FILES[name])
        if FILES[name] == "<!--":
            snippet = "".join(
                f"{line} -->\n"
                if line.startswith("<!--") and not line.endswith("-->")
                else f"{line}\n"
                for line in snippet.splitlines()
            )
        try:
            text = apply_snippet(before, snippet, language_of_path(name)).text
        except AmbiguousSnippet:
            continue
        assert text == after, f"seed {number}"
        applied += 1
    assert applied > MOST_APPLIED * cases


BEFORE = DATA["BEFORE"]
AFTER = BEFORE.replace("return 2", "return 3")


def test_a_snippet_has_the_lines_around_a_change_and_the_header_above() -> None:
    given = snippet_of(BEFORE, AFTER, "keep", context=1, ends=True)
    assert given == "# ... keep a as is ...\ndef b():\n    return 3\n"
    assert snippet_of(BEFORE, AFTER, "bare", context=1, ends=False) == "def b():\n    return 3\n"
    assert search_and_replace(BEFORE, AFTER, 1) == [
        ("def b():\n    return 2\n", "def b():\n    return 3\n")
    ]


def test_rules_show_what_has_one_place_alone_and_tell_of_what_goes() -> None:
    after = BEFORE.removesuffix("\n\ndef b():\n    return 2\n")
    assert snippet_of(BEFORE, after, "aiXapply", context=1, ends=True, seed=1) == DATA["REMOVED"]
    after = DATA["REPEATED"].removesuffix("}\n") + "z\n}\n"
    made = snippet_of(DATA["REPEATED"], after, "Morph", context=1, ends=True)
    assert made == DATA["MINIMAL"]


def test_a_commit_of_a_history_is_a_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    own = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    text = "".join(f"var x{number} = {number};\n" for number in range(LEAST_LINES))
    for name, number in (("a.js", 1), ("a.js", 2), ("b.go", 3), ("b.go", 4)):
        (tmp_path / name).write_text(f"{text}{number}\n")
        git("add", ".")
        git(*own, "commit", "-qm", f"change {number}")
    command = ["commit-cases", str(tmp_path / ".git"), "--language", "javascript"]
    assert main(command) == 0
    (case,) = map(json.loads, capsys.readouterr().out.splitlines())
    expected = {"path": "a.js", "before": f"{text}1\n", "after": f"{text}2\n"}
    assert expected.items() <= case.items()
    assert main([*command, "--skip", "1"]) == 0
    assert not capsys.readouterr().out


@pytest.mark.parametrize("kind", MUTATIONS)
def test_a_slip_changes_a_snippet(kind: str) -> None:
    after = BEFORE.replace("x = 1", "x = 2")
    given = snippet_of(BEFORE, after, "existing", context=3, ends=True)
    slips = {mutated(given, BEFORE, kind, seed) for seed in range(9)}
    assert slips - {given}
