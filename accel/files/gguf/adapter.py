"""Adds a LoRA adapter to a model in a GGUF file, with NumPy alone.

An adapter is a safetensors file. For each projection ``p`` of ``PROJECTIONS`` it has ``p.A`` int8
[layers, rank, in] with ``p.A.scale`` f16 [layers, rank], and ``p.B`` int8 [layers, out, rank] with
``p.B.scale`` f16 [layers, out]: the weight of a layer becomes base + (B * scale) @ (A * scale), in
the order of rows that transformers has. ``fim_embeddings`` f32 [3, hidden_size] may be there, too:
it is added to the rows of three tokens of the base, which the adapter's metadata names in
``fim_tokens`` and which become the tokens to fill in the middle. How many lines around the code to
edit it was shown is in ``edit_lines``. (Hu et al., LoRA, arXiv 2106.09685.)

The file that comes out is the same, to the byte, on every machine: see ``Adapter.delta``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.decoder_tensors import EMBEDDING, HEAD, DecoderTensor
from accel.files.gguf.architecture import read_architecture
from accel.files.gguf.dequantise import dequantise
from accel.files.gguf.file import GgufFile
from accel.files.gguf.metadata import StringArray
from accel.files.gguf.vocabulary import EDIT_LINES_KEY
from accel.files.gguf.weights import GgufWeights
from accel.files.gguf.writing import NewTensor, entry, q8_0, write_gguf
from operating_system.files import replace_file

PROJECTIONS = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "g": "mlp.gate_proj",
    "u": "mlp.up_proj",
    "d": "mlp.down_proj",
}
"""Names of matrices in an adapter, and in transformers."""
EDIT_LINES = 12
"""Lines above and below the code to edit in samples of adapters that do not say how many."""
FIM_TOKENS = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")

_TOKENS = "tokenizer.ggml.tokens"
_FIM_KEYS = ("fim_pre", "fim_suf", "fim_mid")
_REPOSITORY_KEYS = ("fim_rep", "fim_sep")
_FILE_TYPE_Q8_0 = 7
_LEFT_OUT = ("general.alignment", "split.")
"""Of the base's header: how it was laid out."""
_LARGEST_SCALE = 32.0
_LARGEST_RANK = 512
"""Rank up to which products of two int8 and such a scale sum up exactly in float64."""
assert _LARGEST_RANK * 127 * 128 * _LARGEST_SCALE < 2**29


class Adapter:
    """An adapter's file, read whole."""

    def __init__(self, path: Path) -> None:
        """Raise BrokenModel for a file that is no adapter."""
        self.path = path
        try:
            with safe_open(path, "numpy") as file:
                self._metadata = file.metadata() or {}
                self._parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, TypeError) as error:
            raise BrokenModel(f"{path} is no adapter ({error})", "give another file") from error
        for name in self.projections:
            self._check(name)
        self.fim_embeddings: NDArray[np.float32] | None = self._parts.get("fim_embeddings")
        self.fim_tokens = self._numbers("fim_tokens", 3)
        self.repository_tokens = self._numbers("repository_tokens", 2)
        self.edit_lines = (self._numbers("edit_lines", 1) or [EDIT_LINES])[0]
        self.name = self._metadata.get("name", "")
        self.base_sha256 = self._metadata.get("base_sha256", "")
        """Of the GGUF file that it was trained on, where it says so."""
        if self.fim_embeddings is not None and not self.fim_tokens:
            raise self._broken("has embeddings and does not say of which tokens")
        if not self.projections and self.fim_embeddings is None:
            raise self._broken("has nothing to add")

    @property
    def projections(self) -> list[str]:
        """Those that it changes, as ``PROJECTIONS`` names them."""
        return [name for name in PROJECTIONS if f"{name}.A" in self._parts]

    @property
    def layers(self) -> int:
        """Of the model that it is for, 0 where it changes none."""
        return len(self._parts[f"{self.projections[0]}.A"]) if self.projections else 0

    def shape(self, projection: str) -> tuple[int, int]:
        """Of the matrix [out, in]."""
        return self._parts[f"{projection}.B"].shape[1], self._parts[f"{projection}.A"].shape[2]

    def delta(self, projection: str, layer: int) -> NDArray[np.float64]:
        """Return the delta of a layer's matrix, [out, in]: exact sums, as every f16 is a whole
        number of 2^-24 and the limits of rank and scale keep sums in the 53 bits of a float64. Only
        the product with B's scale is rounded, once."""
        a, b = self._parts[f"{projection}.A"][layer], self._parts[f"{projection}.B"][layer]
        scale_of_a = self._parts[f"{projection}.A.scale"][layer]
        scale_of_b = self._parts[f"{projection}.B.scale"][layer]
        sums = b.astype(np.float64) @ (
            a.astype(np.float64) * scale_of_a.astype(np.float64)[:, None]
        )
        sums *= scale_of_b.astype(np.float64)[:, None]
        return sums

    def _check(self, name: str) -> None:
        """Raise BrokenModel where a projection's four tensors do not go together."""
        names = f"{name}.A", f"{name}.B", f"{name}.A.scale", f"{name}.B.scale"
        if any(name_of_part not in self._parts for name_of_part in names):
            raise self._broken(f"lacks a part of {name}")
        a, b, *scales = (self._parts[name_of_part] for name_of_part in names)
        types = [name_of_part.dtype for name_of_part in (a, b, *scales)]
        if types != [np.int8, np.int8, np.float16, np.float16]:
            raise self._broken(f"has {name} in another type")
        layers, rank, _ = a.shape if a.ndim == 3 else (0, 0, 0)
        fits = b.ndim == 3 and (len(b), b.shape[2]) == (layers, rank)
        scaled = [name_of_part.shape for name_of_part in scales] == [(layers, rank), b.shape[:2]]
        if not (fits and scaled and 0 < rank <= _LARGEST_RANK):
            raise self._broken(f"has {name} in a size that cannot be")
        # A scale that is no number is not smaller than anything.
        if not max(float(np.abs(name_of_part).max()) for name_of_part in scales) <= _LARGEST_SCALE:
            raise self._broken(f"has too large a scale for {name}")

    def _numbers(self, key: str, count: int) -> list[int]:
        words = self._metadata.get(key, "").split()
        if len(words) not in (0, count) or not all(word.isdecimal() for word in words):
            raise self._broken(f"has no {count} tokens in {key}")
        return list(map(int, words))

    def _broken(self, why: str) -> BrokenModel:
        return BrokenModel(f"{self.path} is no adapter: it {why}", "give another file")


def add_adapter(
    base: Path, adapter: Path, out: Path, on_progress: Callable[[float], None] = lambda _: None
) -> None:
    """Write the base with the adapter as a GGUF file, whole or not at all. Matrices that change
    become Q8_0. on_progress hears which share is done; what it raises ends the work. Raises
    ModelError, and OSError where ``out`` cannot be written."""
    added = Adapter(adapter)
    unfinished = out.with_name(f"{out.name}.unfinished")
    with GgufFile(base) as file:
        tensors = _tensors(file, added)
        entries = _entries(file, added)
        try:
            with unfinished.open("wb") as stream:
                write_gguf(stream, entries, tensors, on_progress)
                stream.flush()
                os.fsync(stream.fileno())
            replace_file(unfinished, out)
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


def _tensors(file: GgufFile, adapter: Adapter) -> list[NewTensor]:
    weights = GgufWeights(file, read_architecture(file))
    changed = {
        weights.parts[f"model.layers.{layer}.{PROJECTIONS[name]}.weight"].tensor: (name, layer)
        for name in adapter.projections
        for layer in range(_layers(file, adapter, weights))
    }
    sources = {source.tensor: source for source in weights.parts.values()}
    head = weights.parts.get(HEAD)
    if adapter.fim_embeddings is not None and head is not None:
        raise UnsupportedModel(
            f"{file.path} has a head of its own, and {adapter.path} is for a model without",
            "give the model that the adapter was trained on",
        )
    embedding = weights.parts[EMBEDDING].tensor
    tensors = []
    for name, tensor in file.tensors.items():
        kind = tensor.type.name
        rows = partial(file.read, name)
        if name in changed:
            projection, layer = changed[name]
            if adapter.shape(projection) != tensor.shape:
                raise _is_for_another(file, adapter)
            kind = "Q8_0"
            rows = partial(_with_delta, file, adapter, sources[name], projection, layer)
        elif name == embedding and adapter.fim_embeddings is not None:
            if adapter.fim_embeddings.shape != (3, tensor.shape[1]):
                raise _is_for_another(file, adapter)
            kind = kind if kind in ("Q8_0", "F32") else "Q8_0"
            rows = partial(_with_fim_rows, file, adapter, name, kind)
        tensors.append(NewTensor(name, kind, tensor.shape, rows))
    return tensors


def _layers(file: GgufFile, adapter: Adapter, weights: GgufWeights) -> int:
    last = f"model.layers.{adapter.layers - 1}.mlp.down_proj.weight"
    next_layer = f"model.layers.{adapter.layers}.mlp.down_proj.weight"
    if adapter.layers and (last not in weights or next_layer in weights):
        raise _is_for_another(file, adapter)
    return adapter.layers


def _is_for_another(file: GgufFile, adapter: Adapter) -> UnsupportedModel:
    return UnsupportedModel(
        f"{adapter.path} is for a model of another size than {file.path}",
        "give the model that the adapter was trained on",
    )


def _with_delta(
    file: GgufFile, adapter: Adapter, source: DecoderTensor, projection: str, layer: int
) -> NDArray[np.uint8]:
    values = dequantise(file.read(source.tensor), file.tensors[source.tensor].type)
    delta = adapter.delta(projection, layer)
    if source.interleaved_heads:
        halves = delta.reshape(source.interleaved_heads, 2, -1, delta.shape[1])
        delta = halves.swapaxes(1, 2).reshape(delta.shape)
    return q8_0(_finite((values + delta).astype(np.float32), file, source.tensor))


def _with_fim_rows(file: GgufFile, adapter: Adapter, tensor: str, kind: str) -> NDArray[np.uint8]:
    """Return the embedding: three rows change, the others stay as stored where they can."""
    assert adapter.fim_embeddings is not None
    stored, was = file.read(tensor), file.tensors[tensor].type
    rows = stored if was.name == kind else q8_0(dequantise(stored, was))
    values = dequantise(stored[adapter.fim_tokens], was) + adapter.fim_embeddings
    changed = _finite(values, file, tensor)
    rows[adapter.fim_tokens] = q8_0(changed) if kind == "Q8_0" else changed.view(np.uint8)
    return rows


def _finite(values: NDArray[np.float32], file: GgufFile, tensor: str) -> NDArray[np.float32]:
    if not np.isfinite(values).all():
        raise BrokenModel(f"{file.path}: {tensor} has values that are no numbers", "fetch it again")
    return values


def _entries(file: GgufFile, adapter: Adapter) -> list[bytes]:
    """Return the header: that of the base, and what the adapter changes of it."""
    changed: dict[str, bytes] = {
        "general.file_type": entry("general.file_type", _FILE_TYPE_Q8_0),
        EDIT_LINES_KEY: entry(EDIT_LINES_KEY, adapter.edit_lines),
    }
    if adapter.name:
        changed["general.name"] = entry("general.name", adapter.name)
    if adapter.fim_embeddings is not None:
        changed[_TOKENS] = entry(_TOKENS, _renamed(file, adapter))
        named = zip(_FIM_KEYS, adapter.fim_tokens, strict=True)
        repository = zip(_REPOSITORY_KEYS, adapter.repository_tokens, strict=False)
        for key, token in (*named, *repository):
            name = f"tokenizer.ggml.{key}_token_id"
            changed[name] = entry(name, token)
    used = [key for key in file.metadata if not key.startswith(_LEFT_OUT)]
    entries = [changed.pop(key) if key in changed else file.entry(key) for key in used]
    return [*entries, *changed.values()]


def _renamed(file: GgufFile, adapter: Adapter) -> list[bytes]:
    tokens = file.metadata.value(_TOKENS)
    names = tokens.encoded() if isinstance(tokens, StringArray) else []
    if max(adapter.fim_tokens) >= len(names):
        raise _is_for_another(file, adapter)
    for token, name in zip(adapter.fim_tokens, FIM_TOKENS, strict=True):
        names[token] = name.encode()
    return names
