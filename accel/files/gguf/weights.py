"""The weights of a decoder in a GGUF file, by the names and in the order of rows of our forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.gguf.architecture import ADVICE, Architecture
from accel.files.gguf.block_types import GgmlType
from accel.files.gguf.dequantise import can_be_read, dequantise
from accel.files.gguf.file import GgufFile
from accel.files.gguf.header import shown
from accel.files.gguf.metadata import AGAIN, OTHER_TYPE
from accel.files.gguf.rope_frequencies import FACTORS

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True, slots=True)
class TensorSource:
    """A weight of our forward and where it comes from."""

    tensor: str
    """Its name in the file."""
    shape: tuple[int, ...]
    scale: float = 1.0
    """What its values are multiplied by."""
    interleaved_heads: int = 0
    """Heads whose rows lie in Llama's order, 0 for rows in our order."""
    is_needed: bool = True


class GgufWeights:
    """The weights of one file, by the names of transformers (``model.layers.0.mlp.up_proj``)."""

    def __init__(self, file: GgufFile, architecture: Architecture) -> None:
        """Raises BrokenModel for weights that are missing or of another size, UnsupportedModel for
        such that our forward has no place for."""
        self._file = file
        self.parts: dict[str, TensorSource] = {}
        for name, part in _parts(architecture):
            tensor = file.tensors.get(part.tensor)
            if tensor is None and not part.is_needed:
                continue
            if tensor is None:
                raise BrokenModel(f"{file.path} lacks {part.tensor}", AGAIN)
            if tensor.shape != part.shape:
                raise BrokenModel(
                    f"{file.path}: {part.tensor} is {_by(tensor.shape)} where {_by(part.shape)} "
                    "belongs",
                    AGAIN,
                )
            if not can_be_read(tensor.type):
                raise UnsupportedModel(
                    f"{file.path} has weights of type {tensor.type.name}, which are not known here",
                    OTHER_TYPE,
                )
            self.parts[name] = part
        left = set(file.tensors) - {part.tensor for part in self.parts.values()} - {FACTORS}
        if left:
            raise UnsupportedModel(
                f"{file.path} has weights such as {shown(min(left))} that are not known here",
                ADVICE,
            )

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def stored_as(self, name: str) -> tuple[GgmlType, int]:
        """The type of a part's blocks, and the bytes of all."""
        tensor = self._file.tensors[self.parts[name].tensor]
        return tensor.type, tensor.nbytes

    def rows(self, name: str) -> tuple[NDArray[np.uint8], GgmlType]:
        """Rows of bytes [rows, row_bytes] in our order, as they are stored; the part's ``scale`` is
        not in them. Raises BrokenModel when the file has become shorter."""
        part, kind = self.parts[name], self._file.tensors[self.parts[name].tensor].type
        data = self._file.read(part.tensor)
        if not part.interleaved_heads:
            return data, kind
        if len(part.shape) == 1 and kind.values > 1:
            raise UnsupportedModel(f"{self._file.path}: {part.tensor} is quantised", ADVICE)
        # A bias is as many rows of one value.
        by_pairs = data.reshape(
            part.interleaved_heads, part.shape[0] // part.interleaved_heads // 2, 2, -1
        )
        return np.ascontiguousarray(by_pairs.swapaxes(1, 2)).reshape(data.shape), kind

    def values(self, name: str) -> NDArray[np.float32]:
        """Values, scaled, in their shape. Raises BrokenModel for such that are not finite, too."""
        part = self.parts[name]
        data, kind = self.rows(name)
        found = dequantise(data, kind)
        if part.scale != 1:
            found *= np.float32(part.scale)
        if not np.isfinite(found).all():
            raise BrokenModel(
                f"{self._file.path}: {part.tensor} has values that are no numbers", AGAIN
            )
        return found.reshape(part.shape)


def _parts(found: Architecture) -> Iterator[tuple[str, TensorSource]]:
    hidden_size, scale = found.hidden_size, found.added_scale
    yield EMBEDDING, TensorSource("token_embd.weight", (found.vocabulary, hidden_size))
    yield "model.norm.weight", TensorSource("output_norm.weight", (hidden_size,), found.logit_scale)
    yield HEAD, TensorSource("output.weight", (found.vocabulary, hidden_size), is_needed=False)
    queries, keys = found.heads * found.head_dim, found.kv_heads * found.head_dim
    interleaved = (found.heads, found.kv_heads) if found.family.is_interleaved else (0, 0)
    for layer in range(found.layers):
        ours, theirs = f"model.layers.{layer}", f"blk.{layer}"
        yield (
            f"{ours}.input_layernorm.weight",
            TensorSource(f"{theirs}.attn_norm.weight", (hidden_size,)),
        )
        yield (
            f"{ours}.post_attention_layernorm.weight",
            TensorSource(f"{theirs}.ffn_norm.weight", (hidden_size,)),
        )
        for name, tensor, rows, columns, factor, heads in (
            ("self_attn.q_proj", "attn_q", queries, hidden_size, 1.0, interleaved[0]),
            ("self_attn.k_proj", "attn_k", keys, hidden_size, 1.0, interleaved[1]),
            ("self_attn.v_proj", "attn_v", keys, hidden_size, 1.0, 0),
            ("self_attn.o_proj", "attn_output", hidden_size, queries, scale, 0),
            ("mlp.gate_proj", "ffn_gate", found.intermediate_size, hidden_size, 1.0, 0),
            ("mlp.up_proj", "ffn_up", found.intermediate_size, hidden_size, 1.0, 0),
            ("mlp.down_proj", "ffn_down", hidden_size, found.intermediate_size, scale, 0),
        ):
            matrix = TensorSource(f"{theirs}.{tensor}.weight", (rows, columns), factor, heads)
            yield f"{ours}.{name}.weight", matrix
            bias = TensorSource(f"{theirs}.{tensor}.bias", (rows,), factor, heads, is_needed=False)
            yield f"{ours}.{name}.bias", bias
        if found.family.norms_heads:
            for name, tensor in (("q_norm", "attn_q_norm"), ("k_norm", "attn_k_norm")):
                part = TensorSource(f"{theirs}.{tensor}.weight", (found.head_dim,))
                yield f"{ours}.self_attn.{name}.weight", part


def _by(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape))
