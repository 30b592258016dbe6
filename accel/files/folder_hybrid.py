"""Folders of hybrids like Qwen3.5: their text part, by the names of transformers' modelling."""

from __future__ import annotations

from typing import Any

from accel.files.hybrid import KERNEL, ROTARY_SHARE, Hybrid

KINDS = "qwen3_5", "qwen3_5_text"
"""Model types, with a vision part and without."""

PASSED_OVER = {"mtp.": "layers that guess several tokens", "visual.": "the part that sees pictures"}
"""Prefixes of tensors that our forward does not use, and their purpose."""


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration of the text part, with what the whole says of the embedding."""
    inner = config.get("text_config")
    if not isinstance(inner, dict):
        return config
    tied = config.get("tie_word_embeddings", inner.get("tie_word_embeddings", False))
    ends = {"eos_token_id": config.get("eos_token_id", inner.get("eos_token_id"))}
    return inner | ends | {"tie_word_embeddings": tied}


def text_name(name: str) -> str:
    """Return the name of our forward for a tensor called ``name``; empty for one that is passed
    over."""
    if any(is_of(name, prefix) for prefix in PASSED_OVER):
        return ""
    # The logarithm that a folder has is undone when it is read.
    return name.replace("model.language_model.", "model.", 1).replace(".A_log", ".A")


def is_of(name: str, prefix: str) -> bool:
    """Return whether the tensor ``name`` belongs to ``prefix``, a part that is passed over."""
    return name.removeprefix("model.").startswith(prefix)


def read_hybrid(config: dict[str, Any], head_dim: int) -> Hybrid:
    """Sizes of the layers of gated DeltaNet. Raises KeyError or ValueError for what our forward has
    not."""
    layers = config["num_hidden_layers"]
    interval = config.get("full_attention_interval", 4)
    kinds = config.get("layer_types") or [
        "linear_attention" if (layer + 1) % interval else "full_attention"
        for layer in range(layers)
    ]
    rope = config.get("rope_parameters") or {}
    share = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", ROTARY_SHARE))
    hybrid = Hybrid(
        layers=tuple(number for number, kind in enumerate(kinds) if kind == "linear_attention"),
        key_heads=config["linear_num_key_heads"],
        value_heads=config["linear_num_value_heads"],
        key_dim=config["linear_key_head_dim"],
        value_dim=config["linear_value_head_dim"],
        rotary_dim=int(head_dim * share),
        is_tiled=False,
    )
    if (
        set(kinds) != {"linear_attention", "full_attention"}
        or len(kinds) != layers
        or config.get("linear_conv_kernel_dim", KERNEL) != KERNEL
        or hybrid.value_heads % hybrid.key_heads
        or rope.get("rope_type", "default") != "default"
    ):
        raise ValueError("it has parts that our forward has not")
    return hybrid
