"""The commands ``build`` and ``check``."""

from __future__ import annotations

import argparse
from pathlib import Path

from release.artifacts import build
from release.checking import check


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="build what is released")
    builder.add_argument("folder", type=Path)
    checker = commands.add_parser(
        "check", help="install each file into an empty environment, and ask for a suggestion"
    )
    checker.add_argument("folder", type=Path)
    checker.add_argument("--model", type=Path, required=True, help="what completes")
    checker.add_argument("--neovim", type=Path, help="a Neovim of 0.10 or newer")
    args = parser.parse_args()
    if args.command == "build":
        build(args.folder)
    else:
        check(args.folder, args.model.resolve(), args.neovim)


if __name__ == "__main__":
    main()
