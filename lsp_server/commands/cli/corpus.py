"""``redraft corpus build``: the datastore of common code, shared by all workspaces."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path

from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.commands.cli.progress import index_progress
from lsp_server.commands.cli.terminal import terminal
from lsp_server.engine.workspaces import text_tokenizer
from lsp_server.models.used import WRITTEN_MODEL, command_model
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import say
from repo_index.corpus import MAX_TOKENS, Corpus, package_folders, standard_library


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", type=Path, nargs="*", help="folders of code to add")
    parser.add_argument(
        "--stdlib", action="store_true", help="add the standard library of our own interpreter"
    )
    parser.add_argument(
        "--environment",
        metavar="PYTHON",
        type=Path,
        action="append",
        default=[],
        help="add the installed packages of an environment: its folder or its python (never run)",
    )
    parser.add_argument(
        "--all-files", action="store_true", help="all text files, not only Python source"
    )
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help="stop there")
    parser.add_argument("--model", help=f"the model whose tokenizer to use: {WRITTEN_MODEL}")
    parser.add_argument(
        "--store", type=Path, help="where to store it; default: with the user's data"
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Add the folders and print what the datastore holds."""
    folders = [standard_library()] if args.stdlib else []
    for folder in args.folders:
        if not folder.is_dir():
            raise RedraftError(f"{folder} is not a folder; give folders of code")
        folders.append(folder)
    for environment in args.environment:
        packages = package_folders(environment)
        if not packages:
            raise RedraftError(f"{environment} holds no installed packages; give its folder")
        folders += packages
    if not folders:
        raise RedraftError("nothing to add; give folders, --stdlib or --environment")
    tokenizer = text_tokenizer(command_model(args.model))
    corpus = Corpus(folders, endings=() if args.all_files else (".py", ".pyi"))
    console = terminal(stderr=True)
    started = time.perf_counter()
    with index_progress(console, "common code") as report:
        indexer = corpus.build(
            tokenizer, args.store, progress=report, max_tokens=args.max_tokens, threads=2
        )
    status = indexer.status()
    seconds = time.perf_counter() - started
    if args.json:
        write_json(args.json, {**asdict(status), "seconds": seconds})
    else:
        say(
            f"{status.files} files, {status.tokens} tokens, {status.bytes / 1e6:.1f} MB in "
            f"{status.folder}; {seconds:.1f} s"
        )
    return 0
