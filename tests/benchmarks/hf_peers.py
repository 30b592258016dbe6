"""transformers' models of a run on a model: one for each dtype, in the setting that serves it best.

Our engine finds its fastest number of threads by timing, so transformers is given the same.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, get_args

from accel.decoding.engine import Engine
from accel.files.model_options import DType
from accel.models.hub import find_model_path
from lsp_server.shared.errors import BenchError
from tests.benchmarks.dtypes import FASTEST
from tests.benchmarks.methods import PLAIN
from tests.benchmarks.peers.hf_generate import HfGenerate, Mode

HF_GENERATE = "hf-generate"
HF_MODES: dict[str, Mode] = {
    HF_GENERATE: "plain",
    "hf-prompt-lookup": "prompt-lookup",
    "standard-sd": "assisted",
}
OTHER_DTYPE: dict[str, DType] = {"fp32": "bf16", "bf16": "fp32"}


class HfPeers:
    """Loads transformers' models as they are asked for."""

    def __init__(self, args: argparse.Namespace, engine: Engine, names: list[str]) -> None:
        """``names``: the methods of the run. ``args.hf_dtype`` is the dtype of those that
        transformers decodes: None for that of ``engine``, or ``fastest``. Raises BenchError where
        ``args.no_hf`` leaves transformers out and a method is its own."""
        assert set(HF_MODES.values()) == set(get_args(Mode))
        self._args = args
        self._engine = engine
        self._draft_model = args.draft_model if "standard-sd" in names else None
        own = sorted(HF_MODES.keys() & set(names))
        if args.no_hf and own:
            raise BenchError(f"--no-hf leaves transformers out; take {own[0]} out of --methods")
        self._loaded: dict[str, HfGenerate] = {}
        self._names = names
        self.dtype: str = engine.dtype if engine.dtype in OTHER_DTYPE else "bf16"
        """Of the methods that transformers decodes."""
        if args.hf_dtype == FASTEST and not args.no_hf:
            self.dtype = min(OTHER_DTYPE, key=lambda dtype: self.in_dtype(dtype).step_s)
        elif args.hf_dtype:
            self.dtype = args.hf_dtype

    def in_dtype(self, dtype: str) -> HfGenerate:
        """The model in ``dtype``, with the threads of ``--threads`` or the fastest number."""
        if dtype not in self._loaded:
            draft = self._draft_model
            peer = HfGenerate(
                find_model_path(self._args.model),
                dtype="bf16" if dtype == "bf16" else "fp32",
                device=str(self._engine.model.device),
                draft_folder=find_model_path(Path(draft)) if draft else None,
            )
            peer.settle(self._args.threads)
            self._loaded[dtype] = peer
        return self._loaded[dtype]

    def plain(self) -> dict[str, HfGenerate]:
        """By name: plain decoding in every dtype of the run that is no method of it."""
        if self._args.no_hf:
            return {}
        dtypes = [self._engine.dtype if self._engine.dtype in OTHER_DTYPE else self.dtype]
        if HF_MODES.keys() & set(self._names):
            dtypes.append(self.dtype)
        if not self._args.one_dtype and self._engine.dtype in OTHER_DTYPE:
            dtypes.append(OTHER_DTYPE[self._engine.dtype])
        names = {self.plain_name(dtype): dtype for dtype in dict.fromkeys(dtypes)}
        return {
            name: self.in_dtype(dtype) for name, dtype in names.items() if name not in self._names
        }

    def plain_name(self, dtype: str) -> str:
        """Under what transformers' plain decoding in ``dtype`` stands in the tables."""
        return HF_GENERATE if dtype == self.dtype else f"{HF_GENERATE} {dtype}"

    def told(self) -> dict[str, Any]:
        """For the document: the setting of the methods that transformers decodes."""
        peer = self._loaded.get(self.dtype)
        return {"dtype": self.dtype, "threads": peer.threads if peer else None}

    def checks(self, *, greedy: bool) -> dict[str, str | None]:
        """Which decoding each of transformers' methods owes its text to: our plain decoding in the
        same dtype, its own in another, and nobody's where it samples by other draws than ours."""
        same = PLAIN if self.dtype == self._engine.dtype else HF_GENERATE
        owed: dict[str, str | None] = dict.fromkeys(HF_MODES, same)
        owed.update(dict.fromkeys(self.plain(), PLAIN))
        return owed if greedy else dict.fromkeys(owed)
