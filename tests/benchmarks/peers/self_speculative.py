"""Self-speculative decoding: the model with some of its layers left out drafts for the whole model.

Jun Zhang et al., "Draft & Verify: Lossless Large Language Model Acceleration via Self-Speculative
Decoding", ACL 2024. Which layers are left out is found by measuring, one layer after another,
where the paper searches by Bayesian optimisation; the stop at an unsure token is theirs.
"""

from __future__ import annotations

import heapq
import inspect
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from accel.decoding.engine import Engine
from accel.draft_tree import TokenArray
from accel.models.hf_loading import load_module
from accel.models.hub import find_model_path
from accel.models.model_file import model_file
from tests.benchmarks.peers.errors import PeerUnavailable

MOST_TOKENS = 12
"""Tokens of a draft at most, as in the paper."""
LEAST_CONFIDENCE = 0.4
"""A draft ends behind a token that the drafting model gives less."""
SAMPLE_TOKENS = 512
_TOKENIZER_FILES = ("tokenizer*", "special_tokens_map.json", "*.jinja")


class SelfSpeculativeModel:
    """The drafting half of a model, as a folder of its own for as long as this object lives."""

    def __init__(self, model: str | Path | None, keep: int | Sequence[int] | None = None) -> None:
        """``keep``: how many layers draft, half of them by default, or which ones, from 0.

        Raises PeerUnavailable for a model whose layers are not where Llama's are.
        """
        folder = find_model_path(model)
        module: Any = load_module(folder, torch.float32, torch.device("cpu"), "eager")
        count = len(_layers_of(module))
        if keep is None or isinstance(keep, int):
            number = max(count // 2, 1) if keep is None else keep
            if not 0 < number <= count:
                raise PeerUnavailable(f"the model has {count} layers; let 1 to {count} draft")
            self.kept = choose_layers(module, _sample(folder), number)
        else:
            self.kept = sorted(set(keep))
            if not self.kept or self.kept[0] < 0 or self.kept[-1] >= count:
                raise PeerUnavailable(f"the model has layers 0 to {count - 1}; name some of them")
        self._place = tempfile.TemporaryDirectory(prefix="redraft-self-speculative-")
        self.folder = Path(self._place.name)
        _keep_layers(module, self.kept)
        module.save_pretrained(self.folder)
        for pattern in _TOKENIZER_FILES:
            for file in folder.glob(pattern):
                shutil.copy(file, self.folder)

    def engine(self, dtype: str, threads: int, device: str) -> Engine:
        """The drafting half as an engine."""
        return Engine.load(
            self.folder,
            dtype="bf16" if dtype == "bf16" else "fp32",
            threads=threads,
            device=device,
        )


def choose_layers(module: Any, sample: TokenArray, keep: int) -> list[int]:
    """``keep`` layers that draft best: again and again the layer is left out without which most of
    the whole model's own choices on ``sample`` (int32 [n]) stay the same."""
    layers = list(_layers_of(module))
    kept = list(range(len(layers)))
    ids = torch.from_numpy(np.asarray(sample, np.int64))[None]
    wanted = _choices(module, layers, kept, ids)
    while len(kept) > keep:
        agreed = [
            int((_choices(module, layers, kept[:place] + kept[place + 1 :], ids) == wanted).sum())
            for place in range(len(kept))
        ]
        # Of equals the last one in the middle goes: first and last layers carry the most.
        order = sorted(range(len(kept)), key=lambda place: (agreed[place], _inner(place, kept)))
        del kept[order[-1]]
    module.model.layers = nn.ModuleList(layers)
    return kept


def _inner(place: int, kept: list[int]) -> int:
    return min(place, len(kept) - 1 - place)


def _choices(module: Any, layers: list[nn.Module], kept: list[int], ids: Tensor) -> Tensor:
    """The likeliest next token at every place of ``ids`` [1, n] with the ``kept`` layers alone."""
    module.model.layers = nn.ModuleList(layers[index] for index in kept)
    with torch.inference_mode():
        choices: Tensor = module(input_ids=ids, use_cache=False).logits[0].argmax(-1)
    return choices


def _keep_layers(module: Any, kept: list[int]) -> None:
    config = module.config
    module.model.layers = nn.ModuleList(module.model.layers[index] for index in kept)
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[index] for index in kept]
    config.num_hidden_layers = len(kept)


def _layers_of(module: Any) -> Any:
    layers = getattr(getattr(module, "model", None), "layers", None)
    if not isinstance(layers, nn.ModuleList):
        raise PeerUnavailable("self-speculative needs a model whose layers are model.layers")
    return layers


def _sample(folder: Path) -> TokenArray:
    """Code that every Python has, to choose layers by."""

    return model_file(folder).tokenizer.encode(inspect.getsource(heapq))[:SAMPLE_TOKENS]
