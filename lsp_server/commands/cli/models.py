"""``redraft models``: lists the models on this machine, chooses one, and fetches one."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.text import Text

from lsp_server.commands.cli.fetch_and_compile import choose_if_none, fetch_and_compile
from lsp_server.commands.cli.output import add_json_argument, write_json
from lsp_server.commands.cli.progress import (
    agree_to_licence,
    offer_line,
    progress_lines,
    shown_progress,
    typed_answer,
)
from lsp_server.commands.cli.terminal import terminal
from lsp_server.editor.daemon.control import ask_daemon
from lsp_server.models.card import ModelCard
from lsp_server.models.catalogue import find_model, known_models, model_at
from lsp_server.models.choices import (
    PURPOSES,
    Choices,
    choices_file,
    field_of,
    read_choices,
    write_choice,
)
from lsp_server.models.document import WORDS, chosen_models, model_facts, models_document
from lsp_server.models.fetched import models_folder, note_fetched, remove_fetched
from lsp_server.models.fetching import file_here
from lsp_server.models.file_digest import sha256_of
from lsp_server.models.hub_files import find_in_hub, named_in_hub
from lsp_server.models.manifest import MANIFEST, OfferedModel, find_offered, read_manifest
from lsp_server.shared.errors import RedraftError
from lsp_server.shared.printable import in_one_line, say
from operating_system.machine import free_bytes

NONE = "none"
_WITHOUT = {
    "completion": "none",
    "edits": "as for completion",
    "next-edits": "as for completion",
    "drafts": "none",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder", type=Path, action="append", default=[], help="another folder with models"
    )
    add_json_argument(parser)
    actions = parser.add_subparsers(dest="action", metavar="use | get | remove")
    use = actions.add_parser("use", help="choose a model for all editors that name none")
    use.add_argument("name", help=f"a name from the list, a path, or {NONE}")
    use.add_argument(
        "--for",
        dest="purpose",
        choices=PURPOSES,
        default=PURPOSES[0],
        help="completion: suggestions, and edits where no other model is chosen for those; "
        "next-edits: what follows from edits, by a model that was trained for it; "
        "drafts: proposes the new text of edits",
    )
    use.add_argument(
        "--adapter",
        type=Path,
        metavar="FILE",
        help="an adapter that was trained for it: it is added to the model, a GGUF file, and "
        "the file that comes out is chosen",
    )
    get = actions.add_parser("get", help="fetch a model; without a name: list those there are")
    get.add_argument(
        "name",
        nargs="?",
        default="",
        help="a name of the list, or OWNER/NAME[:FILE or quantisation] of any GGUF file of "
        "Hugging Face",
    )
    get.add_argument(
        "--for", dest="purpose", choices=PURPOSES, help="choose it for this, whatever was chosen"
    )
    get.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="use this file, after checking it"
    )
    get.add_argument(
        "--accept-licence",
        action="store_true",
        help="agree to a licence that limits use, without a question",
    )
    get.add_argument(
        "--progress",
        choices=("bar", "json"),
        default="bar",
        help="json: how far it is and the file at the end, on standard output, a line each",
    )
    get.add_argument(
        "--manifest",
        type=Path,
        default=MANIFEST,
        help="use another list of models than Redraft's own",
    )
    remove = actions.add_parser("remove", help="remove what get fetched, and nothing else")
    remove.add_argument("name", nargs="?", default="", help="needed if several were fetched")


def run(args: argparse.Namespace) -> int:
    """List, choose, fetch or remove. Raises RedraftError."""
    if args.action == "use":
        return _use(args)
    if args.action == "get":
        return _get(args)
    if args.action == "remove":
        return _remove(args.name)
    return _list(args)


def _list(args: argparse.Namespace) -> int:
    choices = read_choices()
    models = [*known_models(args.folder)]
    models += _chosen_elsewhere(models, choices)
    if args.json:
        write_json(args.json, models_document(models, choices, read_manifest()))
        return 0
    if not models:
        say("no models found; `redraft models get` lists those that can be fetched")
    for purpose, path in asdict(choices).items():
        if path and not os.path.exists(path):
            say(f"{purpose}: {path} is not there; choose another: redraft models use NAME")
    console, chosen, free = terminal(soft_wrap=True), chosen_models(choices), free_bytes()
    for model in models:
        lines = [f"\n    {in_one_line(line)}" for line in _about(model, chosen, free)]
        console.print(Text.assemble((in_one_line(model.name), "bold"), *lines))
    return 0


def _chosen_elsewhere(models: Sequence[ModelCard], choices: Choices) -> list[ModelCard]:
    listed = {str(path) for model in models for path in model.paths}
    paths = dict.fromkeys(asdict(choices).values())
    return [model_at(path) for path in paths if os.path.exists(path) and path not in listed]


def _about(model: ModelCard, chosen: dict[str, str], free: int) -> list[str]:
    """Return lines about a model. chosen: paths by purpose; free: bytes of memory."""
    paths = list(map(str, model.paths))
    if model.problem:
        return [f"cannot be opened: {model.problem}"]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    lines = [
        f"{model.family}, {model.bits:g} bits a weight, {model.context_tokens} tokens of context, "
        f"in {model.source}{more}",
        *([f"also called {', '.join(model.also)}"] if model.also else []),
        *model_facts(model),
    ]
    if model.passed_over:
        lines.append(f"not used: {model.passed_over}")
    if purposes := [purpose for purpose, path in chosen.items() if path in paths]:
        lines.append(f"chosen for {', '.join(purposes)}")
    if not model.fits(free):
        lines.append("too large for the memory that is free")
    return lines


def _use(args: argparse.Namespace) -> int:
    console = terminal(soft_wrap=True)
    path, label = "", _WITHOUT[args.purpose]
    if args.name == NONE and args.adapter is not None:
        raise RedraftError(f"{NONE} takes no adapter; name the model that it was trained on")
    if args.name != NONE:
        model = find_model(known_models(args.folder), _place_of(args.name))
        if model.problem:
            raise RedraftError(model.problem)
        path = model.path
        name = args.name if args.name in model.names else model.name
        if args.adapter is not None:
            file = _with_adapter(Path(path), args.adapter, console)
            path, name = str(file), file.stem
        label = f"{name}, {path}"
    write_choice(args.purpose, path)
    console.print(in_one_line(f"{args.purpose}: {label} (kept in {choices_file()})"))
    status = ask_daemon("models")
    if status is not None:
        console.print(
            f"{status['clients']} editor window(s) use it now, unless their settings name another"
        )
    return 0


def _with_adapter(base: Path, adapter: Path, console: Console) -> Path:
    """Return the model with an adapter, a file among those that were fetched. Raises RedraftError
    or AccelError."""
    from accel.files.gguf.adapter import Adapter, add_adapter
    from accel.files.gguf.file import is_gguf

    if not is_gguf(base):
        raise RedraftError(f"an adapter is added to a GGUF file, and {base} is none; name another")
    trained_on = Adapter(adapter).base_sha256
    if trained_on and trained_on != sha256_of(base):
        raise RedraftError(
            f"{adapter} was trained on another file than {base}; name the model that it is for"
        )
    merged = models_folder() / f"{base.stem}-{adapter.stem}.gguf"
    merged.parent.mkdir(parents=True, exist_ok=True)
    size = base.stat().st_size
    with shown_progress(console) as report:
        add_adapter(
            base, adapter, merged, lambda share: report("adding it", round(share * size), size)
        )
    note_fetched(merged, merged.stem)
    return merged


def _place_of(name: str) -> str:
    """Return the file of a fetched model by one of its names; else the name."""
    with contextlib.suppress(RedraftError):
        file = models_folder() / find_offered(read_manifest(), name).file
        if file.is_file():
            return str(file)
    return name


def _get(args: argparse.Namespace) -> int:
    console = terminal(stderr=True, soft_wrap=True, highlight=False)
    offered = read_manifest(args.manifest)
    if not args.name:
        free = free_bytes()
        for offer in offered:
            console.print(Text.assemble((offer.name, "bold"), *_about_offer(offer, free)))
        return 0
    model = _wanted(args.name, offered)
    here = file_here(model)
    if here is None:
        console.print(in_one_line(offer_line(model, args.source)))
    if here is None and model.limits_use and not args.accept_licence:
        agree_to_licence(model, typed_answer)
    progress = shown_progress(console) if args.progress == "bar" else progress_lines()
    try:
        with progress as report:
            file = fetch_and_compile(model, report, args.source)
    except KeyboardInterrupt:
        console.print(f"\nstopped; `redraft models get {model.name}` goes on there")
        raise
    if args.progress == "json":
        say(json.dumps({"file": str(file)}), flush=True)
    already = " is here already" if here else ""
    console.print(in_one_line(f"{file}{already}; {choose_if_none(file, args.purpose)}"))
    return 0


def _wanted(name: str, offered: list[OfferedModel]) -> OfferedModel:
    """Return the model of a name, which may be one of the hub. Raises RedraftError."""
    try:
        return find_offered(offered, name)
    except RedraftError:
        if named_in_hub(name) is None:
            raise
    return find_in_hub(name)


def _about_offer(model: OfferedModel, free: int) -> list[str]:
    """Return lines about a model that can be fetched. free: bytes of memory."""
    size = f"{model.fetched_bytes / 1e9:.2f} GB" if model.nbytes else "size by the hub"
    terms = f" ({model.terms})" if model.terms else ""
    lines = [
        f"for {model.purpose or ', '.join(WORDS[word] for word in model.does)}",
        f"{size}, licence {model.licence}{terms}; {model.source}",
    ]
    if (figure := model.edit_figure) is not None:
        lines.append(
            f"edits: {figure.percent:g} % of {figure.test}, as published ({figure.source})"
        )
    if model.also:
        lines.append(f"also called {', '.join(model.also)}")
    if not model.fits(free):
        lines.append("too large for the memory that is free")
    return [f"\n    {line}" for line in lines]


def _remove(name: str) -> int:
    """Nothing but what ``get`` fetched is ever removed."""
    files = remove_fetched(name)
    chosen = asdict(read_choices())
    for purpose in PURPOSES:
        if chosen[field_of(purpose)] in map(str, files):
            write_choice(purpose, "")
    for file in files:
        terminal().print(f"removed {file}", soft_wrap=True)
    return 0
