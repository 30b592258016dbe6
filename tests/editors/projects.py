"""Small projects for the editors to open."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data" / "projects"
SHAPES, ORDERS, FILES = (
    (DATA / f"{name}.txt").read_text("utf-8") for name in ("shapes", "orders", "files")
)


def make_project(folder: Path) -> Path:
    """A folder with a repository's mark and one module: nothing else can come into a prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "orders.py").write_text(ORDERS, encoding="utf-8")
    return folder
