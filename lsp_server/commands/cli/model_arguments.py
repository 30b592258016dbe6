"""Options of commands that are fields of a dataclass: those of a model, and of a deployment."""

from __future__ import annotations

import argparse
from dataclasses import Field, fields
from functools import partial
from typing import Any

from accel.files.model_options import ModelOptions
from lsp_server.shared.contract.codec import Unreadable, read

_FIELDS = [option for option in fields(ModelOptions) if option.name != "path"]


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that ``model_options`` reads."""
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
