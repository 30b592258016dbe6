"""Lines of Python by folder, and what a change added: ``python -m tests.lines [COMMIT]``.

Compared with the commit where the branch left main; on main itself with the one before.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("accel", "lsp_server", "operating_system", "repo_index")
WHOLE = {True: "the product", False: "tests and laboratory"}
BUDGETS = {WHOLE[True]: 67_500, WHOLE[False]: 77_500}


def git(*arguments: str) -> str:
    """What git prints; nothing where it fails."""
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, text=True, capture_output=True, check=False
    ).stdout.strip()


def lines_by_folder(commit: str = "") -> Counter[str]:
    """Lines of each folder at a commit, or as they lie here, and of product and tests whole."""
    counted = git("grep", "-c", "-e", "", commit or "--untracked", "--", "*.py")
    lines: Counter[str] = Counter()
    for line in counted.removeprefix(f"{commit}:").replace(f"\n{commit}:", "\n").splitlines():
        path, _, number = line.rpartition(":")
        folders = Path(path).parts[:-1]
        if folders and folders[0] in (*PRODUCT, "tests"):
            lines["/".join(folders[:2])] += int(number)
            lines[WHOLE[folders[0] in PRODUCT]] += int(number)
    return lines


def where_main_was() -> str:
    """The commit that a change is compared with."""
    head, changed = git("rev-parse", "HEAD"), git("status", "--porcelain")
    for main in ("origin/main", "main"):
        base = git("merge-base", "HEAD", main)
        if base and (base != head or changed):
            return base
    return git("rev-parse", "HEAD~1")


def main(commit: str) -> None:
    """Print the table."""
    before, now = lines_by_folder(commit), lines_by_folder()
    for folder in sorted(before.keys() | now.keys(), key=lambda name: (name in BUDGETS, name)):
        change = now[folder] - before[folder]
        budget = BUDGETS.get(folder, now[folder])
        over = f"  {now[folder] - budget:,} over its budget" if now[folder] > budget else ""
        changed = f"{change:+,}" if change else ""
        print(f"{folder:32}{now[folder]:8,}{changed:>8}{over}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else where_main_was())
