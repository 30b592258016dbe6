"""The facts about a model that help a person to choose it."""

from __future__ import annotations

from lsp_server.models.card import ModelCard
from lsp_server.models.document import WORDS


def model_facts(card: ModelCard) -> tuple[str, str]:
    """Two lines: its size, licence and speed here, and what it does."""
    nbytes, speed = card.nbytes, card.speed
    size = f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e7 else f"{nbytes / 1e6:.2f} MB"
    facts = f"{size}, licence {card.licence or 'not named'}"
    if speed is not None:
        about = "" if speed.measured else "about "
        facts += f"; {about}{speed.tokens_per_s:.0f} tokens/s, "
        facts += f"first text after {speed.first_text_s:.1f} s"
    return facts, ", ".join(WORDS[word] for word in card.does)
