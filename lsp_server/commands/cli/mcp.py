"""``redraft mcp``: tools for coding agents, over the Model Context Protocol."""

from __future__ import annotations

import argparse
from pathlib import Path

from lsp_server.models.used import WRITTEN_MODEL
from lsp_server.shared.errors import RedraftError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workspace",
        type=Path,
        action="append",
        metavar="DIR",
        help="a folder whose files may be edited, again for another; else the current one",
    )
    parser.add_argument("--model", default="", help=WRITTEN_MODEL)


def run(args: argparse.Namespace) -> int:
    """Serve one client on standard input and output. Raises RedraftError."""
    folders = args.workspace or [Path.cwd()]
    if missing := [folder for folder in folders if not folder.is_dir()]:
        raise RedraftError(f"{missing[0]} is not a folder; give another with --workspace")
    from lsp_server.editor.agents.server import serve
    from lsp_server.shared.processes.log import start_log

    start_log("mcp")
    serve(folders, args.model)
    return 0
