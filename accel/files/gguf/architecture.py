"""Architectures of the decoders in GGUF files, as far as our forward has their parts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from accel.errors import BrokenModel, UnsupportedModel
from accel.files.decoder_tensors import Architecture, Family
from accel.files.gguf.file import GgufFile
from accel.files.gguf.header import shown
from accel.files.gguf.metadata import AGAIN, Metadata
from accel.files.hybrid import KERNEL, ROTARY_SHARE, Hybrid

ADVICE = "run it with llama.cpp, or give the model's folder with safetensors"

_Number = TypeVar("_Number", int, float)

_MOST = 1 << 24
"""No size of a decoder is larger."""

FAMILIES = {
    "llama": Family(is_interleaved=True),
    "qwen2": Family(is_interleaved=False),
    "qwen3": Family(is_interleaved=False, norms_heads=True),
    "granite": Family(is_interleaved=True, is_scaled=True),
    "qwen35": Family(is_interleaved=False, norms_heads=True, is_hybrid=True, is_biased=False),
}
"""SmolLM and Mistral call themselves ``llama``."""
HYBRIDS = frozenset(name for name, family in FAMILIES.items() if family.is_hybrid)

_STATE = "ssm.state_size"
_FOREIGN = {
    "attn_logit_softcapping": "has soft-capping of attention scores",
    "final_logit_softcapping": "has soft-capping of its logits",
    "attention.max_alibi_bias": "has ALiBi positions",
    "attention.clamp_kqv": "clamps queries, keys and values (clamp_kqv)",
    "attention.temperature_scale": "scales attention by position (attention temperature)",
    "attention.layer_norm_epsilon": "has LayerNorm in place of RMSNorm",
    "rope.scaling.yarn_log_multiplier": "has YaRN with a factor of its own (yarn_log_multiplier)",
    _STATE: "is a hybrid with a recurrent state",
}
"""Keys that say what our forward has not."""


class _Keys:
    """The keys of one architecture, of which most have to be there."""

    def __init__(self, metadata: Metadata, name: str) -> None:
        self._metadata = metadata
        self._name = name

    def has(self, key: str) -> bool:
        return f"{self._name}.{key}" in self._metadata

    def integer(self, key: str, default: int | None = None, least: int = 1) -> int:
        value = self._metadata.integer(f"{self._name}.{key}", least, _MOST)
        return self._found(key, default if value is None else value)

    def flags(self, key: str) -> list[bool] | None:
        """Return a list of truth values; None where it has none."""
        values = self._metadata.numbers(f"{self._name}.{key}")
        return None if values is None else list(map(bool, values.tolist()))

    def number(self, key: str, default: float | None = None) -> float:
        value = self._metadata.number(f"{self._name}.{key}")
        value = self._found(key, default if value is None else value)
        if value <= 0:
            raise BrokenModel(f"{self._metadata.path}: {self._name}.{key} is {value}", AGAIN)
        return value

    def _found(self, key: str, value: _Number | None) -> _Number:
        if value is None:
            raise BrokenModel(f"{self._metadata.path} lacks {self._name}.{key}", AGAIN)
        return value


def read_architecture(file: GgufFile) -> Architecture:
    """Raise BrokenModel, or UnsupportedModel where a model has parts that our forward has not."""
    path = file.path
    name = file.metadata.text("general.architecture")
    if name is None:
        raise BrokenModel(f"{path} names no architecture", AGAIN)
    family = FAMILIES.get(name)
    if family is None:
        names = ", ".join(FAMILIES)
        raise UnsupportedModel(f"{path} is built as {shown(name)}, not as {names}", ADVICE)
    kind = file.metadata.text("general.type")
    if kind not in (None, "model"):
        raise UnsupportedModel(f"{path} is no model but {shown(kind)}", "give the model's own file")
    keys = _Keys(file.metadata, name)
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None:
        raise BrokenModel(f"{path} lacks token_embd.weight", AGAIN)
    hidden_size, heads = keys.integer("embedding_length"), keys.integer("attention.head_count")
    head_dim = keys.integer("attention.key_length", max(hidden_size // heads, 1))
    architecture = Architecture(
        family=family,
        layers=keys.integer("block_count"),
        hidden_size=hidden_size,
        intermediate_size=keys.integer("feed_forward_length"),
        heads=heads,
        kv_heads=keys.integer("attention.head_count_kv", heads),
        head_dim=head_dim,
        vocabulary=embedding.shape[0],
        positions=keys.integer("context_length"),
        eps=keys.number("attention.layer_norm_rms_epsilon"),
        attention_scale=head_dim**-0.5,
    )
    if family.is_hybrid:
        architecture = _with_hybrid(architecture, keys, file)
    _refuse_foreign(architecture, keys, path)
    return _scaled(architecture, keys) if family.is_scaled else architecture


def _refuse_foreign(architecture: Architecture, keys: _Keys, path: Path) -> None:
    allowed = {_STATE} if architecture.hybrid else set()
    reasons = [what for key, what in _FOREIGN.items() if key not in allowed and keys.has(key)]
    turned = architecture.hybrid.rotary_dim if architecture.hybrid else architecture.head_dim
    if keys.integer("expert_count", 0, least=0):
        reasons.append("is a mixture of experts")
    if 0 < keys.integer("attention.sliding_window", 0, least=0) < architecture.positions:
        reasons.append("looks back through a sliding window")
    if keys.integer("rope.dimension_count", turned, least=0) != turned:
        reasons.append("turns a part of each head only")
    head_dim = architecture.head_dim
    if head_dim % 2 or keys.integer("attention.value_length", head_dim) != head_dim:
        reasons.append("has heads of other widths")
    if architecture.heads % architecture.kv_heads:
        reasons.append("shares heads unevenly")
    if hybrid := architecture.hybrid:
        if keys.integer("ssm.conv_kernel") != KERNEL:
            reasons.append("has a convolution of another width")
        if hybrid.value_heads % hybrid.key_heads:
            reasons.append("shares heads unevenly")
        if not 0 < len(hybrid.layers) < architecture.layers:
            reasons.append("is no hybrid, whatever it calls itself")
    if reasons:
        raise UnsupportedModel(f"{path} {reasons[0]}, which is not known here", ADVICE)


def _with_hybrid(architecture: Architecture, keys: _Keys, file: GgufFile) -> Architecture:
    """Return ``architecture`` with its layers of gated DeltaNet. Layers that guess several tokens
    come after all others; some files count them among the layers, others do not."""
    guessing = keys.integer("nextn_predict_layers", 0, least=0)
    names = [name.split(".") for name in file.tensors if name.startswith("blk.")]
    guess = {name[1] for name in names if "nextn" in name}
    layers = len({name[1] for name in names} - guess)
    if layers not in (architecture.layers, architecture.layers - guessing):
        raise BrokenModel(
            f"{file.path} has tensors of {layers} layers and says that it has "
            f"{architecture.layers}, {guessing} of which guess several tokens",
            AGAIN,
        )
    passed_over = max(len(guess), architecture.layers - layers)
    flags = keys.flags("attention.recurrent_layers")
    if flags is None or len(flags) < layers:
        interval = keys.integer("full_attention_interval", 4)
        flags = [(layer + 1) % interval > 0 for layer in range(layers)]
    value_heads = keys.integer("ssm.time_step_rank")
    hybrid = Hybrid(
        layers=tuple(layer for layer in range(layers) if flags[layer]),
        key_heads=keys.integer("ssm.group_count"),
        value_heads=value_heads,
        key_dim=keys.integer(_STATE),
        value_dim=keys.integer("ssm.inner_size") // value_heads,
        rotary_dim=keys.integer("rope.dimension_count", int(architecture.head_dim * ROTARY_SHARE)),
        is_tiled=True,
    )
    return replace(architecture, layers=layers, hybrid=hybrid, passed_over=passed_over)


def _scaled(architecture: Architecture, keys: _Keys) -> Architecture:
    """Granite's numbers. Source: its modelling in transformers; ``logit_scale`` divides."""
    embedding = keys.number("embedding_scale", 1.0)
    return replace(
        architecture,
        eps=architecture.eps / embedding**2,
        attention_scale=keys.number("attention.scale", architecture.attention_scale),
        added_scale=keys.number("residual_scale", 1.0) / embedding,
        logit_scale=1 / keys.number("logit_scale", 1.0),
    )
