"""A model in fp32 by plain products of torch: slow, and what others are compared with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from accel.draft_tree import TokenArray
from operating_system.machine import cores
from tests.benchmarks.gguf_module import load_decoder
from tests.benchmarks.peers.judged import Judged, judge


class Fp32Reference:
    """A GGUF file or a folder, its weights dequantised, on the CPU."""

    def __init__(self, path: Path) -> None:
        """Raises BrokenModel, UnsupportedModel or OutOfMemory."""
        torch.set_num_threads(cores())
        self._module: Any = load_decoder(path, torch.float32, torch.device("cpu"), "eager")

    def judge(self, window: TokenArray, following: TokenArray) -> Judged:
        """What it says after each token of ``window``; ``following``: the tokens that follow."""
        tokens = torch.from_numpy(np.asarray(window, np.int64))[None]
        with torch.inference_mode():
            logits = self._module(input_ids=tokens, use_cache=False).logits[0]
        return judge(logits.float().numpy(), following)
