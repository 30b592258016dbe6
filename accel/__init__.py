"""Draft-and-verify decoding of causal language models: draft, verify, commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accel.engine import Engine
    from accel.generation import Generation
    from accel.prompts import Prompt, edit_prompt, fim_prompt
    from accel.request import Chunk, GenerationRequest
    from accel.sampling import Sampling
    from accel.session import Session
    from accel.tokenizer import Tokenizer

__all__ = [
    "Chunk",
    "Engine",
    "Generation",
    "GenerationRequest",
    "Prompt",
    "Sampling",
    "Session",
    "Tokenizer",
    "edit_prompt",
    "fim_prompt",
]

_HOMES = {
    "Chunk": "accel.request",
    "Engine": "accel.engine",
    "Generation": "accel.generation",
    "GenerationRequest": "accel.request",
    "Prompt": "accel.prompts",
    "Sampling": "accel.sampling",
    "Session": "accel.session",
    "Tokenizer": "accel.tokenizer",
    "edit_prompt": "accel.prompts",
    "fim_prompt": "accel.prompts",
}


def __getattr__(name: str) -> Any:
    """Import on first use: most of these load torch, and ``import accel`` must not."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'accel' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
