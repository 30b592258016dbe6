"""Folders of hybrids like Qwen3.5: their text part, by the names of transformers' modelling."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from accel.files.hybrid import KERNEL, Hybrid, gated_query_rows, head_rows, turned_order

KINDS = "qwen3_5", "qwen3_5_text"
"""Model types, with a vision part and without."""

PASSED_OVER = {
    "mtp.": "layers that guess several tokens",
    "visual.": "the part that sees pictures",
}
"""How the names of tensors begin that our forward has no use for, and what they are."""

RowOrders = dict[str, Any]
"""By the name of a weight the rows of its tensor that are its own, int64, in order."""


def text_config(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the text part, with what the whole says of the embedding."""
    found = config.get("text_config")
    if not isinstance(found, dict):
        return config
    tied = config.get("tie_word_embeddings", found.get("tie_word_embeddings", False))
    whole = {"eos_token_id": config.get("eos_token_id", found.get("eos_token_id"))}
    return found | whole | {"tie_word_embeddings": tied}


def text_name(name: str) -> str:
    """A tensor's name in a model that is text alone; empty for one that is passed over."""
    if any(is_of(name, part) for part in PASSED_OVER):
        return ""
    return name.replace("model.language_model.", "model.", 1)


def is_of(name: str, part: str) -> bool:
    """Whether a tensor of this name is of a part that is passed over."""
    return name.removeprefix("model.").startswith(part)


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
    share = rope.get("partial_rotary_factor", config.get("partial_rotary_factor", 0.25))
    found = Hybrid(
        layers=tuple(at for at, kind in enumerate(kinds) if kind == "linear_attention"),
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
        or found.value_heads % found.key_heads
        or rope.get("rope_type", "default") != "default"
    ):
        raise ValueError("it has parts that our forward has not")
    return found


def row_orders(found: Hybrid, layers: int, heads: int, kv_heads: int, head_dim: int) -> RowOrders:
    """The rows of weights that our forward has in another order than the folder."""
    rotary = found.rotary_dim
    queries, gates = gated_query_rows(heads, head_dim, rotary)
    keys, order = head_rows(kv_heads, head_dim, rotary), turned_order(head_dim, rotary)
    orders = {"q_proj": queries, "output_gate": gates, "k_proj": keys}
    orders |= {"q_norm": order, "k_norm": order}
    return {
        f"model.layers.{layer}.self_attn.{part}.weight": rows
        for layer in range(layers)
        if layer not in found.layers
        for part, rows in orders.items()
    }


def hybrid_shapes(
    found: Hybrid, layers: int, heads: int, kv_heads: int, head_dim: int, sizes: tuple[int, int]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every weight of the layers, as the folder has it. sizes: of a hidden state, and of the
    feed-forward layers."""
    hidden_size, width = sizes
    values = found.value_size
    for layer in range(layers):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", (hidden_size,)
        yield f"{at}.post_attention_layernorm.weight", (hidden_size,)
        yield f"{at}.mlp.gate_proj.weight", (width, hidden_size)
        yield f"{at}.mlp.up_proj.weight", (width, hidden_size)
        yield f"{at}.mlp.down_proj.weight", (hidden_size, width)
        if layer in found.layers:
            at += ".linear_attn"
            yield f"{at}.in_proj_qkv.weight", (found.channels, hidden_size)
            yield f"{at}.in_proj_z.weight", (values, hidden_size)
            yield f"{at}.in_proj_b.weight", (found.value_heads, hidden_size)
            yield f"{at}.in_proj_a.weight", (found.value_heads, hidden_size)
            yield f"{at}.conv1d.weight", (found.channels, 1, KERNEL)
            yield f"{at}.A_log", (found.value_heads,)
            yield f"{at}.dt_bias", (found.value_heads,)
            yield f"{at}.norm.weight", (found.value_dim,)
            yield f"{at}.out_proj.weight", (hidden_size, values)
            continue
        at += ".self_attn"
        both = 2 * heads * head_dim, hidden_size
        yield f"{at}.q_proj.weight", both
        yield f"{at}.output_gate.weight", both
        yield f"{at}.k_proj.weight", (kv_heads * head_dim, hidden_size)
        yield f"{at}.v_proj.weight", (kv_heads * head_dim, hidden_size)
        yield f"{at}.o_proj.weight", (hidden_size, heads * head_dim)
        yield f"{at}.q_norm.weight", (head_dim,)
        yield f"{at}.k_norm.weight", (head_dim,)
