"""``redraft apply``: a snippet put into the file that it is of; a diff, or the file itself."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.commands.cli.source_file import read_text, replace_text, workspace_of
from lsp_server.commands.cli.terminal import write_result
from lsp_server.editor.editing.hunks import unified_diff
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.errors import RedraftError
from lsp_server.tasks.apply.merge import AmbiguousSnippet
from lsp_server.tasks.apply.updates import apply_text
from lsp_server.text.syntax.languages import language_of_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="file to edit")
    parser.add_argument(
        "--snippet",
        required=True,
        metavar="PATH",
        help="the lines that change with some around them, `... existing code ...` between; or a "
        "diff, or SEARCH/REPLACE blocks; - reads it from standard input",
    )
    parser.add_argument("--write", action="store_true", help="change the file, all at once")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Merge and print the diff. Raises RedraftError where it is not clear what goes where; as JSON
    that has the places, too."""
    text = read_text(args.file)
    snippet = _standard_input() if args.snippet == "-" else read_text(Path(args.snippet))
    try:
        merge = apply_text(text, snippet, language_of_path(args.file.name), args.file.name)
    except AmbiguousSnippet as error:
        if args.json:
            write_json(args.json, {"refused": str(error), "places": to_json(error.readings)})
        raise
    place = args.file.resolve()
    diff = unified_diff(text, merge.text, str(place.relative_to(workspace_of(place))))
    is_written = args.write and merge.text != text
    if is_written:
        replace_text(args.file, text, merge.text)
    if args.json:
        report = {"diff": diff, "text": merge.text, "how": merge.how, "written": is_written}
        write_json(args.json, report)
    else:
        write_result(diff)
    return 0


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RedraftError(f"standard input is not UTF-8 text ({error.reason})") from None
