"""A workspace for agents, and a home of the test's own, where locks lie."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_workspace import SHAPES, USES


@pytest.fixture
def workspace(bare_home: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "shapes.py").write_text(SHAPES)
    (folder / "uses.py").write_text(USES)
    return folder
