"""The facts about a model that help a person to choose it."""

from __future__ import annotations

from collections.abc import Sequence

from lsp_server.models.document import WORDS
from lsp_server.models.speed import Speed


def model_facts(
    licence: str, nbytes: int, speed: Speed | None, does: Sequence[str]
) -> tuple[str, str]:
    """Two lines: its size, licence and speed here, and what it does (keys of ``WORDS``)."""
    size = f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e7 else f"{nbytes / 1e6:.2f} MB"
    facts = f"{size}, licence {licence or 'not named'}"
    if speed is not None:
        about = "" if speed.measured else "about "
        facts += f"; {about}{speed.tokens_per_s:.0f} tokens/s, "
        facts += f"first text after {speed.first_text_s:.1f} s"
    return facts, ", ".join(WORDS[word] for word in does)
