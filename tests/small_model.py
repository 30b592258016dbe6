"""A model of nine million parameters for tests: a Llama folder with fill-in-the-middle tokens.

It is chosen for all that the tests start, as a user chooses one, and the order of prompts that
suits it is known from the beginning.
"""

from __future__ import annotations

import json
from pathlib import Path

SMALL_MODEL = Path(__file__).parent / "data" / "small_model"
ADAPTIVE_TOKENS = SMALL_MODEL.parent / "small_model.adaptive.safetensors"
"""Embeddings of adaptive tokens that were learnt for it, which stays as it is."""
SMALL_DRAFT = SMALL_MODEL / "draft"
"""A smaller one of the same tokenizer, which drafts edits."""


def choose_small_model(config_home: Path, cache_home: Path, model: Path = SMALL_MODEL) -> None:
    """As ``redraft models use`` does, for all who find their user's folders there."""
    choices = config_home / "redraft" / "models.json"
    choices.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    choices.write_text(json.dumps({"completion": str(model)}))
    know_small_model(cache_home, model)


def know_small_model(cache_home: Path, model: Path = SMALL_MODEL) -> None:
    """Which order of prompts suits it, as after its first start on this machine. Nothing where the
    server is installed elsewhere, as for tests of editors."""
    try:
        from accel.models.fingerprint import fingerprint
    except ImportError:
        return
    profile = cache_home / "redraft" / "profiles" / f"{fingerprint(model, 'cpu')}.json"
    profile.parent.mkdir(parents=True, exist_ok=True)
    # Asked for while it is measured, one engine would ask in another order than the next.
    profile.write_text(json.dumps({"losses by order": {"suffix_first": 0.947}}))
