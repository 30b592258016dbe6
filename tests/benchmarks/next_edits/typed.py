"""``typed-changes``: changes typed key by key and carried on by Tab alone, without a model.

Files of cases are written as ``tests/data/fresh_changes.txt`` is.
"""

from __future__ import annotations

import argparse
import difflib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.next_edit_cases import read_cases
from tests.server.editor.next_edits.typist import carried_on

Files = dict[str, str]
OUTCOMES = ("complete", "part", "nothing", "wrong")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("files", type=Path, nargs="+", help="files of cases")
    parser.add_argument("--language", default="", help="of the cases that are run; default all")
    parser.add_argument("--show", action="store_true", help="what differs from what is wanted")


def run(args: argparse.Namespace) -> int:
    """Print the outcome of each case, and how many have each; 1 where a case is wrong."""
    outcomes: Counter[str] = Counter()
    for case in (case for file in args.files for case in read_cases(file)):
        if args.language in ("", case.language):
            with TemporaryDirectory() as folder:
                files = carried_on(case, Path(folder))
            outcome = case.outcome(files)
            outcomes[outcome] += 1
            print(f"{outcome:10}{case}", flush=True)
            if args.show:
                print("".join(_differences(case.wanted, files)), end="")
    print(", ".join(f"{outcomes[each]} {each}" for each in OUTCOMES), f"of {outcomes.total()}")
    return int(outcomes["wrong"] > 0)


def _differences(wanted: Files, files: Files) -> list[str]:
    """Return the lines of a diff from ``wanted`` to ``files``."""
    return [
        f"    {line}\n"
        for path, text in wanted.items()
        for line in difflib.unified_diff(
            text.split("\n"), files[path].split("\n"), path, path, n=0, lineterm=""
        )
        if not line.startswith("@@")
    ]
