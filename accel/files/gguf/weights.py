"""The weights of a decoder in a GGUF file, by the names and in the order of rows of our forward."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.decoder_tensors import Architecture, DecoderTensor, decoder_tensors
from accel.files.gguf.architecture import ADVICE
from accel.files.gguf.dequantise import can_be_read, dequantise
from accel.files.gguf.file import GgufFile
from accel.files.gguf.header import GgmlType, shown
from accel.files.gguf.metadata import AGAIN, OTHER_TYPE
from accel.files.gguf.rope_frequencies import FACTORS


class GgufWeights:
    """The weights of one file, by the names of transformers (``model.layers.0.mlp.up_proj``)."""

    def __init__(self, file: GgufFile, architecture: Architecture) -> None:
        """Raise BrokenModel for weights that are missing or of another size, UnsupportedModel for
        those that our forward does not use."""
        self._file = file
        self.parts: dict[str, DecoderTensor] = {}
        for source in decoder_tensors(architecture):
            tensor = file.tensors.get(source.tensor)
            if tensor is None and not source.is_needed:
                continue
            if tensor is None:
                raise BrokenModel(f"{file.path} lacks {source.tensor}", AGAIN)
            shape = source.whole or source.shape
            if tensor.shape != shape:
                raise BrokenModel(
                    f"{file.path}: {source.tensor} is {_by(tensor.shape)} where {_by(shape)} "
                    "belongs",
                    AGAIN,
                )
            if not can_be_read(tensor.type):
                raise UnsupportedModel(
                    f"{file.path} has weights of type {tensor.type.name}, which are not known here",
                    OTHER_TYPE,
                )
            self.parts[source.name] = source
        unused = set(file.tensors) - {source.tensor for source in self.parts.values()} - {FACTORS}
        layers = range(architecture.layers, architecture.layers + architecture.passed_over)
        passed_over = tuple(f"blk.{layer}." for layer in layers)
        unused = {name for name in unused if not (passed_over and name.startswith(passed_over))}
        if unused:
            raise UnsupportedModel(
                f"{file.path} has weights such as {shown(min(unused))} that are not known here",
                ADVICE,
            )

    def __contains__(self, name: str) -> bool:
        return name in self.parts

    def stored_as(self, name: str) -> tuple[GgmlType, int]:
        """Return the type of a part's blocks, and the bytes of all."""
        source = self.parts[name]
        tensor = self._file.tensors[source.tensor]
        share = source.shape[0] / source.whole[0] if source.whole else 1
        return tensor.type, int(tensor.nbytes * share)

    def rows(self, name: str) -> tuple[NDArray[np.uint8], GgmlType]:
        """Return rows of bytes [rows, row_bytes] in our order, as they are stored; the part's
        ``scale`` is not in them. Raises BrokenModel when the file has become shorter."""
        source, kind = self.parts[name], self._file.tensors[self.parts[name].tensor].type
        data = self._file.read(source.tensor)
        if source.order is not None:
            if len(source.shape) == 1:
                data = data.reshape(len(source.order), -1)
            return np.ascontiguousarray(data[source.order]), kind
        if not source.interleaved_heads:
            return data, kind
        if len(source.shape) == 1 and kind.values > 1:
            raise UnsupportedModel(f"{self._file.path}: {source.tensor} is quantised", ADVICE)
        # A bias is as many rows of one value.
        by_pairs = data.reshape(
            source.interleaved_heads, source.shape[0] // source.interleaved_heads // 2, 2, -1
        )
        return np.ascontiguousarray(by_pairs.swapaxes(1, 2)).reshape(data.shape), kind

    def values(self, name: str) -> NDArray[np.float32]:
        """Return values, scaled, in their shape. Raises BrokenModel for such that are not finite,
        too."""
        source = self.parts[name]
        data, kind = self.rows(name)
        values = dequantise(data, kind)
        if source.scale != 1:
            values *= np.float32(source.scale)
        if not np.isfinite(values).all():
            raise BrokenModel(
                f"{self._file.path}: {source.tensor} has values that are no numbers", AGAIN
            )
        if name.endswith(".linear_attn.A") and (values > 0).any():
            raise BrokenModel(
                f"{self._file.path}: {source.tensor} is above zero, so that states would grow for "
                "ever; it was converted wrongly",
                "give a file of another conversion",
            )
        return values.reshape(source.shape)


def _by(shape: tuple[int, ...]) -> str:
    return " by ".join(map(str, shape))
