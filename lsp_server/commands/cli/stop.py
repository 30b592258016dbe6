"""``redraft stop``: ends the user's daemon; editors start another when they need one."""

from __future__ import annotations

import argparse

from lsp_server.shared.printable import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""


def run(_: argparse.Namespace) -> int:
    """Stop the daemon; 0 also when none runs."""
    from lsp_server.editor.daemon.control import ask_daemon

    say("no daemon runs" if ask_daemon("stop") is None else "stopped")
    return 0
