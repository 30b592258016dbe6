"""Public model shapes with random weights: what their forwards cost, without their weights."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import nn

from accel.errors import InvalidRequest
from accel.models.autotune import is_faster, may_use_more
from accel.models.base import Model
from accel.models.costs.forward_costs import ForwardCosts
from accel.models.costs.measuring import measure, share
from accel.models.cpu.llama import CompiledLlama
from accel.models.llama_torch import FusedLlama

_QWEN = {
    "max_position_embeddings": 32768,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
}
SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "0.5B": (
        "qwen2",
        {
            "hidden_size": 896,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "intermediate_size": 4864,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
            **_QWEN,
        },
    ),
    "1.3B": (
        "llama",
        {
            "hidden_size": 2048,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "num_key_value_heads": 16,
            "intermediate_size": 5504,
            "vocab_size": 32256,
            "tie_word_embeddings": False,
            "max_position_embeddings": 16384,
            "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e5},
        },
    ),
    "7B": (
        "qwen2",
        {
            "hidden_size": 3584,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "intermediate_size": 18944,
            "vocab_size": 152064,
            "tie_word_embeddings": False,
            **_QWEN,
        },
    ),
}
"""Qwen2.5-Coder-0.5B, DeepSeek-Coder-1.3B and Qwen2.5-Coder-7B, from their published configs."""

ROWS = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 65)
CONTEXTS = (512, 2048)
FORWARDS = 16
"""Times of the least forward for each number of rows and context: what measuring may take."""
MOST_SECONDS = 150.0
WEIGHTS = 1 << 20
"""Random numbers that the weights are made of, over and over."""


def random_model(shape: str, dtype: Literal["fp32", "bf16"], *, may_share: bool = False) -> Model:
    """A model of the shape on the CPU, in the form that an engine would give it.

    ``may_share``: several threads may compute its forwards. Raises InvalidRequest for an unknown
    shape.
    """
    module = _random_module(shape, dtype)
    compiled = CompiledLlama.from_module(module)
    if compiled is not None:
        module = _random_module(shape, dtype)
    lean = FusedLlama.from_module(module)
    assert lean is not None, "the shapes are all built like Llama"
    if compiled is None or not is_faster(compiled, lean, may_share=may_share):
        return lean
    return compiled


def _random_module(shape: str, dtype: Literal["fp32", "bf16"]) -> nn.Module:
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.initialization import no_init_weights

    if shape not in SHAPES:
        raise InvalidRequest(f"shape {shape!r} is unknown; known are {', '.join(SHAPES)}")
    kind, fields = SHAPES[shape]
    config = AutoConfig.for_model(kind, **fields)
    torch_dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
    with no_init_weights():
        module: nn.Module = AutoModelForCausalLM.from_config(config, dtype=torch_dtype)
    module.requires_grad_(False).eval()
    if config.tie_word_embeddings:
        module.tie_weights()  # type: ignore[operator]
    block = torch.empty(WEIGHTS).uniform_(-0.02, 0.02).to(torch_dtype)
    for parameter in module.parameters():
        # Memory that was never written may hold NaN and denormal numbers, which are slow.
        flat = parameter.view(-1)
        whole = len(flat) // WEIGHTS * WEIGHTS
        flat[:whole].view(-1, WEIGHTS).copy_(block)
        flat[whole:].copy_(block[: len(flat) - whole])
    return module


def costs_of_shape(
    shape: str, dtype: Literal["fp32", "bf16"], threads: int | None
) -> tuple[ForwardCosts, tuple[int, ...] | None]:
    """Costs of the shape's forwards on this machine, and the batch sizes that are fast.

    Raises InvalidRequest for an unknown shape.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    may_share = may_use_more(threads)
    model = random_model(shape, dtype, may_share=may_share)
    one = measure(model, 0.0, (1,), CONTEXTS[:1]).seconds.min()
    budget_s = min(float(one) * len(ROWS) * len(CONTEXTS) * FORWARDS, MOST_SECONDS)
    costs = measure(model, budget_s, ROWS, CONTEXTS)
    if may_share:
        costs = share(model, costs, budget_s)
    return costs, model.capability.widths
