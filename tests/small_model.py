"""A model of nine million parameters for tests: a Llama folder with fill-in-the-middle tokens.

It is chosen for all that the tests start, as a user chooses one.
"""

from __future__ import annotations

import json
from pathlib import Path

SMALL_MODEL = Path(__file__).parent / "data" / "small_model"
ADAPTIVE_TOKENS = SMALL_MODEL.parent / "small_model.adaptive.safetensors"
"""Embeddings of adaptive tokens that were learnt for it, which stays as it is."""
SMALL_DRAFT = SMALL_MODEL / "draft"
"""A smaller one of the same tokenizer, which drafts edits."""


def choose_small_model(config_home: Path, model: Path = SMALL_MODEL) -> None:
    """Choose ``model`` as ``redraft models use`` does, for the user of ``config_home``."""
    choices = config_home / "redraft" / "models.json"
    choices.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    choices.write_text(json.dumps({"completion": str(model)}))
