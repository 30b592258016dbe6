"""Three small cases with a repository, as the benches read them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from text_cases import data_beside

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tests" / "decoding"))
sys.path.insert(0, str(ROOT))

from tests.decoding.conftest import engine, folder  # noqa: E402, F401

DATA = data_beside(__file__)

HELPERS = DATA["HELPERS"]
SHAPES = DATA["SHAPES"]
CASES = [
    {
        "id": "clamp",
        "repo": "repos/shapes.jsonl",
        "path": "helpers.py",
        "prefix": HELPERS[: HELPERS.index("    if value < low")],
        "reference": "    if value < low:\n        return low\n    if value > high:\n"
        "        return high\n    return value\n",
        "suffix": HELPERS[HELPERS.index("\n\ndef clamp_all") :],
    },
    {
        "id": "rectangle",
        "repo": "repos/shapes.jsonl",
        "path": "rectangle.py",
        "prefix": "from shapes import Shape\n\n\nclass Rectangle(Shape):\n",
        "reference": "    def __init__(self, width, height):\n        self.width = width\n"
        "        self.height = height\n\n    def area(self):\n"
        "        return self.width * self.height\n",
        "suffix": "",
    },
    {
        "id": "alone",
        "path": "solution.py",
        "prefix": "def add(first, second):\n",
        "reference": "    return first + second\n",
    },
]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A case file whose first two cases have a repository and whose third has none."""
    (tmp_path / "repos").mkdir()
    files = [{"path": "helpers.py", "content": HELPERS}, {"path": "shapes.py", "content": SHAPES}]
    rows = "".join(json.dumps(row) + "\n" for row in files)
    (tmp_path / "repos" / "shapes.jsonl").write_text(rows, "utf-8")
    file = tmp_path / "cases.jsonl"
    file.write_text("".join(json.dumps(case) + "\n" for case in CASES), "utf-8")
    return file


@pytest.fixture
def common(tmp_path: Path) -> Path:
    """A small folder of common code; one of its modules must never be known."""
    library = tmp_path / "library"
    (library / "click").mkdir(parents=True)
    (library / "geometry.py").write_text(SHAPES.replace("Square", "Rectangle"), "utf-8")
    (library / "click" / "core.py").write_text("secret = 'of a case package'\n", "utf-8")
    return library


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what the benches cache out of the user's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
