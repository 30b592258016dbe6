"""Options of commands for what computes a model, and how."""

from __future__ import annotations

import argparse
from typing import Any

_NAMES = ("backend", "kv_type", "gpu_layers", "flash_attention")


def add_backend_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that ``backend_options`` reads."""
    parser.add_argument(
        "--backend",
        choices=("auto", "own", "llama-cpp"),
        default="auto",
        help="what computes a GGUF file",
    )
    parser.add_argument(
        "--kv-type", choices=("f16", "int8"), default="f16", help="keys' and values' numbers"
    )
    parser.add_argument(
        "--gpu-layers",
        type=_gpu_layers,
        default="auto",
        metavar="NUMBER",
        help="layers that llama.cpp computes on a GPU; auto: as many as have room there",
    )
    parser.add_argument(
        "--flash-attention",
        choices=("auto", "on", "off"),
        default="auto",
        help="in llama.cpp; auto: as its library decides",
    )


def backend_options(args: argparse.Namespace) -> dict[str, Any]:
    """Of an engine, by the names of ``accel.engine.Engine.load``."""
    return {name: getattr(args, name) for name in _NAMES}


def _gpu_layers(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a number of layers")
    return int(text)
