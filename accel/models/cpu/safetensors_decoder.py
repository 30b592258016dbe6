"""A folder's decoder for the compiled forward, read without torch and transformers."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel
from accel.files.decoder_tensors import EMBEDDING, HEAD, decoder_tensors
from accel.files.folder_architecture import FolderArchitecture
from accel.files.rope import rope_table
from accel.files.safetensors import AGAIN, first_byte
from accel.models.cpu.attention import Floats
from accel.models.cpu.decoder import Decoder, decoder_for
from accel.models.cpu.named_tensors import packed_weights, quantised_weights, widened
from accel.models.cpu.quantised.matrix import QuantisedMatrix
from accel.models.model_file import FolderModel

_TYPES: dict[str, np.dtype[Any]] = {
    "BF16": np.dtype(np.int16),
    "F16": np.dtype(np.float16),
    "F32": np.dtype(np.float32),
}
"""The dtype of stored numbers: bf16 as bits."""


def read_decoder(model: FolderModel, dtype: str) -> Decoder:
    """Return the decoder of a folder that has a compiled forward, in ``fp32`` or ``int8``. Raises
    BrokenModel for weights that are no numbers."""
    architecture = model.architecture
    assert architecture is not None, "its caller asks first"
    tensors, matrices = _FolderTensors(architecture), list[QuantisedMatrix]()

    def matrix_of(name: str) -> QuantisedMatrix:
        numbers = tensors.numbers(name)
        with np.errstate(invalid="ignore", over="ignore"):
            matrix = QuantisedMatrix.from_numbers(
                lambda first, last: widened(numbers[first:last]), *numbers.shape
            )
        if not matrix.is_finite:
            tensors.refuse(name)
        matrices.append(matrix)
        return matrix

    is_rounded = dtype == "int8"
    weights = quantised_weights(tensors, matrix_of) if is_rounded else packed_weights(tensors)
    return decoder_for(
        *(architecture, weights, dtype),
        cos_sin=lambda positions: rope_table(architecture.frequencies, 1.0, positions),
        matrices=tuple(matrices),
        end_tokens=architecture.end_tokens,
    )


class _FolderTensors:
    """The tensors of a folder, as it has them."""

    def __init__(self, architecture: FolderArchitecture) -> None:
        self._found, self.layers, self.hybrid = (
            architecture,
            architecture.layers,
            architecture.hybrid,
        )
        self._orders = {tensor.name: tensor.order for tensor in decoder_tensors(architecture)}
        self.is_tied = architecture.tensors[HEAD] == architecture.tensors[EMBEDDING]
        self._files = {
            file: np.memmap(file, np.uint8, "r", offset=first_byte(file))
            for file in {file for file, _ in architecture.tensors.values()}
        }

    def __contains__(self, name: str) -> bool:
        return name in self._found.tensors

    def numbers(self, name: str) -> NDArray[Any]:
        file, entry = self._found.tensors[name]
        stored = self._files[file][entry.start : entry.end].view(_TYPES[entry.dtype])
        stored, order = stored.reshape(entry.shape), self._orders[name]
        return stored if order is None else stored[order]

    def values(self, name: str) -> Floats:
        values = widened(self.numbers(name))
        if not np.isfinite(values).all():
            self.refuse(name)
        if name.endswith(".A"):
            return -np.exp(values)
        is_centred = name.endswith("norm.weight") and not name.endswith("linear_attn.norm.weight")
        return values + np.float32(1) if self.hybrid and is_centred else values

    def refuse(self, name: str) -> NoReturn:
        """Raise BrokenModel for a tensor that has values that are no numbers."""
        file, _ = self._found.tensors[name]
        raise BrokenModel(f"{file}: {name} has values that are no numbers", AGAIN)
