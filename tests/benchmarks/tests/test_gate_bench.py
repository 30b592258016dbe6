"""`tests.benchmarks gate`: which places it takes, what counts as right, and how it fits."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from text_cases import data_cases

from lsp_server.tasks.completion.confidence_gate import BetaCalibration, LikelyPiece
from tests.benchmarks.__main__ import main
from tests.benchmarks.completion.gate import (
    JudgedUnit,
    WrittenText,
    figures_of,
    fitted,
    is_right,
    reliability,
    wilson,
)
from tests.benchmarks.completion.places import CodePlace, RepositoryFile, files_of, places_of

FILE = RepositoryFile("one", "one.py", "python", "")
CODE = "".join(
    f'def area_{n}(width, height):\n    """Two lines,\n    of text."""\n'
    f"    area = width * height  # of {n}\n    return round(area)\n\n\ntotal_{n} = area_{n}\n"
    for n in range(12)
)


def a_rest(rest: str, below: str = "\n") -> CodePlace:
    return CodePlace("rest", FILE, "x = ", below, rest)


def test_places_are_parts_of_the_code(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE, "utf-8")
    rng = random.Random(seed := random.randrange(1 << 30))
    places = places_of(list(files_of(tmp_path)), 20, 10, rng)
    assert {place.kind for place in places} == {"rest", "end", "in line"}, f"seed {seed}"
    for place in places:
        assert place.prefix + place.rest + place.suffix == CODE, f"seed {seed}"
        assert "\n" not in place.rest
        if place.kind == "rest":
            assert len(place.rest) >= 3
        else:
            assert place.rest == ""
            assert place.prefix[-4:].isidentifier()
            assert not place.suffix[:1].isalnum()
            assert (place.suffix[:1] == "\n") == (place.kind == "end")
        assert "of text" not in place.prefix.split("\n")[-1]


@data_cases()
def test_what_is_right_to_its_end(shown: str, rest: str, below: str, right: bool) -> None:
    assert is_right(shown, a_rest(rest, below)) == right


def written(place: CodePlace, *parts: tuple[str, float]) -> WrittenText:
    pieces = [LikelyPiece(len(text), math.log(p), math.log(0.01)) for text, p in parts]
    text = "".join(text for text, _ in parts)
    return WrittenText(place, text, [*pieces, LikelyPiece(0, 0.0, math.log(0.9))])


def test_figures_of_a_few_places() -> None:
    nothing = CodePlace("end", FILE, "total", "\n")
    within = CodePlace("in line", FILE, "total", ", 1)\n")
    places = [
        written(a_rest("total"), ("total", 0.95)),
        written(a_rest("total + 1"), ("total", 0.95)),
        written(a_rest("count"), ("total", 0.95)),
        written(a_rest("count"), ("count", 0.05)),
        written(nothing, (" + 1", 0.95)),
        written(within, (" + 1", 0.95)),
    ]
    found = figures_of(places, 0.55)
    assert (found.rests, found.shown) == (4, 0.75)
    assert (found.right, found.whole) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert (found.tabs, found.at_ends, found.in_lines) == (1, 1.0, 0.0)
    assert figures_of(places, 0.0).shown == 1


def test_tabs_are_counted_to_the_end_of_a_line() -> None:
    place = a_rest("total + count(a)")
    one = written(place, ("total", 0.95), (" +", 0.9), (" count", 0.5), ("(a)", 0.9))
    assert one.shown(0.55) == "total"
    assert one.tabs(0.55) == 1
    assert one.tabs(0.3) == 2 or one.shown(0.3) == one.text


def test_the_interval_is_wilsons() -> None:
    assert wilson(75, 100) == pytest.approx((0.657, 0.825), abs=1e-3)
    assert wilson(0, 0) == (0.0, 1.0)


def test_a_fit_finds_the_calibration_that_made_the_examples() -> None:
    truth = BetaCalibration(0.5, 1.0, -0.8, -0.4)
    rng = random.Random(7)  # chance of a false failure: none, the seed is fixed
    examples = []
    for _ in range(20_000):
        joint, length = -rng.expovariate(1.0) - 0.01, rng.randrange(1, 40)
        chance = truth.chance(joint, length)
        examples.append(JudgedUnit("lines", joint, length, chance, rng.random() < chance))
    assert tuple(fitted(examples)) == pytest.approx(tuple(truth), abs=0.2)
    for one in reliability(examples):
        assert one.observed == pytest.approx(one.predicted, abs=0.05)
    assert sum(one.texts for one in reliability(examples)) == len(examples)


def test_the_command_asks_keeps_and_reads_again(tmp_path: Path) -> None:
    code, kept = tmp_path / "code", tmp_path / "kept.jsonl"
    code.mkdir()
    (code / "code.py").write_text(CODE, "utf-8")
    first, again = tmp_path / "first.json", tmp_path / "again.json"
    options = ["--code", str(code), "--rests", "6", "--names", "2", "--written", str(kept)]
    assert main(["gate", *options, "--json", str(first)]) == 0
    assert main(["gate", "--written", str(kept), "--fit", "--json", str(again)]) == 0
    one, other = (json.loads(file.read_text("utf-8")) for file in (first, again))
    assert one["gates"] == other["gates"]
    assert set(one["gates"]) == {"eager", "balanced", "quiet", "off"}
    assert one["places"] == {"rest": 6, "end": 2, "in line": 2}
    assert one["gates"]["quiet"]["shown"] <= one["gates"]["eager"]["shown"]
    assert set(other["fitted"]) == {"lines", "units"}


@pytest.mark.parametrize("wrong", [[], ["--code", "nowhere"], ["--code", ".", "--rests", "-1"]])
def test_options_that_cannot_be(wrong: list[str]) -> None:
    assert main(["gate", *wrong]) != 0
