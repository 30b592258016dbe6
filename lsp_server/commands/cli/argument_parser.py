"""The table of commands. Only the standard library is imported until one is chosen.

Every command is a module with ``add_arguments(parser)`` and ``run(args) -> exit code``, imported
when it is asked for, so that ``redraft serve`` is up before anything heavy is loaded.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lsp_server.shared.network import use_certificates
from lsp_server.shared.printable import in_one_line, say
from lsp_server.shared.user_files.user_folders import replaced_message, settle
from lsp_server.shared.version import VERSION


class Command(NamedTuple):
    """A command, a group of them where ``module`` is empty, or both."""

    module: str
    summary: str
    children: dict[str, Command] = {}  # noqa: RUF012 - never changed


_CLI = "lsp_server.commands.cli"

COMMANDS = {
    name: Command(f"{_CLI}.{name.replace('-', '_')}", summary)
    for name, summary in json.loads(
        Path(__file__).with_name("commands.json").read_text("utf-8")
    ).items()
}
COMMANDS["corpus"] = Command(
    "",
    "the common datastore, shared between workspaces",
    {"build": Command(f"{_CLI}.corpus", "build it from folders or libraries")},
)
COMMANDS["bench"] = Command(
    "lsp_server.commands.bench.page", "how fast your model is on your machine"
)


def _choose(argv: Sequence[str], level: dict[str, Command]) -> tuple[list[str], Command | None]:
    """Return the words at the start of ``argv`` that name a command, and a whole one's command."""
    words: list[str] = []
    command = None
    for word in argv:
        if word not in level:
            break
        command = level[word]
        words.append(word)
        level = command.children
    return words, command if command and command.module else None


def _overview(words: list[str], level: dict[str, Command], program: str) -> argparse.ArgumentParser:
    for word in words:
        level = level[word].children
    parser = argparse.ArgumentParser(
        prog=" ".join([program, *words]),
        description="A local-first language server that completes and edits code, fast.",
    )
    if not words:
        parser.add_argument("--version", action="version", version=f"redraft {VERSION}")
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, command in level.items():
        subparsers.add_parser(name, help=command.summary, add_help=False)
    return parser


def _known_errors() -> tuple[type[Exception], ...]:
    """Errors of the world, which are told in one line. Imported late: only a failure needs them."""
    from accel.errors import AccelError
    from lsp_server.shared.errors import RedraftError
    from repo_index.errors import RepoIndexError

    return (AccelError, RedraftError, RepoIndexError, OSError)


def _without_torch(error: ModuleNotFoundError, command: str) -> int:
    """Say that a command needs the extra; the exit code. Raises ``error`` where another package is
    missing."""
    from accel.models.torch_extra import INSTALL, PACKAGES

    if error.name not in PACKAGES:
        raise error
    say(f"redraft: `{command}` needs {error.name}; {INSTALL}", file=sys.stderr)
    return 1


def _chosen_model() -> str | None:
    """Return the model that the user chose with ``redraft models use``, the default of benches."""
    from lsp_server.models.choices import read_choices

    return read_choices().completion or None


def run_command(
    arguments: Sequence[str], commands: dict[str, Command] = COMMANDS, program: str = "redraft"
) -> int:
    """Run a command; the exit code is 0 only on success, 2 on wrong use, 1 on any other failure.
    ``commands``: all that there are; ``program``: what their usage begins with."""
    if list(arguments) == ["--stdio"]:
        # As copilot-language-server is started.
        arguments = ["serve"]
    words, command = _choose(arguments, commands)
    if not arguments:
        _overview(words, commands, program).print_help()
        return 0
    if command is None:
        _overview(words, commands, program).parse_args(arguments[len(words) :])
        raise AssertionError("an unfinished command was accepted")
    try:
        module = importlib.import_module(command.module)
    except ModuleNotFoundError as error:
        return _without_torch(error, " ".join([program, *words]))
    parser = argparse.ArgumentParser(
        prog=" ".join([program, *words]),
        description=command.summary[0].upper() + command.summary[1:] + ".",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    module.add_arguments(parser)
    try:
        if replaced := settle():
            say(f"redraft: {replaced_message(replaced)}", file=sys.stderr)
        use_certificates()
        args = parser.parse_args(arguments[len(words) :])
        if getattr(args, "model", None) in ("", None) and (
            commands is not COMMANDS or words[0] == "bench"
        ):
            args.model = _chosen_model()
        return int(module.run(args))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output left, as `| head` does; nobody is there to be told.
        sys.stderr.close()
        return 1
    except ModuleNotFoundError as error:
        return _without_torch(error, " ".join([program, *words]))
    except Exception as error:
        if not isinstance(error, _known_errors()):
            raise
        say(f"redraft: {in_one_line(str(error))}", file=sys.stderr)
        return 1
