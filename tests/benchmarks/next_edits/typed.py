"""``typed-changes``: changes typed key by key and carried on by Tab alone, without a model.

Files of cases are written as ``tests/data/fresh_changes.txt`` is. Wrong is a change of which a line
that came is not wanted, or one that went is.
"""

from __future__ import annotations

import argparse
import difflib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.next_edit_cases import NextEditCase, read_cases
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
            outcome = outcome_of(case, files)
            outcomes[outcome] += 1
            print(f"{outcome:10}{case}", flush=True)
            if args.show:
                print("".join(_differences(_wanted(case), files)), end="")
    print(", ".join(f"{outcomes[each]} {each}" for each in OUTCOMES), f"of {outcomes.total()}")
    return int(outcomes["wrong"] > 0)


def outcome_of(case: NextEditCase, files: Files) -> str:
    """Return how far ``files`` are what ``case`` wants."""
    wanted, typed = _wanted(case), _typed(case)
    if files == wanted:
        return "complete"
    if files == typed:
        return "nothing"
    for path, text in files.items():
        lines, before, after = (
            Counter(each.split("\n")) for each in (text, typed[path], wanted[path])
        )
        if (lines - before) - after or (before - lines) & (after - lines):
            return "wrong"
    return "part"


def _wanted(case: NextEditCase) -> Files:
    """Return the files that ``case`` wants: those that were typed where nothing may follow."""
    return case.after if case.after is not None else _typed(case)


def _typed(case: NextEditCase) -> Files:
    """Return the files of ``case`` after what is typed, before any Tab."""
    lines = case.before[case.path].split("\n")
    for line, old, new in case.edits:
        lines[line] = lines[line].replace(old, new, 1)
        lines = "\n".join(lines).split("\n")
    return {**case.before, case.path: "\n".join(lines)}


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
