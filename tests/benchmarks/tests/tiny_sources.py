"""Sources for a training that is small enough for a test."""

from __future__ import annotations

from pathlib import Path


def sources(folder: Path) -> Path:
    """Three files of small functions."""
    folder.mkdir()
    for name in ("one", "two", "three"):
        lines = [f"def {name}_{n}(value):\n    return value + {n}\n\n" for n in range(90)]
        (folder / f"{name}.py").write_text("".join(lines))
    return folder
