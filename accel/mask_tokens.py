"""Mask tokens: embeddings, low-rank path and sampler of rows that guess ahead on a frozen base.

``adaptive.safetensors`` beside a model's weights holds

    embeddings                          [masks, width]
    layers.N.PROJECTION.down, .up       [rank, in], [out, rank]; PROJECTION: qkv, output, gate_up,
                                        down, as ``accel.llama`` fuses them
    sampler.state, .token, .memory, .out  [width, width]

and, as metadata, the sha256 of the base that it was trained on; it is worth nothing on another.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.nn.functional import embedding, linear, silu

from accel.errors import BrokenModel, UnsupportedModel
from accel.linear import Linear

FILE = "adaptive.safetensors"
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


class MaskTokens:
    """Mask tokens in the dtype and on the device of their base."""

    def __init__(self, weights: dict[str, Tensor], embeddings: Tensor, head: Linear) -> None:
        """``weights`` by name; ``embeddings`` and ``head`` of the base.

        Raises BrokenModel where weights are missing or do not fit the base.
        """
        kind = {"dtype": embeddings.dtype, "device": embeddings.device}
        try:
            self.embeddings = weights["embeddings"].to(**kind)
            count = sum(name.endswith(".qkv.down") for name in weights)
            self.paths: list[Paths] = [
                {name: _low_rank(weights, f"layers.{number}.{name}", kind) for name in PROJECTIONS}
                for number in range(count)
            ]
            self._state, self._token, self._memory, self._out = (
                weights[f"sampler.{name}"].to(**kind) for name in _SAMPLER
            )
        except KeyError as error:
            raise BrokenModel(f"{FILE} lacks {error}; train it again") from error
        if self.embeddings.shape[1] != embeddings.shape[1]:
            raise BrokenModel(f"{FILE} is of another width than its base; train it again")
        self._embeddings = embeddings
        self._head = head

    @property
    def count(self) -> int:
        """Mask tokens of a group at most, for guesses of trained quality."""
        return len(self.embeddings)

    def rows(self, places: Tensor) -> Tensor:
        """Embeddings of mask tokens by their place in the group, int64 [rows]. Places beyond the
        last trained one take its embedding."""
        return self.embeddings[places.clamp(max=self.count - 1)]

    def logits(self, states: Tensor) -> Tensor:
        """Guesses of normalised states [rows, width] alone: logits [rows, vocabulary]."""
        return self._head(states)

    def known(self, states: Tensor) -> Tensor:
        """What the sampler takes from states [rows, width], once for a group."""
        return linear(states, self._state)

    def sample(
        self, state: Tensor, known: Tensor, tokens: Tensor, memory: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Logits [n, vocabulary] after each of ``tokens`` (int64 [n]), and the new memory.

        state, known: [width] of the row that guesses; memory: [n, width] of each token's path,
        None for the first row of a group.
        """
        inner = linear(embedding(tokens, self._embeddings), self._token) + known
        if memory is not None:
            inner = inner + linear(memory, self._memory)
        memory = silu(inner)
        return self._head(state + linear(memory, self._out)), memory


_SAMPLER = ("state", "token", "memory", "out")


def _low_rank(weights: dict[str, Tensor], name: str, kind: dict[str, object]) -> LowRank:
    down, up = (weights[f"{name}.{part}"].to(**kind) for part in ("down", "up"))  # type: ignore
    return LowRank(down.T.contiguous(), up.T.contiguous())


def read_weights(file: Path, base_sha256: str) -> dict[str, Tensor]:
    """The weights in ``file``.

    Raises BrokenModel for a damaged file, UnsupportedModel for one made for another base.
    """
    try:
        with safe_open(file, framework="pt") as stored:  # type: ignore[no-untyped-call]
            metadata = stored.metadata() or {}
            weights = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise BrokenModel(f"{file} cannot be read ({error}); train it again") from error
    if metadata.get("base_sha256") != base_sha256:
        raise UnsupportedModel(
            f"{file} belongs to other weights than those beside it; train it again with "
            "`redraft train adaptive`"
        )
    return weights


def save_weights(file: Path, weights: dict[str, Tensor], base_sha256: str) -> None:
    """Replace ``file`` by ``weights`` in bfloat16, for the base of that sha256."""
    part = file.with_suffix(".part")
    tensors = {
        name: weight.detach().to(torch.bfloat16).contiguous() for name, weight in weights.items()
    }
    save_file(tensors, part, metadata={"base_sha256": base_sha256})
    os.replace(part, file)


def sha256_of_base(folder: Path) -> str:
    """Names the weights of a model folder, all its safetensors but ours."""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        if file.name != FILE:
            with file.open("rb") as stream:
                while block := stream.read(1 << 24):
                    digest.update(block)
    return digest.hexdigest()
