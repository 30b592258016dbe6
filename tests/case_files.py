"""The cases that figures are measured on; they lie outside of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FOLDER = Path(
    os.environ.get("REDRAFT_CASES", Path(__file__).parents[2] / "shared" / "cases")
).resolve()


def find(name: str) -> Path:
    """The file of that name. The test is skipped, with the reason, where there is none."""
    file = FOLDER / name
    if not file.is_file():
        pytest.skip(f"no {name} in {FOLDER}; name a folder of measuring cases in REDRAFT_CASES")
    return file
