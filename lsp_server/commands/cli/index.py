"""``redraft index``: build or refresh the datastore of a workspace, or say why a file is in it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Container
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.commands.cli.progress import index_progress
from lsp_server.commands.cli.terminal import terminal
from lsp_server.engine.workspaces import text_tokenizer
from lsp_server.models.used import WRITTEN_MODEL, command_model
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import say
from repo_index.datastore import Datastore
from repo_index.errors import StoreLocked
from repo_index.files import Limits
from repo_index.indexer import Indexer, explain
from repo_index.source_tree import FolderTree
from repo_index.store import workspace_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="workspace to index")
    parser.add_argument("--model", help=f"the model whose tokenizer to use: {WRITTEN_MODEL}")
    parser.add_argument(
        "--store", type=Path, help="where to store it; default: with the user's data"
    )
    parser.add_argument("--rebuild", action="store_true", help="index all files again")
    parser.add_argument(
        "--max-file-bytes", type=int, default=Limits.bytes, help="larger files are left out"
    )
    parser.add_argument(
        "--explain",
        metavar="PATH",
        action="append",
        help="only say why a file is in the index or not",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Bring the datastore up to date with the files and print what it holds."""
    folder = args.folder.resolve()
    if not folder.is_dir():
        raise RedraftError(f"{args.folder} is not a folder; give the folder of a workspace")
    tokenizer = text_tokenizer(command_model(args.model))
    store = args.store or workspace_store(folder, tokenizer.sha256)
    tree = FolderTree(folder, Limits(bytes=args.max_file_bytes))
    try:
        indexer = Indexer(tree, store, tokenizer, workspace=str(folder))
    except StoreLocked:
        indexed = Datastore(store, tokenizer.sha256).repository_files()
        return (
            _explain(args, tree, indexed) if args.explain else _show_indexed(args, store, indexed)
        )
    try:
        if args.explain:
            indexed = Datastore(indexer.folder, tokenizer.sha256).repository_files()
            return _explain(args, tree, indexed)
        return _index(args, indexer)
    finally:
        indexer.close()


def _show_indexed(args: argparse.Namespace, store: Path, indexed: dict[str, int]) -> int:
    """A running server holds the store, and follows every change: there is nothing to do."""
    document = {
        "folder": str(store),
        "files": len(indexed),
        "tokens": sum(indexed.values()),
        "kept_by_a_running_server": True,
    }
    if args.json:
        write_json(args.json, document)
    else:
        say(f"{document['files']} files, {document['tokens']} tokens in {store}")
        say("a running server keeps this index current", file=sys.stderr)
    return 0


def _explain(args: argparse.Namespace, tree: FolderTree, indexed: Container[str]) -> int:
    lines = [explain(tree, _inside(tree.root, path), indexed) for path in args.explain]
    if args.json:
        write_json(args.json, dict(zip(args.explain, lines, strict=True)))
    else:
        say("\n".join(lines))
    return 0


def _inside(folder: Path, path: str) -> str:
    if not os.path.isabs(path) and os.path.lexists(folder / path):
        return path.replace(os.sep, "/")
    # Not resolved, so that a link is explained and not what it points to.
    relative = os.path.relpath(os.path.abspath(path), folder)
    return relative.replace(os.sep, "/")


def _index(args: argparse.Namespace, indexer: Indexer) -> int:
    console = terminal(stderr=True)
    for damage in indexer.damage:
        console.print(damage, style="yellow")
    started = time.perf_counter()
    with index_progress(console, "indexing") as report:
        work = indexer.rebuild if args.rebuild else indexer.refresh
        done = work(progress=report)
    with console.status("merging"):
        indexer.merge()
    seconds = time.perf_counter() - started
    status = indexer.status()
    document: dict[str, Any] = {
        **asdict(status),
        "indexed": len(done.indexed),
        "removed": len(done.removed),
        "unreadable": done.unreadable,
        "new_tokens": done.tokens,
        "seconds": seconds,
    }
    if args.json:
        write_json(args.json, document)
        return 0
    say(
        f"{status.files} files, {status.tokens} tokens, {status.bytes / 1e6:.1f} MB in "
        f"{status.folder}\n{len(done.indexed)} files new or changed, {len(done.removed)} gone, "
        f"{status.excluded} left out for what they hold, {seconds:.2f} s"
    )
    for note in (status.problem, *(f"cannot be read: {path}" for path in done.unreadable)):
        if note:
            console.print(note, style="yellow", highlight=False)
    return 0
