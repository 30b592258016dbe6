"""Small models with random weights whose layers differ, as llama.cpp takes them: such that mix
attention with a state that runs over the text, and one with a sliding window. Needs
llama-cpp-python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from gguf_writer import stored, write_gguf
from quantised_by_llama_cpp import contents

Shapes = dict[str, tuple[int, ...]]

_WIDE, _INNER, _TOKENS, _FEED = 64, 128, 320, 128
_STATES, _GROUPS, _HEADS, _KERNEL = 16, 2, 4, 4
_ATTENTION: Shapes = {
    "attn_q.weight": (_WIDE, _WIDE),
    "attn_k.weight": (_WIDE // 2, _WIDE),
    "attn_v.weight": (_WIDE // 2, _WIDE),
    "attn_output.weight": (_WIDE, _WIDE),
}
_CONVOLVED = _INNER + 2 * _GROUPS * _STATES
_MAMBA: Shapes = {
    "ssm_in.weight": (_INNER + _CONVOLVED + _HEADS, _WIDE),
    "ssm_conv1d.weight": (_CONVOLVED, _KERNEL),
    "ssm_conv1d.bias": (_CONVOLVED,),
    "ssm_dt.bias": (_HEADS,),
    "ssm_a": (_HEADS, 1),
    "ssm_d": (_HEADS, 1),
    "ssm_norm.weight": (_GROUPS, _INNER // _GROUPS),
    "ssm_out.weight": (_WIDE, _INNER),
}
_GATED: Shapes = {
    "ffn_gate.weight": (_FEED, _WIDE),
    "ffn_up.weight": (_FEED, _WIDE),
    "ffn_down.weight": (_WIDE, _FEED),
}
_NORM: Shapes = {"attn_norm.weight": (_WIDE,)}
_DELTA = _STATES * (2 * _GROUPS + _HEADS)
_DELTA_NET: Shapes = {
    "attn_qkv.weight": (_DELTA, _WIDE),
    "attn_gate.weight": (_STATES * _HEADS, _WIDE),
    "ssm_conv1d.weight": (_DELTA, _KERNEL),
    "ssm_dt.bias": (_HEADS,),
    "ssm_a": (_HEADS,),
    "ssm_beta.weight": (_HEADS, _WIDE),
    "ssm_alpha.weight": (_HEADS, _WIDE),
    "ssm_norm.weight": (_STATES,),
    "ssm_out.weight": (_WIDE, _STATES * _HEADS),
}
_QWEN35 = _NORM | _GATED | {"post_attention_norm.weight": (_WIDE,)}
_QWEN35_ATTENTION: Shapes = _ATTENTION | {
    "attn_q.weight": (2 * _WIDE, _WIDE),
    "attn_q_norm.weight": (_WIDE // 4,),
    "attn_k_norm.weight": (_WIDE // 4,),
}
_GRANITE = _NORM | _GATED | {"ffn_norm.weight": (_WIDE,)}
_GEMMA: Shapes = _GRANITE | _ATTENTION
_GEMMA |= {f"post_{part}_norm.weight": (_WIDE,) for part in ("attention", "ffw")}
SLIDING = "gemma2"
WINDOW = 16

_LAYERS: dict[str, list[Shapes]] = {
    "qwen35": [*[_QWEN35 | _DELTA_NET] * 3, _QWEN35 | _QWEN35_ATTENTION],
    "nemotron_h": [
        _NORM | _MAMBA,
        _NORM | {"ffn_up.weight": (_FEED, _WIDE), "ffn_down.weight": (_WIDE, _FEED)},
        _NORM | _ATTENTION,
    ],
    "falcon-h1": [_NORM | _GATED | _MAMBA | _ATTENTION | {"ffn_norm": (_WIDE,)}] * 2,
    "granitehybrid": [_GRANITE | _MAMBA, _GRANITE | _ATTENTION, _GRANITE | _MAMBA],
    SLIDING: [_GEMMA] * 4,
}
FAMILIES = tuple(family for family in _LAYERS if family != SLIDING)
"""Those with a state."""
_SIZES: dict[str, dict[str, Any]] = {
    "qwen35": {
        "attention.head_count_kv": 2,
        "rope.dimension_sections": [4, 2, 2, 0],
        "ssm.inner_size": _STATES * _HEADS,
    },
    "nemotron_h": {"attention.head_count_kv": [0, 0, 2], "feed_forward_length": [0, _FEED, 0]},
    "falcon-h1": {"attention.head_count_kv": 2},
    "granitehybrid": {"attention.head_count_kv": [0, 2, 0], "logit_scale": 1.0},
    SLIDING: {"attention.head_count_kv": 2, "attention.sliding_window": WINDOW},
}


def small_hybrid(path: Path, family: str, seed: int = 0) -> Path:
    """One of ``FAMILIES``, or ``SLIDING``."""
    draw, layers = np.random.default_rng(seed), _LAYERS[family]
    every = {
        f"blk.{number}.{name}": shape
        for number, layer in enumerate(layers)
        for name, shape in layer.items()
    }
    every |= {"token_embd.weight": (_TOKENS, _WIDE), "output_norm.weight": (_WIDE,)}
    tensors = {}
    for name, shape in every.items():
        values = draw.normal(0.0, 0.3, shape).astype(np.float32)
        if "norm" in name:
            values += 1
        tensors[name] = stored(-np.exp(values) if name.endswith("ssm_a") else values, "F32")
    about = contents("qwen2", vocab_size=_TOKENS)[0]
    kept = {key: value for key, value in about.items() if key.startswith("tokenizer.")}
    sizes: dict[str, Any] = {
        "context_length": 2048,
        "embedding_length": _WIDE,
        "block_count": len(layers),
        "feed_forward_length": _FEED,
        "vocab_size": _TOKENS,
        "attention.head_count": 4,
        "attention.key_length": _WIDE // 4,
        "attention.value_length": _WIDE // 4,
        "attention.layer_norm_epsilon": 1e-5,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": _WIDE // 4,
        "rope.freq_base": 1e6,
        "ssm.conv_kernel": _KERNEL,
        "ssm.inner_size": _INNER,
        "ssm.state_size": _STATES,
        "ssm.time_step_rank": _HEADS,
        "ssm.group_count": _GROUPS,
    }
    keys = {f"{family}.{key}": value for key, value in (sizes | _SIZES[family]).items()}
    return write_gguf(path, keys | kept | {"general.architecture": family}, tensors)
