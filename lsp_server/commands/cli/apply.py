"""``redraft apply``: a snippet put into the file that it is of; a diff, or the file itself."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lsp_server.commands.cli.model_arguments import add_model_arguments, written
from lsp_server.commands.cli.output import add_json_argument, show_notes, write_json
from lsp_server.commands.cli.source_file import read_text, replace_text, workspace_of
from lsp_server.commands.cli.terminal import terminal, write_result
from lsp_server.editor.editing.hunks import unified_diff
from lsp_server.models.choices import read_choices
from lsp_server.models.used import used_models
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.settings import Settings
from lsp_server.tasks.apply.by_model import ModelMerge
from lsp_server.tasks.apply.edit_text import apply_text
from lsp_server.tasks.apply.refusals import AmbiguousSnippet, Merge
from lsp_server.text.documents.secret_documents import file_reason
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
    parser.add_argument(
        "--instruction",
        default="",
        metavar="TEXT",
        help="what the edit does; read by a model that was made to merge (FastApply)",
    )
    parser.add_argument(
        "--no-model",
        action="store_true",
        help="never ask a model, not even one that was made to merge",
    )
    add_model_arguments(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Merge and print the diff. Raises RedraftError where it is not clear what goes where and the
    model does not find out; as JSON that has the places, too."""
    text = read_text(args.file)
    snippet = _standard_input() if args.snippet == "-" else read_text(Path(args.snippet))
    language = language_of_path(args.file.name)
    try:
        merge = apply_text(text, snippet, language, args.file.name)
    except AmbiguousSnippet as error:
        merge_by_model = ModelMerge(text, snippet, error, args.instruction, language)
        by_model = None if args.no_model else _by_model(args, merge_by_model)
        if by_model is None:
            if args.json:
                write_json(args.json, {"refused": str(error), "places": to_json(error.readings)})
            raise
        merge = by_model
    target = args.file.resolve()
    diff = unified_diff(text, merge.text, str(target.relative_to(workspace_of(target))))
    is_written = args.write and merge.text != text
    if is_written:
        replace_text(args.file, text, merge.text)
    if args.json:
        report = {"diff": diff, "text": merge.text, "how": merge.how, "written": is_written}
        write_json(args.json, report)
    else:
        write_result(diff)
    return 0


def _by_model(args: argparse.Namespace, merge: ModelMerge) -> Merge | None:
    """Return the model's merge of a refused snippet; None without a model or a valid answer."""
    from accel.errors import AccelError

    model = args.model or used_models(Settings(), read_choices()).edits.path
    job = merge.job(Path(model).name) if model else None
    if job is None or file_reason(args.file, merge.code):
        return None
    console = terminal(stderr=True)
    try:
        args.model = model
        text = merge.merged(Path(model).name, written(args, job, console)[0])
    except (RedraftError, AccelError) as error:
        show_notes(console, [f"the model was asked, and failed: {error}"])
        return None
    return Merge(text, "model") if text is not None else None


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise RedraftError(f"standard input is not UTF-8 text ({error.reason})") from None
