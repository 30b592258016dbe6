"""Describes a model from its header alone. Loads no torch."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from accel.errors import ModelError
from accel.files.model_path import weights_files
from accel.models.model_file import ModelFile, model_file
from lsp_server.models.card import ModelCard
from lsp_server.tasks.apply.formats import apply_format

_NEXT_EDITS = re.compile(r"zeta|sweep-next-edit|instinct", re.IGNORECASE)
"""They have the tokens to fill in the middle, and have forgotten how."""


def describe(path: Path) -> ModelCard:
    """Return the card of the GGUF file or folder at ``path``, or one that says what is wrong."""
    problem, name = "", path.stem if path.is_file() else path.name
    card = ModelCard(name=name, paths=(path,), store="path")
    try:
        opened = model_file(path)
        try:
            opened.check()
        except ModelError as error:
            problem = str(error)
        return replace(_from_header(card, opened), problem=problem)
    except (ModelError, OSError, ValueError) as error:
        return replace(card, nbytes=_size(path), problem=problem or str(error))


def _from_header(card: ModelCard, opened: ModelFile) -> ModelCard:
    parameters, nbytes = opened.parameters, opened.nbytes
    merges = apply_format(opened.title) is not None
    is_for_next_edits = _NEXT_EDITS.search(opened.title) is not None
    does = {
        "fim": opened.fills and not is_for_next_edits and not merges,
        "left": True,
        "edit": opened.has_template and not merges,
        "next-edit": is_for_next_edits,
        "apply": merges,
    }
    return replace(
        card,
        family=opened.family,
        parameters=parameters,
        bits=round(8 * nbytes / parameters, 1) if parameters else 0.0,
        nbytes=nbytes,
        context_tokens=opened.context_tokens,
        licence=opened.licence,
        does=tuple(name for name, can in does.items() if can),
        kv_bytes=opened.token_bytes("bf16", "f16"),
        passed_over=opened.passed_over,
    )


def _size(path: Path) -> int:
    try:
        return sum(file.stat().st_size for file in weights_files(path))
    except (OSError, ModelError):
        return 0
