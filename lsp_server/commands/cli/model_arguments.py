"""Options of commands that are fields of a dataclass: those of a model, and of a deployment."""

from __future__ import annotations

import argparse
from contextlib import closing
from dataclasses import Field, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from accel.files.model_options import ModelOptions
from lsp_server.models.used import WRITTEN_MODEL
from lsp_server.shared.contract.codec import Unreadable, read
from lsp_server.shared.contract.jobs import AnyJob, JobResult
from lsp_server.shared.contract.options import EngineOptions

if TYPE_CHECKING:
    from rich.console import Console

    from lsp_server.shared.contract.status import EngineStatus

_FIELDS = [option for option in fields(ModelOptions) if option.name != "path"]


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """``--model``, and those that ``model_options`` reads."""
    parser.add_argument("--model", help=WRITTEN_MODEL)
    add_field_arguments(parser, ModelOptions, _FIELDS)


def add_field_arguments(
    parser: argparse.ArgumentParser, kind: type[Any], chosen: list[Field[Any]]
) -> None:
    """An option for each of some fields of a dataclass of options."""
    for field in chosen:
        choices = field.metadata["choices"]
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            choices=choices or None,
            default=field.default,
            type=partial(_value, kind, field),
            metavar=None if choices else field.name.rpartition("_")[2].upper(),
            help=field.metadata["doc"].replace("`", "").replace("%", "%%"),
        )


def model_options(args: argparse.Namespace) -> dict[str, Any]:
    """By their names in ``ModelOptions``."""
    return {field.name: getattr(args, field.name) for field in _FIELDS}


def written(
    args: argparse.Namespace, job: AnyJob, console: Console, draft_model: str = ""
) -> tuple[JobResult, EngineStatus]:
    """Load the model of a command, index the workspace of ``job`` and return its result."""
    from lsp_server.engine.service import EngineService

    options = EngineOptions(path=args.model or "", **model_options(args), draft_model=draft_model)
    with closing(EngineService(options)) as service:
        with console.status("loading the model and the index") as progress:
            service.load(progress.update)
            if job.workspace:
                service.indexes.build(job.workspace)
        with console.status("the model writes"):
            return service.write(job), service.status()


def _value(kind: type[Any], item: Field[Any], text: str) -> Any:
    value: Any = int(text) if text.lstrip("-").isdecimal() else text
    if item.type == "float":
        try:
            value = float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{item.name} is a number") from None
    try:
        return getattr(read(kind, {item.name: value}), item.name)
    except Unreadable as error:
        raise argparse.ArgumentTypeError(str(error)) from None
