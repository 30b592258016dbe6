"""Draft-and-verify decoding of causal language models: draft, verify, commit."""

TYPE_CHECKING = False
"""As ``typing`` has it, without importing that before a process is isolated (python_process)."""

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.decoding.loop import Generation
    from accel.decoding.request import Chunk, GenerationRequest
    from accel.execution.session import Session
    from accel.text.prompts import Prompt, edit_prompt, fim_prompt
    from accel.text.tokenizer import Tokenizer
    from accel.verification.sampling import Sampling

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
    "decoding.engine": "Engine",
    "decoding.loop": "Generation",
    "decoding.request": "Chunk GenerationRequest",
    "execution.session": "Session",
    "text.prompts": "Prompt edit_prompt fim_prompt",
    "text.tokenizer": "Tokenizer",
    "verification.sampling": "Sampling",
}


def __getattr__(name: str) -> object:
    """Import on first use: most of these load torch, and ``import accel`` must not."""
    from importlib import import_module

    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"accel.{module}"), name)
    raise AttributeError(f"module 'accel' has no attribute {name!r}")
