"""``redraft serve``: speaks LSP on stdin and stdout."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument(
        "--in-process",
        action="store_true",
        help="run everything in this process instead of the shared daemon, for debugging",
    )
    parser.add_argument(
        "--stdio", action="store_true", help="speak on stdin and stdout (always on)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until the editor ends."""
    if args.in_process:
        from lsp_server.daemon.in_process import serve_in_process

        return serve_in_process()
    from lsp_server.daemon.front import serve

    return serve()
