"""RoPE frequencies of a GGUF file: plain, scaled linearly or by YaRN."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.decoder_tensors import Architecture
from accel.files.gguf.architecture import ADVICE
from accel.files.gguf.dequantise import dequantise
from accel.files.gguf.file import GgufFile
from accel.files.gguf.header import shown
from accel.files.gguf.metadata import AGAIN
from accel.files.hybrid import turned_frequencies
from accel.files.rope import rope_frequencies

FACTORS = "rope_freqs.weight"
"""The tensor of numbers that Llama 3 divides frequencies by."""


@dataclass(frozen=True, slots=True)
class RopeFrequencies:
    """Radians a position for each pair, and what cosines and sines are multiplied by."""

    frequencies: NDArray[np.float32]
    scale: float


def read_rope_frequencies(file: GgufFile, architecture: Architecture) -> RopeFrequencies:
    """Plain, linear (Chen et al. 2023) or YaRN (Peng et al. 2023, section 3.4) frequencies. Raises
    BrokenModel or UnsupportedModel."""
    metadata, path = file.metadata, file.path
    prefix = f"{metadata.text('general.architecture')}.rope"
    base = metadata.number(f"{prefix}.freq_base") or 10_000.0
    if base <= 1:
        raise BrokenModel(f"{path}: {prefix}.freq_base is {base}", AGAIN)
    if architecture.hybrid is None:
        return _scaled(file, architecture, prefix, base)
    if metadata.text(f"{prefix}.scaling.type") not in (None, "none"):
        raise UnsupportedModel(f"{path} is a hybrid that scales positions", ADVICE)
    turned = rope_frequencies(base, architecture.hybrid.rotary_dim)
    return RopeFrequencies(turned_frequencies(turned, architecture.head_dim), 1.0)


def _scaled(
    file: GgufFile, architecture: Architecture, prefix: str, base: float
) -> RopeFrequencies:
    """Return the frequencies of a decoder that turns whole heads, scaled as the file says."""
    metadata, path, head_dim = file.metadata, file.path, architecture.head_dim
    plain = rope_frequencies(base, head_dim).astype(np.float64) / _factors(file, architecture)
    kind, scaling = metadata.text(f"{prefix}.scaling.type") or "linear", f"{prefix}.scaling"
    factor = metadata.number(f"{scaling}.factor") or metadata.number(f"{prefix}.scale_linear")
    scale = metadata.number(f"{scaling}.attn_factor") or 1.0
    if metadata.flag(f"{scaling}.finetuned") is False and architecture.family.is_scaled:
        raise UnsupportedModel(f"{path} has no positions, which is not known here", ADVICE)
    if kind == "none" or not factor:
        return RopeFrequencies(plain.astype(np.float32), scale)
    if factor < 0:
        raise BrokenModel(f"{path}: {scaling}.factor is {factor}", AGAIN)
    if kind == "linear":
        return RopeFrequencies((plain / factor).astype(np.float32), scale)
    if kind != "yarn":
        raise UnsupportedModel(f"{path} scales positions by {shown(kind)}", ADVICE)
    original = metadata.integer(f"{scaling}.original_context_length", 1, 1 << 30)
    share = _yarn_ramp(
        head_dim,
        base,
        original or architecture.positions,
        [
            metadata.number(f"{scaling}.yarn_beta_{name}") or default
            for name, default in (("fast", 32.0), ("slow", 1.0))
        ],
    )
    mixed = plain * share + plain / factor * (1 - share)
    return RopeFrequencies(mixed.astype(np.float32), scale * (1 + 0.1 * math.log(factor)))


def _yarn_ramp(
    head_dim: int, base: float, original: int, betas: list[float]
) -> NDArray[np.float64]:
    """Return the share of its own frequency that each pair has: all of it where it turns more often
    than ``betas[0]`` times in the original context, none below ``betas[1]`` times, a ramp in
    between."""
    if min(betas) <= 0:
        return np.zeros(head_dim // 2)
    first, last = (
        head_dim * math.log(original / (times * 2 * math.pi)) / (2 * math.log(base))
        for times in betas
    )
    low, high = max(math.floor(first), 0), min(math.ceil(last), head_dim - 1)
    ramp = (np.arange(head_dim // 2) - low) / max(high - low, 0.001)
    return 1 - ramp.clip(0, 1)


def _factors(file: GgufFile, architecture: Architecture) -> NDArray[np.float32]:
    tensor = file.tensors.get(FACTORS)
    if tensor is None:
        return np.ones(1, np.float32)
    if tensor.shape != (architecture.head_dim // 2,):
        raise BrokenModel(f"{file.path}: {FACTORS} has the wrong size", AGAIN)
    factors = dequantise(file.read(FACTORS), tensor.type)[0]
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise BrokenModel(f"{file.path}: {FACTORS} has values that cannot be", AGAIN)
    return factors
