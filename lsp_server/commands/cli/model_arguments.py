"""Options of commands that are fields of a dataclass: those of a model, and of a deployment."""

from __future__ import annotations

import argparse
from dataclasses import Field, fields
from functools import partial
from typing import Any

from accel.files.model_options import ModelOptions
from lsp_server.shared.contract.codec import Unreadable, read

_FIELDS = [one for one in fields(ModelOptions) if one.name != "path"]


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that ``model_options`` reads."""
    add_field_arguments(parser, ModelOptions, _FIELDS)


def add_field_arguments(
    parser: argparse.ArgumentParser, kind: type[Any], chosen: list[Field[Any]]
) -> None:
    """An option for each of some fields of a dataclass of options."""
    for one in chosen:
        choices = one.metadata["choices"]
        parser.add_argument(
            f"--{one.name.replace('_', '-')}",
            choices=choices or None,
            default=one.default,
            type=partial(_value, kind, one),
            metavar=None if choices else one.name.rpartition("_")[2].upper(),
            help=one.metadata["doc"].replace("`", "").replace("%", "%%"),
        )


def model_options(args: argparse.Namespace) -> dict[str, Any]:
    """By their names in ``ModelOptions``."""
    return {one.name: getattr(args, one.name) for one in _FIELDS}


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
