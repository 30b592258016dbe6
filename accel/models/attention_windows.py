"""Kinds of attention in a model, and the windows that they look back."""

from __future__ import annotations

from typing import Any


def attention_windows(config: Any) -> dict[str, int | None] | None:
    """Sliding window (None for none) by kind of attention layer, as transformers names them. None
    when a layer does something else than full or sliding attention."""
    window = getattr(config, "sliding_window", None)
    kinds = set(getattr(config, "layer_types", None) or ())
    if not kinds:
        if not getattr(config, "use_sliding_window", True):
            window = None
        return {"sliding_attention" if window else "full_attention": window}
    if kinds - {"full_attention", "sliding_attention"}:
        return None
    return {kind: window if kind == "sliding_attention" else None for kind in sorted(kinds)}
