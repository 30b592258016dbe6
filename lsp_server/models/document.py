"""The list of models as JSON, for editors and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from accel.free_memory import free_bytes
from accel.models.room import has_room
from lsp_server.models.catalogue import KnownModel
from lsp_server.models.choices import Choices
from lsp_server.models.manifest import OfferedModel
from lsp_server.models.recommendation import recommended, recommended_for_edits
from lsp_server.models.speed import Speed, estimated_speed
from lsp_server.models.used import used_models
from lsp_server.settings import Settings

WORDS = {
    "fim": "fills in the middle",
    "left": "goes on from the left",
    "edit": "edits",
    "next-edit": "next edits",
}
"""What a model does, as people read it."""


def models_document(
    models: Sequence[KnownModel], chosen: Choices, offered: Sequence[OfferedModel]
) -> dict[str, Any]:
    """What is here, what can be fetched, what is recommended and what is chosen."""
    missing, free = not_here(offered, models), free_bytes()
    for_edits = recommended_for_edits(models, missing)
    return {
        "models": [_entry(model, free) for model in models],
        "offered": [_offer(model) for model in missing],
        "recommended": asdict(recommended(models, missing)),
        "recommended_for_edits": for_edits and asdict(for_edits),
        "chosen": chosen_models(chosen),
    }


def not_here(offered: Sequence[OfferedModel], models: Sequence[KnownModel]) -> list[OfferedModel]:
    """Those of the models that can be fetched that were not yet."""
    names = {path.name for model in models for path in model.paths}
    return [model for model in offered if model.file not in names]


def chosen_models(chosen: Choices) -> dict[str, str]:
    """The chosen model of each purpose, empty for none."""
    used = used_models(Settings(), chosen)
    return {
        "completion": used.completion.path,
        "edits": used.edits.path,
        "next-edits": chosen.next_edits,
        "drafts": chosen.drafts,
    }


def _entry(model: KnownModel, free: int) -> dict[str, Any]:
    about = model.about
    return {
        "name": model.name,
        "names": list(model.names),
        "paths": [str(path) for path in model.paths],
        "source": model.source,
        "family": about.family,
        "parameters": about.parameters,
        "bits": about.bits,
        "context_tokens": about.context_tokens,
        "licence": about.licence,
        "does": list(about.does),
        "fits": has_room(about.nbytes, about.kv_bytes, free),
        **_speed(model.speed),
        "problem": about.problem,
    }


def _offer(model: OfferedModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "source": model.source.shown,
        "bytes": model.nbytes,
        "fetched_bytes": model.fetched_bytes,
        "family": model.family,
        "parameters": model.parameters,
        "bits": model.bits,
        "context_tokens": model.context_tokens,
        "licence": model.licence,
        "terms": model.terms,
        "purpose": model.purpose,
        "does": list(model.does),
        "fits": has_room(model.memory_bytes, model.kv_bytes),
        **_speed(estimated_speed(model.nbytes) if model.nbytes else None),
    }


def _speed(speed: Speed | None) -> dict[str, Any]:
    return {
        "first_text_s": speed and speed.first_text_s,
        "tokens_per_s": speed and speed.tokens_per_s,
        "measured": bool(speed and speed.measured),
    }
