"""What serves needs nothing of ``accel.training``: a copy without it completes and edits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .client import REPOSITORY, Driver, inline, profile

GONE = "raise ModuleNotFoundError(\"No module named 'accel.training'\")\n"
TEXT = "def total(values):\n    result = 0\n    for value in values:\n        result += "


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The three packages without ``accel/training``. What is left is linked, compiled code, too."""
    root = tmp_path / "copy"
    (root / "accel").mkdir(parents=True)
    for package in ("lsp_server", "repo_index"):
        (root / package).symlink_to(REPOSITORY / package)
    for part in (REPOSITORY / "accel").iterdir():
        if part.name != "training":
            (root / "accel" / part.name).symlink_to(part)
    # Where the project is installed for development, Python would look for it there.
    (root / "accel" / "training").mkdir()
    (root / "accel" / "training" / "__init__.py").write_text(GONE)
    return root


@pytest.mark.timeout(300)
def test_the_server_completes_without_training(
    copy: Path, environment: dict[str, str], first: Callable[..., Driver], workspace: Path
) -> None:
    alone = {**environment, "PYTHONPATH": str(copy)}
    looked = subprocess.run(
        [sys.executable, "-c", "import accel; print(accel.__file__); import accel.training"],
        env=alone,
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert looked.stdout.startswith(str(copy)), "the copy is what is imported"
    assert "No module named 'accel.training'" in looked.stderr
    driver = Driver(alone, ("--in-process",), cwd=copy)
    try:
        driver.initialize(profile("vscode"), workspace)
        driver.wait_for_state("ready", timeout=240)
        uri = (workspace / "total.py").as_uri()
        driver.open(uri, TEXT)
        asked = inline(uri, 3, len("        result += "))
        result = driver.request("textDocument/inlineCompletion", asked)
        assert result["items"][0]["insertText"]
    finally:
        driver.kill()
