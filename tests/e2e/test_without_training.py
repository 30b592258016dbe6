"""What serves needs nothing of ``accel.training``: a copy without it completes and edits."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from python_environments import REPOSITORY, python_environment

from .client import PYTHON, Driver, command, inline, private_environment, profile

GONE = "raise ModuleNotFoundError(\"No module named 'accel.training'\")\n"
TEXT = "def total(values):\n    result = 0\n    for value in values:\n        result += "
LOOK = """
import subprocess
from accel.python_process import python_command
ran = subprocess.run(python_command("accel.training.adapter", "--help"), capture_output=True)
print(python_command("x")[-3:])
print(ran.stderr.decode())
"""
"""Runs a module of training as every process of ours is run."""


def copy_without(part: str, root: Path) -> Path:
    """The packages without a folder of ``accel``. What is left is linked, compiled code,
    too."""
    (root / "accel").mkdir(parents=True)
    for package in ("lsp_server", "operating_system", "repo_index"):
        (root / package).symlink_to(REPOSITORY / package)
    for each in (REPOSITORY / "accel").iterdir():
        if each.name != part:
            (root / "accel" / each.name).symlink_to(each)
    # Where the project is installed for development, Python would look for it there.
    (root / "accel" / part).mkdir()
    (root / "accel" / part / "__init__.py").write_text(GONE.replace("training", part))
    return root


def alone(environment: dict[str, str], root: Path) -> dict[str, str]:
    """An environment in which every process takes our packages from a copy."""
    python = python_environment(root / "python", root)
    return {**environment, PYTHON: str(python)}


@pytest.mark.timeout(300)
def test_the_server_completes_without_training(
    environment: dict[str, str], first: Callable[..., Driver], workspace: Path, tmp_path: Path
) -> None:
    copy = copy_without("training", tmp_path / "copy")
    made = alone(environment, copy)
    looked = subprocess.run(
        [made[PYTHON], "-c", LOOK], env=made, cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert str(copy) in looked.stdout, "the copy is what is imported"
    assert "No module named 'accel.training'" in looked.stdout
    # The daemon of the other tests indexes its workspace.
    own = Path(shutil.copytree(workspace, tmp_path / "workspace"))
    driver = Driver(made, cwd=tmp_path)
    try:
        driver.initialize(profile("vscode"), own)
        driver.wait_for_state("ready", timeout=240)
        uri = (own / "total.py").as_uri()
        driver.open(uri, TEXT)
        asked = inline(uri, 3, len("        result += "))
        result = driver.request("textDocument/inlineCompletion", asked)
        assert result["items"][0]["insertText"]
    finally:
        driver.kill()
        command(made, "stop")


@pytest.mark.timeout(300)
def test_without_something_that_serves_nothing_is_completed(tmp_path: Path) -> None:
    copy = copy_without("verification", tmp_path / "copy")
    made = alone(private_environment(tmp_path), copy)
    text = tmp_path / "total.py"
    text.write_text(TEXT)
    failed = command(made, "complete", str(text), "--line", "3", "--character", "18")
    assert failed.returncode == 1
    assert "No module named 'accel.verification'" in failed.stderr
