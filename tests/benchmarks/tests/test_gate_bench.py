"""`tests.benchmarks gate`: what a person is shown, counted by hand and by the command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from lsp_server.tasks.completion.gate import LikelyPiece
from tests.benchmarks.__main__ import main
from tests.benchmarks.cases import CompletionCase
from tests.benchmarks.completion.gate import Moment, WrittenText, typed_with

CODE = "total = first + last"
CASE = CompletionCase("one", "one.py", "def f():\n    ", "\n\n", CODE + "\n", None)


class Scripted:
    """Writes the same at every place: the next words, of which it is sure or not."""

    def __init__(self, texts: dict[int, list[tuple[str, float]]]) -> None:
        self._texts = texts
        self.asked: list[int] = []

    def at(self, case: CompletionCase, typed: int, *, whole: bool) -> WrittenText:
        self.asked.append(typed)
        parts = self._texts.get(typed, [])
        pieces = [LikelyPiece(len(text), math.log(chance)) for text, chance in parts]
        text = "".join(text for text, _ in parts)
        ends = [sum(piece.length for piece in pieces[: n + 1]) for n in range(len(pieces))]
        moments = [Moment(float(n + 1), end) for n, end in enumerate(ends)]
        return WrittenText(text, pieces, [*moments, Moment(9.0, len(text))], one_line=True)


def test_every_character_counts_once() -> None:
    texts = {0: [("total", 0.9), (" =", 0.9), (" first", 0.5), (" * last", 0.5)]}
    off = typed_with(Scripted(texts), CASE, 100, 0.0, by_words=False)  # type: ignore[arg-type]
    assert (off.shown, off.wrong) == (len("total = first * last"), len("* last"))
    assert (off.saved, off.suggestions) == (0, 1)
    gated = typed_with(Scripted(texts), CASE, 100, 0.4, by_words=False)  # type: ignore[arg-type]
    # Taken at once: `total = first`; then of the rest, `* last`, it is sure, too.
    assert (gated.shown, gated.wrong) == (len("total = first * last"), len("* last"))
    assert (gated.saved, gated.taken) == (len("total = first") - 1, 1)
    quiet = typed_with(Scripted(texts), CASE, 100, 0.6, by_words=False)  # type: ignore[arg-type]
    assert (quiet.shown, quiet.wrong) == (len("total"), 0)
    assert quiet.ghost_s == [3.0]


def test_who_takes_words_takes_them_as_far_as_they_are_right() -> None:
    texts = {0: [("total = first * last", 0.9)]}
    tally = typed_with(Scripted(texts), CASE, 100, 0.0, by_words=True)  # type: ignore[arg-type]
    assert tally.saved == len("total = first") - 3
    assert tally.taken == 3


def test_the_command_compares_gates(tmp_path: Path) -> None:
    rows = [
        {"id": str(n), "prefix": f"def area_{n}(width, height):\n", "suffix": "\n\n",
         "reference": "    area = width * height\n    return area\n"}
        for n in range(3)
    ]  # fmt: skip
    cases = tmp_path / "completion_infilling.jsonl"
    cases.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    out = tmp_path / "out.json"
    options = ["--cases", str(tmp_path), "--lines", "3", "--bodies", "0", "--characters", "40"]
    assert main(["gate", *options, "--threshold", "0.3", "--json", str(out)]) == 0
    found = json.loads(out.read_text("utf-8"))["taken"]
    assert set(found) == {"whole", "words"}
    for groups in found.values():
        gates = groups["total"]
        assert set(gates) == {"eager", "balanced", "quiet", "off", "0.3"}
        assert gates["quiet"]["shown"] <= gates["eager"]["shown"] <= gates["off"]["shown"]
        assert all(row["wrong"] <= row["shown"] for row in gates.values())
        assert all(row["typed"] == 120 for row in gates.values())


@pytest.mark.parametrize("wrong", [["--lines", "-1"], ["--threshold", "1.5"]])
def test_options_that_cannot_be(wrong: list[str], tmp_path: Path) -> None:
    assert main(["gate", "--cases", str(tmp_path), *wrong]) != 0
