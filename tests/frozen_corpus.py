"""Code to test on that does not change with the project: ``tests/data/corpus``."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "data" / "corpus"
PACKAGES = ("library", "harbour")


def files(package: str = "") -> list[Path]:
    """Files of one package, or of all, by name."""
    return sorted((FOLDER / package).rglob("*.py"))


def texts(package: str = "") -> list[str]:
    """What stands in them."""
    return [file.read_text(encoding="utf-8") for file in files(package)]
