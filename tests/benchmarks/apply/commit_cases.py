"""``commit-cases``: files of commits before and after, from git directories, as cases of edits."""

from __future__ import annotations

import argparse
import json
import random
import re
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from lsp_server.shared.errors import BenchError
from lsp_server.text.line_diff import opcodes
from lsp_server.text.syntax.languages import language_of_path

LEAST_LINES, MOST_LINES, MOST_CHANGED = 20, 300, 140
"""Of a file before its commit, and of the lines that the commit takes away and adds."""
_MADE = re.compile(r"(?:^|/)(?:dist|build|vendor|generated|node_modules)/|\.min\.|lock")
"""Paths of files that nobody writes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("repositories", type=Path, nargs="+", help="git directories")
    parser.add_argument("--language", required=True, help="as in LSP, such as java")
    parser.add_argument("--each", type=int, default=40, help="so many commits of a repository")
    parser.add_argument("--skip", type=int, default=0, help="so many that others were made of")
    parser.add_argument("--seed", type=int, default=1)


def run(args: argparse.Namespace) -> int:
    """Print the cases, one a line."""
    for repository in args.repositories:
        cases = _cases(repository, args.language, random.Random(args.seed))
        for case in islice(cases, args.skip, args.skip + args.each):
            print(json.dumps(case, ensure_ascii=False))
    return 0


def _cases(repository: Path, language: str, chance: random.Random) -> Iterator[dict[str, str]]:
    """Yield one file of each commit that changes one of ``language``, by chance."""
    form = "--format=%x00%h%x09%cs%x09%s%x09"
    log = _git(repository, "log", "--no-merges", "--diff-filter=M", "--name-only", form)
    commits = log.split("\0")[1:]
    chance.shuffle(commits)
    # A bare directory of a repository is called after its folder.
    name = repository.name if repository.name not in ("repo", ".git") else repository.parent.name
    for commit in commits:
        number, date, subject, paths = commit.split("\t", 3)
        for path in paths.strip().splitlines():
            if language_of_path(path).removesuffix("react") != language or _MADE.search(path):
                continue
            versions = (f"{number}^:{path}", f"{number}:{path}")
            before, after = (_git(repository, "show", version) for version in versions)
            if _is_case(before, after):
                texts = {"path": path, "instruction": subject, "before": before, "after": after}
                yield {"id": f"{name}@{number}", "date": date, **texts}
                break


def _is_case(before: str, after: str) -> bool:
    old, new = before.splitlines(), after.splitlines()
    if not LEAST_LINES <= len(old) <= MOST_LINES or before.split() == after.split():
        return False
    changes = (change for change in opcodes(old, new) if change[0] != "equal")
    return sum(end - start + last - first for _, start, end, first, last in changes) <= MOST_CHANGED


def _git(repository: Path, *arguments: str) -> str:
    command = ["git", f"--git-dir={repository}", *arguments]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        raise BenchError(f"{' '.join(command)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode("utf-8", errors="replace").replace("\r\n", "\n")
