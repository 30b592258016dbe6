"""The commands ``build``, ``compile``, ``first-start``, ``resolve`` and ``check``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from release.artifacts import build
from release.checking import check
from release.first_start import first_start
from release.machine_code import add_machine_code
from release.resolving import resolve


def main() -> None:
    """Run one of them."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    builder = commands.add_parser("build", help="build what is released")
    builder.add_argument("folder", type=Path)
    builder.add_argument(
        "--levels",
        help="of instructions that the wheel brings code for: avx2,avx512-vnni; default: all",
    )
    compiler = commands.add_parser(
        "compile", help="compile a wheel by this Python, and add that to what is in it"
    )
    compiler.add_argument("wheel", type=Path)
    compiler.add_argument("--keep", type=Path, default=Path("build/machine-code"))
    starter = commands.add_parser("first-start", help="time a first start from a wheel")
    starter.add_argument("wheel", type=Path)
    starter.add_argument("--model", type=Path, required=True)
    commands.add_parser("resolve", help="whether what is needed exists for each promised Python")
    checker = commands.add_parser(
        "check", help="install each file into an empty environment, and ask for a suggestion"
    )
    checker.add_argument("folder", type=Path)
    checker.add_argument("--model", type=Path, required=True, help="what completes")
    checker.add_argument("--neovim", type=Path, help="a Neovim of 0.10 or newer")
    args = parser.parse_args()
    if args.command == "build":
        levels = None if args.levels is None else [*filter(None, args.levels.split(","))]
        build(args.folder, levels=levels)
    elif args.command == "compile":
        add_machine_code(args.wheel, args.keep)
    elif args.command == "first-start":
        first_start(args.wheel, args.model.resolve())
    elif args.command == "resolve":
        sys.exit("\n".join(resolve()) or None)
    else:
        check(args.folder, args.model.resolve(), args.neovim)


if __name__ == "__main__":
    main()
