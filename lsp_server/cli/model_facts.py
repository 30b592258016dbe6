"""What a person wants to know of a model before choosing it, in a line."""

from __future__ import annotations

from collections.abc import Sequence

from lsp_server.models.document import WORDS
from lsp_server.models.speed import Speed


def model_facts(licence: str, nbytes: int, speed: Speed | None, does: Sequence[str]) -> str:
    """Its licence, its size, how fast it is here, and what it does (keys of ``WORDS``)."""
    parts = [f"licence {licence or 'not named'}", f"{nbytes / 1e9:.2f} GB on disk and in memory"]
    if speed is not None:
        about = "" if speed.measured else "about "
        parts.append(
            f"{about}{speed.tokens_per_s:.0f} tokens/s, first text after {speed.first_text_s:.1f} s"
        )
    return "; ".join([*parts, ", ".join(WORDS[word] for word in does)])
