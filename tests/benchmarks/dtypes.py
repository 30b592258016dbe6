"""Number formats that the benches compare."""

from __future__ import annotations

import argparse
from pathlib import Path

from lsp_server.shared.errors import BenchError

DTYPES = ("fp32", "bf16")
"""Of transformers."""
OWN_DTYPES = ("fp32", "int8")
"""Of our own forward for folders."""
STORED = "auto"
"""Of a GGUF file: its weights as they are stored."""
CHOICES = ("fp32", "bf16", "int8", STORED)
"""What ``--dtype`` takes where our engine decodes."""
KV_TYPES = ("f16", "int8")
FASTEST = "fastest"


def is_gguf_file(model: str | Path | None) -> bool:
    """Whether ``--model`` names a GGUF file."""
    return model is not None and Path(model).suffix.lower() == ".gguf"


def settle_dtype(args: argparse.Namespace) -> None:
    """What ``args.dtype`` is where none was given: fp32, of a GGUF file the weights as they are
    stored. transformers, where it would take part, is left out for such a file."""
    if args.dtype is None:
        args.dtype = STORED if is_gguf_file(args.model) else "fp32"
    if is_gguf_file(args.model) and hasattr(args, "no_hf"):
        args.no_hf = True


def gguf_file(model: str | Path | None) -> Path:
    """The file that another engine shall load, too. Raises BenchError where there is none."""
    if model is None or not is_gguf_file(model) or not Path(model).expanduser().is_file():
        raise BenchError(f"peers read GGUF files alone, not {model}; give --model FILE.gguf")
    return Path(model).expanduser()
