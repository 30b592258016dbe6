"""A copy of a GGUF file with random weights that cuts code as a real model does.

``shape_with_vocabulary.py SHAPE.gguf REAL.gguf OUT.gguf``: the tensors and numbers of SHAPE with
the tokenizer of REAL, which has a byte-level vocabulary. It is filled up to the size of SHAPE's by
tokens that code hardly ever holds, each with a merge, so that opening the file takes as long as
opening a real one. The last three tokens fill in the middle.
"""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "decoding"))

from gguf_writer import Stored, write_gguf

from accel.files.gguf.file import GgufFile
from accel.files.gguf.metadata import Metadata, StringArray
from accel.files.gguf.vocabulary import TokenType

HOLE = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
HOLE_KEYS = ["fim_pre", "fim_suf", "fim_mid"]
NO_ASCII = [chr(code) for code in range(0xC0, 0x100)]
"""Letters of a byte-level alphabet that stand for bytes of no ASCII text."""


def copy_with_vocabulary(shape: Path, real: Path, out: Path) -> Path:
    """Write ``out``. Raises ValueError where the vocabulary of ``real`` is the larger one."""
    with GgufFile(real) as file:
        taken = plain(file.metadata, "tokenizer.")
    with GgufFile(shape) as file:
        size = file.tensors["token_embd.weight"].shape[0]
        kept = {
            key: value
            for key, value in plain(file.metadata, "").items()
            if not key.startswith(("tokenizer.", "split."))
        }
        tensors = {
            name: Stored(tensor.type.name, tensor.shape, file.read(name).tobytes())
            for name, tensor in file.tensors.items()
        }
    return write_gguf(out, kept | filled_up(taken, size), tensors)


def filled_up(tokenizer: dict[str, Any], size: int) -> dict[str, Any]:
    """The metadata of a byte-level tokenizer with ``size`` tokens."""
    tokens = list(tokenizer["tokenizer.ggml.tokens"])
    types = list(tokenizer["tokenizer.ggml.token_type"])
    merges = list(tokenizer["tokenizer.ggml.merges"])
    missing = size - len(tokens) - len(HOLE)
    if missing < 0:
        raise ValueError(f"{len(tokens)} tokens do not fit into a vocabulary of {size}")
    known = set(tokens)
    ordinary = [text for text, kind in zip(tokens, types, strict=True) if kind == TokenType.NORMAL]
    rare = [letter for letter in NO_ASCII if letter in known]
    for last, first in product(rare, ordinary):
        if not missing:
            break
        if first + last not in known:
            known.add(first + last)
            tokens.append(first + last)
            merges.append(f"{first} {last}")
            missing -= 1
    assert not missing, "there are too few rare letters"
    types += [int(TokenType.NORMAL)] * (len(tokens) - len(types)) + [int(TokenType.CONTROL)] * 3
    ids = {
        f"tokenizer.ggml.{key}_token_id": len(tokens) + place for place, key in enumerate(HOLE_KEYS)
    }
    made = {"tokens": tokens + HOLE, "token_type": types, "merges": merges}
    return tokenizer | {f"tokenizer.ggml.{key}": value for key, value in made.items()} | ids


def plain(metadata: Metadata, prefix: str) -> dict[str, Any]:
    """The values whose keys begin so, as the writer takes them."""
    found: dict[str, Any] = {}
    for key in (key for key in metadata if key.startswith(prefix)):
        value = metadata.value(key)
        if isinstance(value, StringArray):
            found[key] = value.decoded()
        else:
            found[key] = value.tolist() if isinstance(value, np.ndarray) else value
    return found


if __name__ == "__main__":
    copy_with_vocabulary(*map(Path, sys.argv[1:4]))
