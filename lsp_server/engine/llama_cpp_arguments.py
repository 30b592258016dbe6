"""Options of commands for how llama.cpp computes a GGUF file."""

from __future__ import annotations

import argparse


def add_llama_cpp_arguments(parser: argparse.ArgumentParser) -> None:
    """``gpu_layers``, None for auto, and ``flash_attention``."""
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


def _gpu_layers(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is neither auto nor a number of layers")
    return int(text)
