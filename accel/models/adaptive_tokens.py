"""Adaptive tokens (SDSAT, Liu et al. 2024): inputs in place of text to come.

``adaptive.safetensors`` beside a model's weights holds their ``embeddings`` [tokens, width] and the
sha256 of the weights that learnt them. Their ids follow the vocabulary's and are never written.
"""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from accel.errors import AccelError, BrokenModel, UnsupportedModel
from operating_system.files import replace_file

FILE = "adaptive.safetensors"

_log = logging.getLogger(__name__)


def add_adaptive_tokens(module: Any, folder: Path) -> tuple[int, ...]:
    """Have a module read the adaptive tokens that lie beside its weights; returns their ids. There
    are none without the file, or where it belongs to other weights: the log says so then."""
    file = folder / FILE
    if not file.exists():
        return ()
    known: Any = module.get_input_embeddings()
    try:
        more = read_embeddings(file, sha256_of_weights(folder))
        if more.shape[1] != known.weight.shape[1]:
            raise BrokenModel(f"{file} is of another width than its model", "train it again")
    except AccelError as error:
        _log.warning("no adaptive tokens: %s", error)
        return ()
    weight = torch.cat([known.weight.data, more.to(known.weight)])
    extended = nn.Embedding.from_pretrained(weight)
    extended.train(module.training)
    module.set_input_embeddings(extended)
    return tuple(range(len(known.weight), len(weight)))


def read_embeddings(file: Path, weights_sha256: str) -> Tensor:
    """The embeddings in ``file``, [tokens, width]. Raises BrokenModel for a damaged file,
    UnsupportedModel for one made for other weights."""
    try:
        with safe_open(file, framework="pt") as stored:
            metadata = stored.metadata() or {}
            embeddings: Tensor = stored.get_tensor("embeddings")
    except (OSError, SafetensorError) as error:
        raise BrokenModel(f"{file} cannot be read ({error})", "train it again") from error
    if metadata.get("base_sha256") != weights_sha256:
        raise UnsupportedModel(
            f"{file} belongs to other weights than those beside it",
            "train it again with `python -m tests.benchmarks train adaptive`",
        )
    return embeddings


def save_embeddings(file: Path, embeddings: Tensor, weights_sha256: str) -> None:
    """Replace ``file`` by embeddings [tokens, width] in bf16, for the weights of that sha256."""
    part = file.with_suffix(".part")
    tensors = {"embeddings": embeddings.detach().to(torch.bfloat16).contiguous()}
    save_file(tensors, part, metadata={"base_sha256": weights_sha256})
    replace_file(part, file)


def sha256_of_weights(folder: Path) -> str:
    """Names the weights of a model folder, all its safetensors but ours."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        if file.name != FILE:
            with file.open("rb") as stream:
                while block := stream.read(1 << 24):
                    digest.update(block)
    return digest.hexdigest()
