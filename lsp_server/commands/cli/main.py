"""The one command: ``redraft COMMAND``. Imports nothing more until it runs isolated."""

import sys


def main(argv: list[str] | None = None) -> int:
    """Run a command, by default that of the command line; its exit code. The command line's runs
    isolated (:mod:`accel.native.python_process`), here and in all its children."""
    if argv is None:
        from accel.native.python_process import become_isolated

        argv = sys.argv[1:]
        become_isolated("lsp_server", argv)
    try:
        from lsp_server.commands.cli.argument_parser import run_command

        return run_command(argv)
    except KeyboardInterrupt:
        # While modules were loaded.
        return 130
