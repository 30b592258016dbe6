"""``redraft serve``: speaks LSP on stdin and stdout."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stdio", action="store_true", help="speak on stdin and stdout (always on)"
    )


def run(_args: argparse.Namespace) -> int:
    """Serve until the editor ends."""
    from lsp_server.editor.daemon.front import serve

    return serve()
