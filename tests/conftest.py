"""Order of the suite: quick tests first, those that drive real processes last.

The tests may import the modules beside this file.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# No choice of the user's counts here.
_CONFIGURATION = tempfile.TemporaryDirectory(prefix="redraft-config-")
os.environ["XDG_CONFIG_HOME"] = _CONFIGURATION.name

LAST = ("e2e", "editors")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: any(name in Path(item.path).parts for name in LAST))
