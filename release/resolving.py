"""Resolves what Redraft needs for each Python and system that is promised, from wheels alone.

Where versions are pinned those must do, else any in range.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEWEST = 14
"""The newest Python 3 that is promised."""
PINNED_FROM = 11
"""The oldest for which the pinned versions exist."""
SYSTEMS = (
    *("x86_64-manylinux_2_28", "aarch64-manylinux_2_28"),
    *("aarch64-apple-darwin", "x86_64-pc-windows-msvc"),
)
_AT_ONCE = 5
"""Resolutions mostly wait for the package index."""


def promised_pythons(project: Path = ROOT) -> list[int]:
    """The minor versions of Python 3, from the one that ``requires-python`` names."""
    text = (project / "pyproject.toml").read_text("utf-8")
    (oldest,) = re.findall(r'^requires-python = ">=3\.(\d+)"$', text, re.MULTILINE)
    return [*range(int(oldest), NEWEST + 1)]


def resolve(project: Path = ROOT, systems: Sequence[str] = SYSTEMS) -> list[str]:
    """Return what cannot be installed, a text for each Python and system; empty if all can."""
    cases = [*product(promised_pythons(project), systems)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda case: _problem(project, *case), cases)
        return [
            f"Python 3.{python} on {system}:\n{problem}"
            for (python, system), problem in zip(cases, answers, strict=True)
            if problem
        ]


def _problem(project: Path, python: int, system: str) -> str:
    """Return why the server's requirements cannot be installed there; empty if they can."""
    pins = ["--constraint", "constraints.txt"] if python >= PINNED_FROM else []
    command = [
        *(sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--only-binary", ":all:"),
        # Another than this Python would be looked for on the whole machine.
        *("--python", sys.executable, "--python-version", f"3.{python}"),
        *("--python-platform", system, *pins),
        *("--extra", "server", "pyproject.toml"),
    ]
    # Where a proxy answers in the index's place, the system knows its certificate.
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False
    )
    return (done.stderr.strip() or f"uv ends with {done.returncode}") if done.returncode else ""
