"""Options of commands for how a model is computed: those that the settings have."""

from __future__ import annotations

import argparse
from dataclasses import Field, fields
from functools import partial
from typing import Any

from accel.model_options import ModelOptions
from lsp_server.contract.codec import Unreadable, read

_FIELDS = [one for one in fields(ModelOptions) if one.name != "path"]


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that ``model_options`` reads."""
    for one in _FIELDS:
        choices = one.metadata["choices"]
        parser.add_argument(
            f"--{one.name.replace('_', '-')}",
            choices=choices or None,
            default=one.default,
            type=partial(_value, one),
            metavar=None if choices else one.name.rpartition("_")[2].upper(),
            help=one.metadata["doc"].replace("`", ""),
        )


def model_options(args: argparse.Namespace) -> dict[str, Any]:
    """By their names in ``ModelOptions``."""
    return {one.name: getattr(args, one.name) for one in _FIELDS}


def _value(item: Field[Any], text: str) -> Any:
    value = int(text) if text.lstrip("-").isdecimal() else text
    try:
        return getattr(read(ModelOptions, {item.name: value}), item.name)
    except Unreadable as error:
        raise argparse.ArgumentTypeError(str(error)) from None
