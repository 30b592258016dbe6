"""``redraft complete``: one completion at a position of a file, for people and scripts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsp_server.commands.cli.model_arguments import add_model_arguments, written
from lsp_server.commands.cli.output import add_json_argument, cost_of, show_notes, write_json
from lsp_server.commands.cli.source_file import read_text, workspace_of
from lsp_server.commands.cli.terminal import terminal, write_result
from lsp_server.editor.notices.status import NO_FILLING
from lsp_server.models.used import command_model
from lsp_server.shared.contract.jobs import CompletionJob, JobResult, Span
from lsp_server.shared.errors import RedraftError
from lsp_server.text.documents.document import Document, with_line_feeds
from lsp_server.text.documents.secret_documents import file_reason

if TYPE_CHECKING:
    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="file to complete")
    parser.add_argument("--line", type=int, required=True, help="line of the cursor, from 1")
    parser.add_argument(
        "--character", type=int, required=True, help="column of the cursor, from 1, in UTF-16 units"
    )
    parser.add_argument("--max-tokens", type=int, default=64, help="stop after this many tokens")
    parser.add_argument("--single-line", action="store_true", help="stop at the line's end")
    add_model_arguments(parser)
    parser.add_argument(
        "--workspace", type=Path, help="folder to index, else the file's repository"
    )
    parser.add_argument("--plain", action="store_true", help="decode without drafts")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Index the workspace, complete, print the text coloured by where it came from."""
    args.model = command_model(args.model)
    path = args.file.resolve()
    workspace = (args.workspace or workspace_of(path)).resolve()
    job = _job(args, path, workspace)
    console = terminal(stderr=True)
    result, status = written(args, job, console)
    if args.json:
        write_json(args.json, report(result))
    else:
        _show(console, result)
        show_notes(console, ["" if status.fills else NO_FILLING, status.notice])
    return 0


def report(result: JobResult) -> dict[str, Any]:
    """Return the JSON form of a result."""
    return {
        "text": result.text,
        **cost_of(result),
        "spans": [{"text": span.text, "source": span.source} for span in result.spans],
    }


def _job(args: argparse.Namespace, path: Path, workspace: Path) -> CompletionJob:
    text = read_text(path)
    if not text:
        raise RedraftError(f"{path} is empty; write the first words")
    document = Document(path.as_uri(), "", 0, text)
    if not 1 <= args.line <= document.end().line + 1 or args.character < 1:
        raise RedraftError(
            f"line {args.line}, character {args.character} is outside of {path}, "
            f"which has {document.end().line + 1} lines; both count from 1"
        )
    offset = document.offset(document.position(args.line - 1, args.character - 1, "utf-16"))
    if reason := file_reason(args.file, text):
        raise RedraftError(f"{args.file} may hold secrets ({reason}) and is not read")
    inside = path.is_relative_to(workspace)
    return CompletionJob(
        workspace=str(workspace),
        path=str(path.relative_to(workspace) if inside else path),
        repository=workspace.name,
        prefix=with_line_feeds(text[:offset]),
        suffix=with_line_feeds(text[offset:]),
        max_tokens=args.max_tokens,
        single_line=args.single_line,
        plain=args.plain,
    )


def _show(console: Console, result: JobResult) -> None:
    print_spans(result.spans)
    console.print(
        f"{result.tokens} tokens, {result.forwards} forwards, {result.seconds * 1e3:.0f} ms, "
        f"stopped by {result.stopped_by}; by source {result.sources}",
        style="dim",
        highlight=False,
    )


def print_spans(spans: list[Span]) -> None:
    """Text on stdout, coloured by source where stdout is a terminal."""
    from rich.text import Text

    from lsp_server.commands.demo.show import SOURCE_STYLES

    if not sys.stdout.isatty():
        write_result("".join(span.text for span in spans) + "\n")
        return
    text = Text()
    for span in spans:
        text.append(span.text, SOURCE_STYLES[span.source])
    terminal().print(text)
