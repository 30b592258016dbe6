"""``redraft setup``: looks at this machine, suggests a model and sets it for all editors."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from accel.errors import HOW_TO_CHOOSE
from lsp_server.commands.cli.fetch_and_compile import fetch_and_compile
from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.commands.cli.progress import Ask, agree_to_licence, shown_progress, typed_answer
from lsp_server.commands.cli.terminal import terminal
from lsp_server.editor.daemon.control import ask_daemon
from lsp_server.models.card import ModelCard
from lsp_server.models.catalogue import known_models
from lsp_server.models.choices import choices_file, read_choices, write_choice
from lsp_server.models.document import model_facts, models_document, not_here
from lsp_server.models.manifest import MANIFEST, OfferedModel, read_manifest
from lsp_server.models.recommendation import (
    FEWEST_TOKENS_OF_EDITS_PER_S,
    Recommendation,
    recommended,
    recommended_for_edits,
)
from lsp_server.models.setup_question import SetupQuestion, answer_file
from lsp_server.models.speed import bandwidth
from lsp_server.models.trial import Trial, try_model
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import in_one_line, printable, say

_RECIPE = re.compile(r"^## (.+)\nnames: (.+)\nfile: (.+)\n\n```\w*\n((?:.*\n)+?)```$", re.M)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--yes",
        action="store_true",
        help="take the recommendation, downloads included, without questions",
    )
    parser.add_argument(
        "--folder", type=Path, action="append", default=[], help="another folder with models"
    )
    parser.add_argument(
        "--manifest", type=Path, default=MANIFEST, help="the list of models that can be fetched"
    )
    parser.add_argument("--no-trial", action="store_true", help="do not try the model")
    parser.add_argument(
        "--editor",
        choices=[name for snippet in all_snippets() for name in snippet.names],
        metavar="NAME",
        help="print the configuration of this editor or agent, else of those on PATH",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Show, ask, fetch, try, choose. With ``--json`` and without ``--yes`` it only shows. 1 where
    the chosen model has a problem. Raises RedraftError."""
    console = terminal(stderr=bool(args.json))
    bandwidth(anew=True)
    models = known_models(args.folder)
    offered = not_here(read_manifest(args.manifest), models)
    best, for_edits = recommended(models, offered), recommended_for_edits(models, offered)
    report: dict[str, Any] = {
        **models_document(models, read_choices(), offered),
        "machine": _machine(),
        "trial": None,
        "editors": [asdict(snippet) for snippet in snippets_of(args.editor)],
    }
    options = [model for model in models if not model.problem]
    options += [model for model in offered if _is_for_this_machine(model)]
    if not options:
        raise RedraftError(f"there is no model on this machine; {HOW_TO_CHOOSE}")
    identity = best.name, best.path
    matching = (n for n, option in enumerate(options) if (option.name, option.path) == identity)
    index = next(matching, 0)
    if not args.json:
        _show(console, report["machine"], options, index, best, for_edits)
    option: ModelCard | None = None
    if args.yes:
        option = options[index]
    elif not args.json and _can_answer():
        option = _ask_option(options, index, _input)
    elif not args.json:
        option = _obvious(options, index, read_choices().completion, console)
    trial = None
    if option is not None:
        path = _fetched(option, console, None if args.yes else _input)
        trial = None if args.no_trial else _tried(path, console)
        report["trial"] = trial and asdict(trial)
        _choose(path, console)
        if for_edits is not None and option is options[index] and (args.yes or _can_answer()):
            _choose_for_edits(for_edits, [*models, *offered], console, None if args.yes else _input)
        report["chosen"] = models_document(models, read_choices(), offered)["chosen"]
    if args.json:
        write_json(args.json, report)
    else:
        _show_snippets(console, snippets_of(args.editor))
    return int(bool(trial and trial.problems))


def _can_answer() -> bool:
    return sys.stdin.isatty() or "REDRAFT_ASSUME_TERMINAL" in os.environ


def _obvious(
    options: Sequence[ModelCard], index: int, chosen: str, console: Console
) -> ModelCard | None:
    """Return the model to take without a terminal: the chosen one stays, else the recommended one
    if its file is here. Nothing is fetched unasked."""
    if chosen:
        console.print(f"\n{chosen} stays chosen.", soft_wrap=True, highlight=False)
    elif options[index].paths:
        return options[index]
    else:
        console.print(f"\nNothing is chosen; `redraft setup --yes` fetches {options[index].name}.")
    return None


def _input(question: str) -> str:
    try:
        return input(printable(question)).strip()
    except EOFError:
        raise RedraftError(f"nothing was chosen; {HOW_TO_CHOOSE}") from None


def _is_for_this_machine(model: OfferedModel) -> bool:
    """Return True if a model that can be fetched suits this machine."""
    quick = model.speed is not None and model.speed.tokens_per_s >= FEWEST_TOKENS_OF_EDITS_PER_S
    does_one_thing = {"next-edit", "apply"}.intersection(model.does) and "fim" not in model.does
    return quick and not does_one_thing and model.fits()


def _machine() -> dict[str, Any]:
    from operating_system.machine import cores, free_bytes

    return {"cores": cores(), "free_memory_bytes": free_bytes(), "bytes_per_s": round(bandwidth())}


def _show(
    console: Console,
    machine: dict[str, Any],
    options: Sequence[ModelCard],
    index: int,
    best: Recommendation,
    for_edits: Recommendation | None,
) -> None:
    console.print(
        f"This machine: {machine['cores']} cores, {machine['free_memory_bytes'] / 1e9:.1f} GB of "
        f"memory free, {machine['bytes_per_s'] / 1e9:.0f} GB/s.\n",
        highlight=False,
    )
    for number, option in enumerate(options, 1):
        mark = " (recommended)" if best.name and number == index + 1 else ""
        console.print(in_one_line(f"{number:3} {option.name}{mark}"), style="bold" if mark else "")
        for line in (*([] if option.paths else ["to be fetched"]), *model_facts(option)):
            console.print(in_one_line(f"    {line}"), style="dim", highlight=False)
    advice = f"Recommended: {best.name}, for {best.reason}." if best.name else f"{best.reason}."
    console.print(f"\n{advice}", highlight=False)
    if for_edits is not None:
        console.print(f"For edits: {for_edits.name}, for {for_edits.reason}.")
    console.print("All that can be fetched: redraft models get", style="dim", highlight=False)


def _ask_option(options: Sequence[ModelCard], index: int, ask: Ask) -> ModelCard:
    while True:
        answer = ask(f"Which model shall answer? [{index + 1}] ") or str(index + 1)
        if answer.isdecimal() and 1 <= int(answer) <= len(options):
            return options[int(answer) - 1]
        say(f"{answer} is none of 1 to {len(options)}.")


def _fetched(option: ModelCard, console: Console, ask: Ask | None) -> str:
    """Return the path of a model that may have to be fetched. Raises RedraftError where the user
    does not want that."""
    if not isinstance(option, OfferedModel):
        return option.path
    if ask is not None:
        size = f"{option.fetched_bytes / 1e6:,.0f} MB"
        answer = ask(f"Fetch {option.name} ({size}, licence {option.licence})? [y/N] ")
        if answer.lower() not in ("y", "yes"):
            raise RedraftError(f"nothing was fetched; {HOW_TO_CHOOSE}")
    if option.limits_use:
        agree_to_licence(option, ask or typed_answer)
    with shown_progress(console) as report:
        return str(fetch_and_compile(option, report))


def _choose_for_edits(
    best: Recommendation, models: Sequence[ModelCard], console: Console, ask: Ask | None
) -> None:
    model = next(card for card in models if (card.name, card.path) == (best.name, best.path))
    if ask is not None:
        size = ""
        if isinstance(model, OfferedModel):
            size = f" ({model.fetched_bytes / 1e6:,.0f} MB, licence {model.licence})"
        if ask(f"Shall {best.name}{size} make the edits? [y/N] ").lower() not in ("y", "yes"):
            return
    try:
        path = _fetched(model, console, None)
    except RedraftError as error:  # the model of suggestions is there, and edits, too
        console.print(f"{error}", style="yellow", soft_wrap=True)
        return
    write_choice("edits", path)
    ask_daemon("models")
    console.print(f"{path} makes the edits.", soft_wrap=True, highlight=False)


def _tried(path: str, console: Console) -> Trial:
    with console.status("loading the model") as progress:
        trial = try_model(path, progress.update)
    console.print(f"Tried: {trial.text.strip()!r} in {trial.seconds:.2f} s.")
    for problem in trial.problems:
        console.print(f"Take care: {problem}.", style="yellow")
    return trial


def _choose(path: str, console: Console) -> None:
    """Write the user's file, have a running server take it up, and never offer a model again."""
    write_choice("completion", path)
    SetupQuestion(answer_file()).answer("redraft setup")
    ask_daemon("models")
    console.print(
        f"\n{path} is chosen for all editors that name none ({choices_file()}).",
        soft_wrap=True,
        highlight=False,
    )


def _show_snippets(console: Console, snippets: Sequence[EditorSnippet]) -> None:
    for snippet in snippets:
        console.print(f"\n{snippet.name}, in {snippet.file}:\n", highlight=False)
        console.print(snippet.text, highlight=False, soft_wrap=True)
    if not snippets:
        console.print("\nFor your editor's configuration: redraft setup --editor NAME.")


@dataclass(frozen=True, slots=True)
class EditorSnippet:
    """file: where ``text`` goes; names: those by which ``--editor`` knows it, programs among
    them."""

    name: str
    names: list[str]
    file: str
    text: str


def all_snippets() -> list[EditorSnippet]:
    """Return the snippets of all editors that are known."""
    page = Path(__file__).with_name("recipes.md").read_text("utf-8")
    return [
        EditorSnippet(name, names.split(), file, text.rstrip())
        for name, names, file, text in _RECIPE.findall(page)
    ]


def snippets_of(editor: str | None) -> list[EditorSnippet]:
    """Return those of an editor by one of its names; of None those of the editors on PATH."""
    is_meant = shutil.which if editor is None else editor.__eq__
    return [snippet for snippet in all_snippets() if any(map(is_meant, snippet.names))]
