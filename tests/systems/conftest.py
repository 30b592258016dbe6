"""Other systems than this one, as far as our code can see."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_systems import FakeWindows, become_macos

from operating_system.macos import performance_cores
from operating_system.system import is_translated


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeWindows]:
    """This process runs on Windows."""
    _only_on_linux()
    is_translated.cache_clear()
    yield FakeWindows(monkeypatch, tmp_path)
    is_translated.cache_clear()


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """This process runs on macOS."""
    _only_on_linux()
    become_macos(monkeypatch, tmp_path)
    yield
    performance_cores.cache_clear()
    is_translated.cache_clear()


def _only_on_linux() -> None:
    if sys.platform != "linux":
        pytest.skip("other systems are played on Linux")
