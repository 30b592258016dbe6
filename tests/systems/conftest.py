"""Other systems than this one, as far as our code can see."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_systems import FakeWindows, become_macos


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeWindows:
    """This process runs on Windows."""
    _only_on_linux()
    return FakeWindows(monkeypatch, tmp_path)


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This process runs on macOS."""
    _only_on_linux()
    become_macos(monkeypatch, tmp_path)


def _only_on_linux() -> None:
    if sys.platform != "linux":
        pytest.skip("other systems are played on Linux")
