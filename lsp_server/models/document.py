"""The list of models as JSON, for editors and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lsp_server.models.card import ModelCard
from lsp_server.models.choices import Choices
from lsp_server.models.manifest import OfferedModel
from lsp_server.models.recommendation import recommended, recommended_for_edits
from lsp_server.models.speed import rated
from lsp_server.models.used import used_models
from lsp_server.shared.contract.codec import to_json
from lsp_server.shared.settings import Settings
from operating_system.machine import free_bytes

WORDS = {
    "fim": "fills in the middle",
    "left": "goes on from the left",
    "edit": "edits",
    "next-edit": "next edits",
    "apply": "puts snippets into files",
}
"""What a model does, as people read it."""

_SHOWN = (
    *("name", "names", "paths", "source", "family", "parameters", "bits", "context_tokens"),
    *("licence", "terms", "purpose", "does", "problem"),
)
_NO_SPEED = {"first_text_s": None, "tokens_per_s": None, "measured": False}


def models_document(
    models: Sequence[ModelCard], chosen: Choices, offered: Sequence[OfferedModel]
) -> dict[str, Any]:
    """Return models here, those to fetch, the recommended and the chosen ones, as JSON."""
    missing, free = not_here(offered, models), free_bytes()
    for_edits = recommended_for_edits(models, missing)
    return {
        "models": [card_json(model, free) for model in models],
        "offered": [card_json(model, free) for model in missing],
        "recommended": asdict(recommended(models, missing)),
        "recommended_for_edits": for_edits and asdict(for_edits),
        "chosen": chosen_models(chosen),
    }


def not_here(offered: Sequence[OfferedModel], models: Sequence[ModelCard]) -> list[OfferedModel]:
    """Return those of the models that can be fetched that were not yet, with their speeds here."""
    names = {path.name for model in models for path in model.paths}
    return [rated(model) for model in offered if model.file not in names]


def chosen_models(chosen: Choices) -> dict[str, str]:
    """Return the chosen model of each purpose, empty for none."""
    used = used_models(Settings(), chosen)
    return {
        "completion": used.completion.path,
        "edits": used.edits.path,
        "next-edits": chosen.next_edits,
        "drafts": chosen.drafts,
    }


def card_json(card: ModelCard, free: int) -> dict[str, Any]:
    """Return a card as editors and scripts read it. free: bytes of memory."""
    members = {name: to_json(getattr(card, name)) for name in _SHOWN}
    speed = _NO_SPEED if card.speed is None else to_json(card.speed)
    # Editors know a model that is to be fetched by its `bytes`.
    if isinstance(card, OfferedModel):
        members |= {"bytes": card.nbytes, "fetched_bytes": card.fetched_bytes, "file": card.file}
    return {**members, "fits": card.fits(free), **speed}


def model_facts(card: ModelCard) -> tuple[str, str]:
    """Two lines: its size, licence and speed here, and what it does."""
    nbytes, speed = card.nbytes, card.speed
    size = f"{nbytes / 1e9:.2f} GB" if nbytes >= 1e7 else f"{nbytes / 1e6:.2f} MB"
    facts = f"{size}, licence {card.licence or 'not named'}"
    if speed is not None:
        approximately = "" if speed.measured else "about "
        facts += f"; {approximately}{speed.tokens_per_s:.0f} tokens/s, "
        facts += f"first text after {speed.first_text_s:.1f} s"
    return facts, ", ".join(WORDS[word] for word in card.does)
