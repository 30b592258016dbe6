"""Rows of EfficientEdit's Tables II and III and of its figure 5, for ``tests.benchmarks edit``.

A row is named as in the paper: ``reuse+our+entropy-3`` reuses the original, drafts new text by the
draft model tuned on new lines and verifies by entropy with k = 3. ``base`` is that model before its
tuning, ``sft`` the same tuned on all tokens; without ``reuse+`` it is plain speculative decoding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from accel.verification.choosing import entropy_tokens
from tests.benchmarks.edits.methods import EditMethod, efficientedit
from tests.benchmarks.methods import MethodSetup
from tests.benchmarks.published.efficientedit_verifiers import (
    all_tokens,
    likeliest_tokens,
)

if TYPE_CHECKING:
    from accel.decoding.engine import Engine
    from accel.verification.verify_tree import Relaxed

DRAFT_MODELS = ("base", "our", "sft")
VERIFIERS: dict[str, Relaxed | None] = {
    "greedy": None,
    "direct": all_tokens,
    **{f"top-{k}": partial(likeliest_tokens, top_k=k) for k in (3, 5)},
    **{f"entropy-{k}": partial(entropy_tokens, top_k=k) for k in (3, 5, 7)},
}
TABLE_II = [
    f"{reuse}{model}+{verifier}"
    for reuse in ("", "reuse+")
    for model in DRAFT_MODELS
    for verifier in ("greedy", "entropy-3")
]
TABLE_III = [f"reuse+our+{name}" for name in ("greedy", "direct", "top-3", "top-5", "entropy-3")]
FIGURE_5 = [f"reuse+our+entropy-{k}" for k in (3, 5, 7)]
ABLATION = list(dict.fromkeys([*TABLE_II, *TABLE_III, *FIGURE_5]))
"""What ``--ablation`` measures, beside ``plain``, ``fastfixer`` and ``redraft``."""


def ablation_methods(
    models: Mapping[str, Engine],
) -> dict[str, Callable[[MethodSetup], EditMethod]]:
    """Builders of all rows, by name. A row whose draft model is not among ``models`` (by ``base``,
    ``our``, ``sft``) raises PeerUnavailable when it is built."""
    return {
        f"{reuse}{model}+{verifier}": _row(models, model, verifier, reuse=bool(reuse))
        for reuse in ("", "reuse+")
        for model in DRAFT_MODELS
        for verifier in VERIFIERS
    }


def _row(
    models: Mapping[str, Engine], model: str, verifier: str, *, reuse: bool
) -> Callable[[MethodSetup], EditMethod]:
    def build(setup: MethodSetup) -> EditMethod:
        from tests.benchmarks.peers.errors import PeerUnavailable

        if model not in models:
            option = "--draft-model" if model == "our" else f"--draft-{model}"
            raise PeerUnavailable(f"{model} needs a draft model; give {option} DIR")
        make = efficientedit(models[model], reuse=reuse)(setup)
        return EditMethod(make, relaxed=VERIFIERS[verifier])

    return build


def draft_folders(our: Path | None, base: Path | None, sft: Path | None) -> dict[str, Path]:
    """Folders of the draft models that are given, by name."""
    given = {"base": base, "our": our, "sft": sft}
    return {name: folder for name, folder in given.items() if folder is not None}
