"""RepoCoder's prompt: windows by the obvious definition, comments in their budget, two rounds."""

from __future__ import annotations

import random

import numpy as np
from small_model import SMALL_MODEL

from accel.text.tokenizer import Tokenizer
from lsp_server.shared.contract.jobs import ContextSnippet
from repo_index.datastore import COMMON, NO_FILES_DEAD, REPOSITORY, IndexSnapshot
from repo_index.segment import Segment
from tests.benchmarks.completion.repocoder_prompt import iterated, with_fragments
from tests.benchmarks.completion.similar_windows import STEP_LINES, WINDOW_LINES, SimilarWindows

TOKENIZER = Tokenizer.from_folder(SMALL_MODEL)
NAMES = ("load", "save", "parse", "table", "index", "token", "cache", "draft", "tree", "value")


def written(chance: random.Random, lines: int) -> str:
    return "".join(
        f"{'    ' * chance.randrange(3)}{chance.choice(NAMES)} = {chance.choice(NAMES)}"
        f"({chance.choice(NAMES)}_{chance.randrange(9)})\n"
        for _ in range(lines)
    )


def snapshot_of(files: dict[str, str], dead: str = "", common: str = "x = 1\n") -> IndexSnapshot:
    tokens = {path: TOKENIZER.encode(text) for path, text in files.items()}
    repository = Segment.from_files(tokens)
    gone = np.array([path == dead for path in files], np.bool_)
    shared = Segment.from_files({"common.py": TOKENIZER.encode(common)})
    return IndexSnapshot([(repository, REPOSITORY, gone), (shared, COMMON, NO_FILES_DEAD)])


def finder() -> SimilarWindows:
    return SimilarWindows(TOKENIZER.encode, TOKENIZER.decode, TOKENIZER.byte_table)


def obvious_best(files: dict[str, str], query: str) -> float:
    """Similarity of the best window: lines of text, sets of tokens."""
    asked = set(TOKENIZER.encode("".join(query.splitlines(keepends=True)[-WINDOW_LINES:])).tolist())
    best = 0.0
    for text in files.values():
        lines = text.splitlines(keepends=True)
        for start in range(0, len(lines), STEP_LINES):
            window = set(TOKENIZER.encode("".join(lines[start : start + WINDOW_LINES])).tolist())
            best = max(best, len(asked & window) / len(asked | window))
    return best


def similarity(text: str, query: str) -> float:
    asked = set(TOKENIZER.encode("".join(query.splitlines(keepends=True)[-WINDOW_LINES:])).tolist())
    window = set(TOKENIZER.encode(text).tolist())
    return len(asked & window) / len(asked | window)


def test_the_best_window_is_as_similar_as_the_obvious_search_finds() -> None:
    for seed in range(5):
        chance = random.Random(seed)
        files = {f"{n}.py": written(chance, chance.randrange(5, 120)) for n in range(4)}
        query = written(chance, 25)
        first, *rest = finder().most_similar(snapshot_of(files), query)
        expected = obvious_best(files, query)
        # A window's edges may hold a line break more or less than lines of text.
        assert abs(similarity(first.text, query) - expected) < 0.05, f"seed {seed}"
        assert all(f"\n{each.text}" in f"\n{files[each.path]}" for each in [first, *rest])
        found = [similarity(each.text, query) for each in rest]
        assert all(one <= expected + 0.05 for one in found), f"seed {seed}"


def test_windows_of_one_file_do_not_overlap() -> None:
    text = written(random.Random(1), 60)
    found = finder().most_similar(snapshot_of({"a.py": text}), text)
    places = sorted(text.index(each.text) for each in found)
    ends = [text.index(each.text) + len(each.text) for each in found]
    assert len(found) >= 2
    assert all(end <= start for start, end in zip(places[1:], sorted(ends)[:-1], strict=True))


def test_dead_own_and_common_files_give_no_window() -> None:
    text = written(random.Random(2), 30)
    files = {"dead.py": text, "own.py": text, "other.py": written(random.Random(3), 30)}
    snapshot = snapshot_of(files, dead="dead.py", common=text)
    found = finder().most_similar(snapshot, text, without={"own.py"})
    assert {each.path for each in found} == {"other.py"}
    assert finder().most_similar(snapshot, "") == []


def test_fragments_are_comments_in_their_budget() -> None:
    prefix = "".join(f"line_{n} = {n}\n" for n in range(200)) + "def last():\n    return "
    snippets = [
        ContextSnippet("best.py", "def best():\n    pass"),
        ContextSnippet("huge.py", "x = 1\n" * 5000),
    ]
    text = with_fragments(snippets, prefix, TOKENIZER.encode, TOKENIZER.decode, 400)
    assert len(TOKENIZER.encode(text)) <= 400
    assert "# best.py\n" in text
    assert "# def best():\n#     pass\n" in text
    assert "huge.py" not in text
    assert text.endswith("def last():\n    return ")
    kept = text[text.rindex("#     pass\n") :].splitlines()[2:]
    assert prefix.endswith("\n".join(kept))
    alone = with_fragments([], prefix, TOKENIZER.encode, TOKENIZER.decode, 10_000)
    assert alone == prefix


def test_the_second_round_asks_with_what_was_written() -> None:
    queries: list[str] = []
    prompts: list[str] = []

    def find(query: str) -> list[ContextSnippet]:
        queries.append(query)
        return [ContextSnippet("a.py", f"found_{len(queries)}")]

    def generate(prefix: str) -> str:
        prompts.append(prefix)
        return f"written_{len(prompts)}\n" + "more\n" * 50

    options = {"encode": TOKENIZER.encode, "decode": TOKENIZER.decode, "budget": 500}
    text = iterated(find, generate, "before\n", **options)  # type: ignore[arg-type]
    assert text.startswith("written_2\n")
    assert queries[0] == "before\n"
    assert queries[1].startswith("before\nwritten_1\nmore\n")
    assert queries[1].count("\n") == 1 + STEP_LINES
    assert ["# found_1" in prompts[0], "# found_2" in prompts[1]] == [True, True]
    assert all(prompt.endswith("before\n") for prompt in prompts)
