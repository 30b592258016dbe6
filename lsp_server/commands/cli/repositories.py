"""``redraft repositories``: the copies of your workspaces on a team's server."""

from __future__ import annotations

import argparse
import asyncio
import os
from datetime import datetime, timezone
from typing import Any

from rich.table import Table

from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.commands.cli.terminal import terminal
from lsp_server.editor.daemon.server_environment import VARIABLES
from lsp_server.editor.remote.address import ServerAddress
from lsp_server.editor.remote.connection import ServerConnection
from lsp_server.editor.remote.sharing.sharing_answers import SharingAnswers, answers_file
from lsp_server.shared.contract.server_routes import REPOSITORIES
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server",
        default=os.environ.get(VARIABLES["url"], ""),
        help=f"the server's address; the key comes from {VARIABLES['key']}",
    )
    add_json_argument(parser)
    actions = parser.add_subparsers(dest="action", metavar="list | delete")
    actions.add_parser("list", help="list yours")
    delete = actions.add_parser("delete", help="delete one, and all that was made of it")
    delete.add_argument("id")


def run(args: argparse.Namespace) -> int:
    """Ask the server. Raises RedraftError."""
    if not args.server:
        raise RedraftError(f"no server is named; give --server or set {VARIABLES['url']}")
    address = ServerAddress.of(args.server)
    answer = asyncio.run(_request(address, args))
    if args.json:
        write_json(args.json, answer)
    elif args.action == "delete":
        say(f"deleted {args.id}")
    else:
        _show(answer["repositories"])
    return 0


async def _request(address: ServerAddress, args: argparse.Namespace) -> dict[str, Any]:
    connection = ServerConnection(address, os.environ.get(VARIABLES["key"], ""))
    try:
        if args.action == "delete":
            answer = await _answer(connection, "DELETE", f"{REPOSITORIES}/{args.id}")
            # Its workspace is not sent again: a daemon that runs finds the repository gone.
            SharingAnswers(answers_file()).refuse_repository(address.url, args.id)
            return answer
        return await _answer(connection, "GET", REPOSITORIES)
    finally:
        await connection.close()


async def _answer(connection: ServerConnection, method: str, path: str) -> dict[str, Any]:
    status, answer = await connection.ask(method, path)
    if not 200 <= status < 300:
        error = answer.get("error")
        raise RedraftError(
            str(error["message"]) if isinstance(error, dict) else "the server keeps no repositories"
        )
    return answer


def _show(repositories: list[dict[str, Any]]) -> None:
    table = Table("id", "name", "files", "MB", "used", box=None)
    for one in repositories:
        used = datetime.fromtimestamp(one["used"], timezone.utc).date().isoformat()
        size = f"{one['bytes'] / 1e6:.1f}"
        table.add_row(one["id"], one["name"], str(one["files"]), size, used)
    terminal().print(table)
