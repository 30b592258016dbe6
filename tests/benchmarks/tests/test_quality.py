"""`tests.benchmarks quality` on a few cases of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_model import SMALL_MODEL

from tests.benchmarks.__main__ import main
from tests.benchmarks.completion.quality import table_of
from tests.benchmarks.pass_at_1 import infilling_tests, passes

PREFIX = "def double(values):\n    total = []\n    for value in values:\n"
LINE = "        total.append(2 * value)\n"
SUFFIX = "    return total\n"
CHECK = "def check(candidate):\n    assert candidate([1, 2]) == [2, 4]\n"


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    case = {
        "id": "one",
        "path": "double.py",
        "prefix": PREFIX,
        "suffix": SUFFIX,
        "reference": LINE,
    }
    infilling = case | {"test": CHECK, "entry_point": "double"}
    (folder / "completion_infilling.jsonl").write_text(json.dumps(infilling) + "\n")
    (folder / "completion_repoeval.jsonl").write_text(json.dumps(case) + "\n")
    return folder


def test_a_program_passes_with_the_right_line_alone(cases: Path) -> None:
    tests = infilling_tests(cases / "completion_infilling.jsonl")["one"]
    assert passes(PREFIX + LINE + SUFFIX, tests)
    assert not passes(PREFIX + "        total.append(value)\n" + SUFFIX, tests)


def test_every_figure_is_there(cases: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(SMALL_MODEL)
    assert main(["quality", "--model", model, "--cases", str(cases), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["infilling_served"]["total"] == found["infilling_pass_at_1"]["total"] == 1
    assert found["infilling_pass_at_1"]["right"] >= found["infilling_served"]["right"]
    assert 0 <= found["repoeval_similarity"] <= 1
    names = list(table_of(found).columns[0].cells)
    assert "single-line infilling, pass@1" in names
