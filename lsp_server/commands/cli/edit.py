"""``redraft edit``: rewrite lines of a file by an instruction; a diff, or the file itself."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lsp_server.commands.cli.model_arguments import add_model_arguments, written
from lsp_server.commands.cli.output import add_json_argument, cost_of, show_notes, write_json
from lsp_server.commands.cli.source_file import read_text, replace_text, workspace_of
from lsp_server.commands.cli.terminal import terminal, write_result
from lsp_server.editor.editing.checks import UNCHANGED, checked_text, doubt_about, sure_of
from lsp_server.editor.editing.hunks import apply_hunks, unified_diff
from lsp_server.editor.editing.provider import AROUND_CHARACTERS
from lsp_server.editor.editing.renames import EditedPart, told_elsewhere
from lsp_server.editor.editing.replacements import settled_changes
from lsp_server.editor.next_edits.finding import renamed_elsewhere
from lsp_server.models.better_editor import better_editor
from lsp_server.models.choices import read_choices
from lsp_server.models.used import used_models
from lsp_server.shared.contract.jobs import MOST_ENTROPY_K, EditJob, JobResult, unchanged
from lsp_server.shared.errors import EditRefused, RedraftError
from lsp_server.shared.printable import say
from lsp_server.shared.settings import Settings
from lsp_server.text.documents.document import offsets_of_lines
from lsp_server.text.documents.secret_documents import file_reason, withheld_warning
from lsp_server.text.syntax.languages import language_of_path

if TYPE_CHECKING:
    from rich.console import Console


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, help="file to edit")
    parser.add_argument(
        "--lines", required=True, metavar="A:B", help="first and last line, from 1, both included"
    )
    parser.add_argument("--instruction", required=True, metavar="TEXT", help="what should change")
    parser.add_argument("--write", action="store_true", help="change the file, all at once")
    parser.add_argument("--max-tokens", type=int, default=4096, help="most tokens of the answer")
    parser.add_argument(
        "--draft-model",
        metavar="PATH",
        help="a small model with the same tokenizer, which proposes new text",
    )
    parser.add_argument(
        "--verification",
        choices=("exact", "entropy"),
        default="exact",
        help="which proposals are taken: what the model writes itself, or what it finds likely "
        "where it is unsure (lossy: not the model's own text, faster)",
    )
    parser.add_argument(
        "--entropy-k",
        type=int,
        default=3,
        metavar="K",
        help="with entropy: accept one of this many likeliest tokens",
    )
    add_model_arguments(parser)
    parser.add_argument(
        "--workspace", type=Path, help="folder to index, else the file's repository"
    )
    parser.add_argument("--no-index", action="store_true", help="draft from the file alone")
    parser.add_argument(
        "--temperature", type=float, default=0.0, help="0 takes the likeliest token"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of sampling")
    parser.add_argument("--plain", action="store_true", help="decode without drafts")
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Index the workspace, edit, print the diff. Raises RedraftError, or EditRefused."""

    if not args.model:
        used = used_models(Settings(), read_choices())
        args.model, args.draft_model = used.edits.path, args.draft_model or used.drafts.path
    path = args.file.resolve()
    workspace = (args.workspace or workspace_of(path)).resolve()
    text = read_text(path)
    if not text:
        raise RedraftError(f"{args.file} is empty; there is nothing to edit")
    start, end = offsets_of_lines(text, args.lines, str(args.file))
    job = _job(args, path, workspace, text, start, end)
    console = terminal(stderr=True)
    where = EditedPart(text, start, end, job.language, job.path)
    renamed = settled_changes(args.instruction, where)
    if renamed is not None:
        new = renamed.code(where)
        result, edited = unchanged(new), apply_hunks(text, renamed.moved(start))
        others = renamed_elsewhere(renamed, where, job.workspace, {})
        show_notes(console, [renamed.doubt, told_elsewhere(renamed.old, others)])
    else:
        result, status = written(args, job, console, args.draft_model or "")
        show_notes(console, [status.notice])
        try:
            new = checked_text(job.selection, result)
            words = (job.selection, new, job.language, job.instruction, text)
            doubt = doubt_about(*words, is_unsure=result.is_unsure)
            if doubt and args.write:
                # What is written at once is not previewed.
                raise EditRefused(f"{doubt}; edit again")
        except EditRefused as error:
            raise EditRefused(_with_help(str(error), args.model)) from None
        show_notes(console, [doubt])
        if new == job.selection:
            show_notes(console, [_with_help(UNCHANGED, args.model)])
        edited = text[:start] + new + text[end:]
    diff = unified_diff(text, edited, job.path)
    is_written = args.write and edited != text
    if is_written:
        replace_text(args.file, text, edited)
    if args.json:
        written_json = {"diff": diff, "text": new, **cost_of(result), "written": is_written}
        write_json(args.json, written_json)
    else:
        write_result(diff)
        _tell(console, result)
    return 0


def _job(
    args: argparse.Namespace, path: Path, workspace: Path, text: str, start: int, end: int
) -> EditJob:
    entropy_k = args.entropy_k if args.verification == "entropy" else 0
    if entropy_k and not args.draft_model:
        raise RedraftError("--verification entropy is for a draft model; give --draft-model PATH")
    if not 2 <= args.entropy_k <= MOST_ENTROPY_K:
        raise RedraftError(f"--entropy-k {args.entropy_k} is not in 2 to {MOST_ENTROPY_K}")
    if not args.instruction.strip():
        raise RedraftError("the instruction is empty; say what should change")
    selection = text[start:end]
    if not selection.strip():
        raise RedraftError(f"lines {args.lines} are blank; select the lines to change")
    inside = path.is_relative_to(workspace)
    around = AROUND_CHARACTERS
    if reason := file_reason(args.file, text):
        # The model is told nothing of such a file but the lines that the user named.
        around = 0
        say(f"redraft: {withheld_warning(reason)}", file=sys.stderr)
    return EditJob(
        workspace="" if args.no_index or not around else str(workspace),
        path=str(path.relative_to(workspace) if inside else path),
        instruction=args.instruction,
        selection=selection,
        before=text[max(0, start - around) : start],
        after=text[end:][:around],
        language=language_of_path(path.name),
        max_tokens=args.max_tokens,
        temperature=args.temperature,
        seed=args.seed,
        plain=args.plain,
        entropy_k=entropy_k,
        sure=sure_of(str(args.model)),
    )


def _with_help(message: str, model: str) -> str:
    """Return a message about a model's answer, and the model that would help."""
    better = better_editor(model)
    return f"{message}. {better.advice}" if better is not None else message


def _tell(console: Console, result: JobResult) -> None:
    rate = result.tokens / result.seconds if result.seconds else 0.0
    console.print(
        f"{result.tokens} tokens, {result.forwards} forwards, {result.seconds * 1e3:.0f} ms "
        f"({rate:.0f} tokens/s), stopped by {result.stopped_by}",
        style="dim",
        highlight=False,
    )
