"""Architectures of the decoders in folders, as far as our own forward has their parts.

Read from ``config.json`` as versions 4 and 5 of transformers write it, and from the headers of the
weights. Loads neither torch nor a compiler.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.errors import ModelError
from accel.files.decoder_tensors import EMBEDDING, HEAD, Architecture, Family, decoder_tensors
from accel.files.folder_hybrid import KINDS, read_hybrid, text_config, text_name
from accel.files.hybrid import Hybrid, turned_frequencies
from accel.files.rope import rope_frequencies, scaled_frequencies
from accel.files.safetensors import WeightsEntry, read_header, shards_of

DTYPES = ("BF16", "F16", "F32")
"""Of weights that are read."""

_FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
_QUERIES = ".self_attn.q_proj.weight"
LEFT_OVER = ".rotary_emb.inv_freq"
"""A buffer that old folders hold and that is not used."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderArchitecture(Architecture):
    """A decoder's sizes and constants, and the places of its weights. In a hybrid norms of
    attention and feed-forward are stored less one."""

    frequencies: NDArray[np.float32]
    """Radians a position for each pair of a head's numbers, float32 [head_dim / 2]."""
    end_tokens: frozenset[int]
    tensors: dict[str, tuple[Path, WeightsEntry]]
    """By the names of transformers, the lm head among them also where it is the embedding."""


def folder_architecture(folder: Path) -> FolderArchitecture | None:
    """Return the decoder of a folder; None where it has a part that only transformers knows: that
    reads it, or says what is wrong with it."""
    try:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        is_hybrid = config["model_type"] in KINDS
        config = text_config(config) if is_hybrid else config
        if not _is_known(config, is_hybrid=is_hybrid):
            return None
        architecture = _architecture(folder, config, is_hybrid=is_hybrid)
        return architecture if _is_whole(architecture) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, IndexError, ModelError):
        return None


def _tensors(
    folder: Path, config: dict[str, Any], *, is_hybrid: bool
) -> dict[str, tuple[Path, WeightsEntry]]:
    single_file = folder / "model.safetensors"
    files = [single_file]
    if not single_file.exists():
        index = folder / f"{single_file.name}.index.json"
        listed = json.loads(index.read_text("utf-8"))["weight_map"]
        files = [folder / name for name in shards_of(index, listed)]
    tensors = {
        text_name(name) if is_hybrid else name: (file, entry)
        for file in files
        for name, entry in read_header(file).items()
        if not name.endswith(LEFT_OVER)
    }
    tensors.pop("", None)
    if config.get("tie_word_embeddings", False):
        # Where both are there and differ, transformers ties them as little.
        tensors.setdefault(HEAD, tensors[EMBEDDING])
    for name in list(tensors) if is_hybrid else ():
        if name.endswith(_QUERIES):
            tensors[name.replace(_QUERIES, ".self_attn.output_gate.weight")] = tensors[name]
    return tensors


def _is_known(config: dict[str, Any], *, is_hybrid: bool) -> bool:
    """Return whether our forward has all that the configuration names."""
    is_quantised = "quantization_config" in config
    if config["hidden_act"] != "silu" or config.get("attention_bias") or is_quantised:
        return False
    if is_hybrid:
        return True
    kind, positions = config["model_type"], config["max_position_embeddings"]
    windows = [config["sliding_window"]] if kind == "mistral" else []
    if config.get("use_sliding_window"):
        windows.append(config.get("sliding_window"))
    return (
        kind in _FAMILIES
        and not any(window and window < positions for window in windows)
        and set(config.get("layer_types") or ()) <= {"full_attention"}
        and not config.get("mlp_bias")
    )


def _architecture(folder: Path, config: dict[str, Any], *, is_hybrid: bool) -> FolderArchitecture:
    tensors, kind = _tensors(folder, config, is_hybrid=is_hybrid), config["model_type"]
    hidden_size, heads = config["hidden_size"], config["num_attention_heads"]
    head_dim = config.get("head_dim") or hidden_size // heads
    if kind == "qwen3":
        (head_dim,) = tensors["model.layers.0.self_attn.q_norm.weight"][1].shape
    hybrid = read_hybrid(config, head_dim) if is_hybrid else None
    return FolderArchitecture(
        family=Family(
            is_interleaved=False,
            norms_heads=is_hybrid or kind == "qwen3",
            is_hybrid=is_hybrid,
            is_biased=kind == "qwen2",
        ),
        layers=config["num_hidden_layers"],
        hidden_size=hidden_size,
        intermediate_size=config["intermediate_size"],
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=head_dim,
        vocabulary=config["vocab_size"],
        positions=config["max_position_embeddings"],
        eps=config["rms_norm_eps"],
        attention_scale=head_dim**-0.5,
        hybrid=hybrid,
        frequencies=_hybrid_frequencies(config, head_dim, hybrid)
        if hybrid
        else scaled_frequencies(config, head_dim),
        end_tokens=_end_tokens(folder, config),
        tensors=tensors,
    )


def _is_whole(architecture: FolderArchitecture) -> bool:
    """Return whether all weights are there, of their sizes, in numbers that are read."""
    stored = {name: entry.shape for name, (_, entry) in architecture.tensors.items()}
    return (
        stored == {tensor.name: tensor.folder_shape for tensor in decoder_tensors(architecture)}
        and not architecture.heads % architecture.kv_heads
        and not architecture.odd_size
        and all(entry.dtype in DTYPES for _, entry in architecture.tensors.values())
    )


def _hybrid_frequencies(
    config: dict[str, Any], head_dim: int, hybrid: Hybrid
) -> NDArray[np.float32]:
    rope = config.get("rope_parameters") or {}
    theta = rope.get("rope_theta", config.get("rope_theta", 10_000.0))
    return turned_frequencies(rope_frequencies(theta, hybrid.rotary_dim), head_dim)


def _end_tokens(folder: Path, config: dict[str, Any]) -> frozenset[int]:
    """Return ids that end a text, from the generation config and the config."""
    file = folder / "generation_config.json"
    generation = json.loads(file.read_text("utf-8")) if file.exists() else {}
    ids = [source.get("eos_token_id") for source in (generation, config)]
    return named_ends(ids, config["vocab_size"], folder)


def named_ends(values: Iterable[Any], vocabulary_size: int, model: object) -> frozenset[int]:
    """Return the ids in ``values``, each of which is one, a list of them, or None. Those that are
    no token's are passed over with a warning that names the ``model``."""
    ids: set[int] = set()
    for value in values:
        for token in value if isinstance(value, list) else [] if value is None else [value]:
            if isinstance(token, int) and 0 <= token < vocabulary_size:
                ids.add(token)
            else:
                logger.warning(
                    "%s names token %s as an end and has %d tokens: that is passed over",
                    model,
                    token,
                    vocabulary_size,
                )
    return frozenset(ids)
