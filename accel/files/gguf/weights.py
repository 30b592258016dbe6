"""The weights of a decoder in a GGUF file, by the names and in the order of rows of our forward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
from accel.files.hybrid import KERNEL, Hybrid, gated_query_rows, head_rows, turned_order

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
    order: NDArray[np.int64] | None = None
    """The rows of the tensor that are its own, in order; all where None."""
    whole: tuple[int, ...] | None = None
    """The shape of the tensor, where these are a part of it."""


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
            shape = part.whole or part.shape
            if tensor.shape != shape:
                raise BrokenModel(
                    f"{file.path}: {part.tensor} is {_by(tensor.shape)} where {_by(shape)} belongs",
                    AGAIN,
                )
            if not can_be_read(tensor.type):
                raise UnsupportedModel(
                    f"{file.path} has weights of type {tensor.type.name}, which are not known here",
                    OTHER_TYPE,
                )
            self.parts[name] = part
        left = set(file.tensors) - {part.tensor for part in self.parts.values()} - {FACTORS}
        layers = range(architecture.layers, architecture.layers + architecture.passed_over)
        passed_over = tuple(f"blk.{layer}." for layer in layers)
        left = {name for name in left if not (passed_over and name.startswith(passed_over))}
        if left:
            raise UnsupportedModel(
                f"{file.path} has weights such as {shown(min(left))} that are not known here",
                ADVICE,
            )

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def stored_as(self, name: str) -> tuple[GgmlType, int]:
        """The type of a part's blocks, and the bytes of all."""
        part = self.parts[name]
        tensor = self._file.tensors[part.tensor]
        share = part.shape[0] / part.whole[0] if part.whole else 1
        return tensor.type, int(tensor.nbytes * share)

    def rows(self, name: str) -> tuple[NDArray[np.uint8], GgmlType]:
        """Rows of bytes [rows, row_bytes] in our order, as they are stored; the part's ``scale`` is
        not in them. Raises BrokenModel when the file has become shorter."""
        part, kind = self.parts[name], self._file.tensors[self.parts[name].tensor].type
        data = self._file.read(part.tensor)
        if part.order is not None:
            if len(part.shape) == 1:
                data = data.reshape(len(part.order), -1)
            return np.ascontiguousarray(data[part.order]), kind
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
    if found.hybrid is not None:
        yield from _hybrid_parts(found, found.hybrid)
        return
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


def _hybrid_parts(found: Architecture, hybrid: Hybrid) -> Iterator[tuple[str, TensorSource]]:
    """The layers of a hybrid. Queries and the gate of the output are one tensor."""
    hidden_size, width, size = found.hidden_size, found.intermediate_size, found.head_dim
    queries, keys = found.heads * size, found.kv_heads * size
    rotary = hybrid.rotary_dim
    query_rows, gate_rows = gated_query_rows(found.heads, size, rotary)
    key_rows, order = head_rows(found.kv_heads, size, rotary), turned_order(size, rotary)
    both = 2 * queries, hidden_size
    heads, values = hybrid.value_heads, hybrid.value_size
    every = (
        ("input_layernorm.weight", TensorSource("attn_norm.weight", (hidden_size,))),
        (
            "post_attention_layernorm.weight",
            TensorSource("post_attention_norm.weight", (hidden_size,)),
        ),
        ("mlp.gate_proj.weight", TensorSource("ffn_gate.weight", (width, hidden_size))),
        ("mlp.up_proj.weight", TensorSource("ffn_up.weight", (width, hidden_size))),
        ("mlp.down_proj.weight", TensorSource("ffn_down.weight", (hidden_size, width))),
    )
    attention = (
        (
            "q_proj.weight",
            TensorSource("attn_q.weight", (queries, hidden_size), order=query_rows, whole=both),
        ),
        (
            "output_gate.weight",
            TensorSource("attn_q.weight", (queries, hidden_size), order=gate_rows, whole=both),
        ),
        ("k_proj.weight", TensorSource("attn_k.weight", (keys, hidden_size), order=key_rows)),
        ("v_proj.weight", TensorSource("attn_v.weight", (keys, hidden_size))),
        ("o_proj.weight", TensorSource("attn_output.weight", (hidden_size, queries))),
        ("q_norm.weight", TensorSource("attn_q_norm.weight", (size,), order=order)),
        ("k_norm.weight", TensorSource("attn_k_norm.weight", (size,), order=order)),
    )
    delta_net = (
        ("in_proj_qkv.weight", TensorSource("attn_qkv.weight", (hybrid.channels, hidden_size))),
        ("in_proj_z.weight", TensorSource("attn_gate.weight", (values, hidden_size))),
        ("in_proj_b.weight", TensorSource("ssm_beta.weight", (heads, hidden_size))),
        ("in_proj_a.weight", TensorSource("ssm_alpha.weight", (heads, hidden_size))),
        ("conv1d.weight", TensorSource("ssm_conv1d.weight", (hybrid.channels, KERNEL))),
        ("A", TensorSource("ssm_a", (heads,))),
        ("dt_bias", TensorSource("ssm_dt.bias", (heads,))),
        ("norm.weight", TensorSource("ssm_norm.weight", (hybrid.value_dim,))),
        ("out_proj.weight", TensorSource("ssm_out.weight", (hidden_size, values))),
    )
    for layer in range(found.layers):
        is_delta_net = layer in hybrid.layers
        mixer = "linear_attn" if is_delta_net else "self_attn"
        of_mixer = [
            (f"{mixer}.{name}", part) for name, part in (delta_net if is_delta_net else attention)
        ]
        for name, part in [*every, *of_mixer]:
            yield f"model.layers.{layer}.{name}", replace(part, tensor=f"blk.{layer}.{part.tensor}")


def _by(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape))
