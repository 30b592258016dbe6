"""``redraft demo``: watch the real server complete and edit code, as an editor drives it."""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from lsp_server.commands.cli.fetch_and_compile import choose_if_none, fetch_and_compile
from lsp_server.commands.cli.progress import shown_progress
from lsp_server.commands.cli.terminal import terminal
from lsp_server.commands.demo import show
from lsp_server.commands.demo.answers import (
    ShownAnswer,
    answer_at,
    daemon_of_its_own,
    session_in,
    wait_until_ready,
)
from lsp_server.commands.demo.places import (
    EditPlace,
    TypingPlace,
    bakery_copy,
    bakery_places,
    places_in,
)
from lsp_server.models.manifest import DEFAULT, find_offered, read_manifest
from lsp_server.shared.errors import RedraftError

NOT_COPIED = (".*", "node_modules", "build", "dist", "__pycache__", "*.safetensors", "*.gguf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        help="your Python code to show it on, which stays as it is; default: a small bakery",
    )
    parser.add_argument("--places", type=int, default=4, help="where to type in your folder")
    parser.add_argument("--edits", type=int, default=6, help="edits in your folder")
    parser.add_argument(
        "--model", default=DEFAULT, help="a folder, GGUF file or id; default is fetched once"
    )
    parser.add_argument("--json", type=Path, help="write the output to this file, too")


def run(args: argparse.Namespace) -> int:
    """Show completions and edits. Raises RedraftError where model or server fail."""
    console = terminal()
    if args.folder is not None and not args.folder.is_dir():
        raise RedraftError(f"{args.folder} is not a folder; name one with Python code")
    model = shown_model(console, args.model)
    with tempfile.TemporaryDirectory(prefix="redraft-demo-", ignore_cleanup_errors=True) as scratch:
        root = Path(scratch) / "workspace"
        if args.folder is None:
            typing, edits = bakery_places(bakery_copy(root))
        else:
            ignored = shutil.ignore_patterns(*NOT_COPIED)
            shutil.copytree(args.folder, root, ignore=ignored, ignore_dangling_symlinks=True)
            typing, edits = places_in(root, args.places, args.edits)
        if not typing and not edits:
            raise RedraftError(f"{args.folder} has no Python function to show; name another folder")
        with daemon_of_its_own(Path(scratch)):
            answers = asyncio.run(_shown(console, root, model, [*typing, *edits]))
    console.print()
    name = args.folder.resolve().name if args.folder else "the bakery"
    console.print(show.summary(name, answers))
    if args.model == DEFAULT:
        console.print(f"The model is here, {model}; {choose_if_none(Path(model))}.", soft_wrap=True)
    if args.json:
        args.json.write_text(json.dumps([asdict(answer) for answer in answers], indent=2), "utf-8")
    return 0


async def _shown(
    console: Console, root: Path, model: str, edits: list[TypingPlace | EditPlace]
) -> list[ShownAnswer]:
    session, answers = session_in(root, model), []
    try:
        with console.status("starting") as status:
            await wait_until_ready(session, status.update)
        console.print(show.legend())
        for edit in edits:
            answers.append(await answer_at(session, edit))
            show.answer(console, answers[-1])
    finally:
        await session.close()
    return answers


def shown_model(console: Console, model_name: str) -> str:
    """Return the path of the model to show. Raises RedraftError."""
    if model_name != DEFAULT:
        return model_name
    with shown_progress(console) as report:
        return str(fetch_and_compile(find_offered(read_manifest(), DEFAULT), report))
