"""``redraft keys``: manages who may use the team's server."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lsp_server.commands.cli.serve_http import default_keys_file
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import say
from lsp_server.team.http_server.keys import HashedKey, new_key, read_keys, write_keys


def add_arguments(parser: argparse.ArgumentParser) -> None:
    _add_keys_option(parser, default_keys_file())
    actions = parser.add_subparsers(dest="action", metavar="add | revoke | list", required=True)
    add = actions.add_parser("add", help="make a key, print it once and keep its hash")
    add.add_argument("name", help="the name of the key's owner")
    revoke = actions.add_parser("revoke", help="make every key of a name invalid")
    revoke.add_argument("name")
    listing = actions.add_parser("list", help="print the names")
    for action in (add, revoke, listing):
        # It may come after the action, too; what comes before it counts otherwise.
        _add_keys_option(action, argparse.SUPPRESS)


def _add_keys_option(parser: argparse.ArgumentParser, default: Path | str) -> None:
    parser.add_argument("--keys", type=Path, default=default, help="the file that serve-http reads")


def run(args: argparse.Namespace) -> int:
    """Add, revoke or list. A running server takes the change up. Raises RedraftError, OSError."""
    file: Path = args.keys
    keys = read_keys(file) if args.action != "add" or file.exists() else []
    if args.action == "add":
        key = new_key()
        try:
            hashed = HashedKey.of(key, args.name)
        except ValueError as error:
            raise RedraftError(f"{args.name} cannot have a key: {error}") from None
        write_keys(file, [*keys, hashed])
        say(key)
        say(f"redraft: only its hash is kept, in {file}", file=sys.stderr)
    elif args.action == "revoke":
        others = [hashed for hashed in keys if hashed.holder != args.name]
        if len(others) == len(keys):
            raise RedraftError(f"{args.name} has no key in {file}; see `redraft keys list`")
        write_keys(file, others)
    else:
        for hashed in keys:
            say(hashed.holder)
    return 0
