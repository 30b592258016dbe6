"""Mask tokens: embeddings, low-rank path and sampler of rows that guess ahead on a frozen base.

``adaptive.safetensors`` beside a model's weights holds

    embeddings                          [masks, width]
    layers.N.PROJECTION.down, .up       [rank, in], [out, rank]; PROJECTION: qkv, output, gate_up,
                                        down, as ``accel.llama`` fuses them
    sampler.state, .token, .memory, .out  [width, width]
    pooling                             [features, 3], see ``accel.sources.pooling``; may lack

(embeddings alone where the base itself learnt what to do with them) and, as metadata, the sha256
of the base that it was trained on; it is worth nothing on another.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from accel.errors import BrokenModel, UnsupportedModel

FILE, SPECULATOR_FILE = "adaptive.safetensors", "speculator.safetensors"
PROJECTIONS = ("qkv", "output", "gate_up", "down")


@dataclass(frozen=True, slots=True)
class LowRank:
    """An addition to a projection. down: [in, rank], up: [rank, out]."""

    down: Tensor
    up: Tensor

    def add_to(self, output: Tensor, inputs: Tensor) -> None:
        """Add to output [rows, out] what inputs [rows, in] give, in place."""
        output.addmm_(inputs @ self.down, self.up)


Paths = dict[str, LowRank]
"""What one layer's projections get for mask rows, by name."""

Floats = NDArray[np.float32]


class Sampler(NamedTuple):
    """The recurrent network that joins mask rows with known tokens. All float32.

    state, memory, out: [width, width]; by_token: [vocabulary, width], what each token adds.
    """

    state: Floats
    memory: Floats
    out: Floats
    by_token: Floats


class MaskTokens:
    """Mask tokens in the dtype and on the device of their base."""

    def __init__(self, weights: dict[str, Tensor], base: Tensor, head: Tensor) -> None:
        """``weights`` by name; ``base`` and ``head``: embeddings [vocabulary, width] of the base
        before and after its layers.

        Raises BrokenModel where weights are missing or do not fit the base.
        """
        layers = sum(name.endswith(".qkv.down") for name in weights)
        try:
            self.embeddings = weights["embeddings"].to(base)
            self.paths: list[Paths] = [
                {name: _low_rank(weights, f"layers.{number}.{name}", base) for name in PROJECTIONS}
                for number in range(layers)
            ]
            self.sampler = _sampler(weights, base) if "sampler.out" in weights else None
            self.pooling = weights["pooling"].float().numpy() if "pooling" in weights else None
        except KeyError as error:
            raise BrokenModel(f"{FILE} lacks {error}; train it again") from error
        if self.embeddings.shape[1] != base.shape[1]:
            raise BrokenModel(f"{FILE} is of another width than its base; train it again")
        self._head = head

    @property
    def count(self) -> int:
        """Rows of a group that were trained."""
        return len(self.embeddings)

    def rows(self, places: NDArray[np.int32]) -> Tensor:
        """Embeddings [rows, width] of mask tokens by their places in a group. Places beyond the
        last trained one take its embedding."""
        known = torch.from_numpy(np.minimum(places, self.count - 1))
        return self.embeddings[known.to(self.embeddings.device)]

    def head_of(self, tokens: NDArray[np.int32]) -> Floats:
        """Rows [n, width] of the base's head."""
        rows = self._head[torch.from_numpy(tokens).to(self._head.device)]
        found: Floats = rows.float().cpu().numpy()
        return found


def _sampler(weights: dict[str, Tensor], base: Tensor) -> Sampler:
    state, token, memory, out = (weights[f"sampler.{name}"].float() for name in _SAMPLER)
    by_token = torch.nn.functional.linear(base.float().cpu(), token)
    return Sampler(state.numpy(), memory.numpy(), out.numpy(), by_token.numpy())


_SAMPLER = ("state", "token", "memory", "out")


def _low_rank(weights: dict[str, Tensor], name: str, like: Tensor) -> LowRank:
    down, up = (weights[f"{name}.{part}"].to(like) for part in ("down", "up"))
    return LowRank(down.T.contiguous(), up.T.contiguous())


def read_weights(file: Path, base_sha256: str | None = None) -> dict[str, Tensor]:
    """The weights in ``file``, whatever its base when no ``base_sha256`` is given.

    Raises BrokenModel for a damaged file, UnsupportedModel for one made for another base.
    """
    try:
        with safe_open(file, framework="pt") as stored:
            metadata = stored.metadata() or {}
            weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise BrokenModel(f"{file} cannot be read ({error}); train it again") from error
    if base_sha256 is not None and metadata.get("base_sha256") != base_sha256:
        raise UnsupportedModel(
            f"{file} belongs to other weights than those beside it; train it again with "
            f"`redraft train {file.stem}`"
        )
    return weights


def save_weights(file: Path, weights: dict[str, Tensor], base_sha256: str) -> None:
    """Replace ``file`` by ``weights``, bfloat16 where they are no whole numbers, for the base of
    that sha256."""
    part = file.with_suffix(".part")
    tensors = {
        name: weight.detach().to(_stored_as(weight)).contiguous()
        for name, weight in weights.items()
    }
    save_file(tensors, part, metadata={"base_sha256": base_sha256})
    os.replace(part, file)


def _stored_as(weight: Tensor) -> torch.dtype:
    return torch.bfloat16 if weight.is_floating_point() else weight.dtype


def sha256_of_base(folder: Path) -> str:
    """Names the weights of a model folder, all its safetensors but ours."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        if file.name not in (FILE, SPECULATOR_FILE):
            with file.open("rb") as stream:
                while block := stream.read(1 << 24):
                    digest.update(block)
    return digest.hexdigest()
