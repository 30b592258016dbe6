"""Lines of Python by folder, and the ceilings of the product: ``python -m tests.lines [COMMIT]``.

The table compares with COMMIT: by default where the branch left main, on main the commit before.
The program fails where a figure is above its ceiling in ``tests/data/ceilings.json``, or a ceiling
above one that the file had in an earlier commit. ``--lower`` lowers the ceilings to what is here.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.words import stumbling_shares

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("accel", "lsp_server", "operating_system", "repo_index")
TOTALS = {True: "the product", False: "tests and laboratory"}
CEILINGS = "tests/data/ceilings.json"
Figures = dict[str, float]


def git(*arguments: str) -> str:
    """Return what git prints, or nothing if it fails."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=False
    ).stdout.strip()


def lines_by_folder(commit: str = "") -> Counter[str]:
    """Return the lines of each folder, of the product and of the tests, at ``commit`` or here."""
    counted = git("grep", "-c", "-e", "", commit or "--untracked", "--", "*.py")
    lines: Counter[str] = Counter()
    for line in counted.removeprefix(f"{commit}:").replace(f"\n{commit}:", "\n").splitlines():
        path, _, number = line.rpartition(":")
        folders = Path(path).parts[:-1]
        if folders and folders[0] in (*PRODUCT, "tests"):
            lines["/".join(folders[:2])] += int(number)
            lines[TOTALS[folders[0] in PRODUCT]] += int(number)
    return lines


def product_figures() -> Figures:
    """Return what has a ceiling: lines of the product, and its shares of words in percent."""
    files = [file for folder in PRODUCT for file in (ROOT / folder).rglob("*.py")]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
    return {"lines": float(lines), **stumbling_shares(files)}


def ceilings_before() -> list[Figures]:
    """Return the ceilings of each commit that changed them, none outside a repository."""
    commits = git("log", "--format=%H", "--", CEILINGS).split()
    texts = (git("show", f"{commit}:{CEILINGS}") for commit in commits)
    return [json.loads(text) for text in texts if text]


def faults(figures: Figures, ceilings: Figures, before: Iterable[Figures]) -> list[str]:
    """Return a line for each figure above its ceiling and for each ceiling that rose or went."""
    above = [
        f"{name}: {figures[name]:,.10g} is above the ceiling of {ceiling:,.10g}"
        for name, ceiling in ceilings.items()
        if figures[name] > ceiling
    ]
    lowest: Figures = {}
    for earlier in before:
        for name, ceiling in earlier.items():
            lowest[name] = min(ceiling, lowest.get(name, math.inf))
    risen = [
        f"{name}: the ceiling was {ceiling:,.10g} before, and may only fall"
        for name, ceiling in lowest.items()
        if ceilings.get(name, math.inf) > ceiling
    ]
    return above + risen


def lowered(figures: Figures, ceilings: Figures) -> Figures:
    """Return ``ceilings`` without the room above ``figures``, shares to the next hundredth."""
    return {
        name: min(ceiling, math.ceil(figures[name] * 100) / 100)
        for name, ceiling in ceilings.items()
    }


def commit_to_compare() -> str:
    """Return the commit that a change is compared with."""
    head, changed = git("rev-parse", "HEAD"), git("status", "--porcelain")
    for main_branch in ("origin/main", "main"):
        base = git("merge-base", "HEAD", main_branch)
        if base and (base != head or changed):
            return base
    return git("rev-parse", "HEAD~1")


def print_table(commit: str) -> None:
    """Print the lines of each folder and their change since ``commit``."""
    before, now = lines_by_folder(commit), lines_by_folder()
    last = set(TOTALS.values())
    for folder in sorted(before.keys() | now.keys(), key=lambda name: (name in last, name)):
        change = now[folder] - before[folder]
        print(f"{folder:32}{now[folder]:8,}{f'{change:+,}' if change else '':>8}")


def main(arguments: list[str]) -> int:
    """Print lines, shares and faults, or lower the ceilings; return the exit status."""
    file = ROOT / CEILINGS
    ceilings: Figures = json.loads(file.read_text(encoding="utf-8"))
    figures = product_figures()
    if arguments == ["--lower"]:
        ceilings = lowered(figures, ceilings)
        file.write_text(json.dumps(ceilings, indent=2) + "\n", encoding="utf-8")
    else:
        print_table(arguments[0] if arguments else commit_to_compare())
    for name, ceiling in ceilings.items():
        print(f"{name:32}{round(figures[name], 2):8,.10g}   ceiling {ceiling:,.10g}")
    wrong = faults(figures, ceilings, ceilings_before())
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
