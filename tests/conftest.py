"""Order of the suite: quick tests first, those that drive real processes last."""

from __future__ import annotations

from pathlib import Path

import pytest

LAST = ("e2e", "editors")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: any(name in Path(item.path).parts for name in LAST))
