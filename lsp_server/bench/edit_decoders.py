"""The methods of the edit bench on loaded models."""

from __future__ import annotations

import argparse

from accel.engine import Engine
from accel.loading import find_folder
from accel.peers.hf_generate import HfGenerate
from accel.sampling import Sampling
from lsp_server.bench.completion_decoders import HF_MODES, OTHER_DTYPE
from lsp_server.bench.edit_methods import EditMethod
from lsp_server.bench.edit_model import EditDecoder, EngineEdits, HfEdits
from lsp_server.bench.methods import PLAIN


def make_decoders(
    args: argparse.Namespace, engine: Engine, methods: dict[str, EditMethod]
) -> tuple[dict[str, EditDecoder], dict[str, EditDecoder]]:
    """Decoders of the methods, and of plain decoding where the methods leave it out: the other
    dtype and transformers, against the fastest of which speed-ups are told."""
    sampling = Sampling(temperature=args.temperature, top_p=args.top_p, seed=args.seed)
    hf: HfGenerate | None = None
    decoders: dict[str, EditDecoder] = {}
    for name, method in methods.items():
        if name in HF_MODES:
            hf = hf or _peer(args, engine, engine.dtype, args.draft_model)
            decoders[name] = HfEdits(hf, HF_MODES[name], engine, sampling)
        else:
            decoders[name] = EngineEdits(
                engine, method, max_nodes=args.max_nodes, sampling=sampling
            )
    baselines: dict[str, EditDecoder] = {}
    if "hf-generate" not in decoders:
        hf = hf or _peer(args, engine, engine.dtype, None)
        baselines["hf-generate"] = HfEdits(hf, "plain", engine, sampling)
    if not args.one_dtype:
        dtype = OTHER_DTYPE[engine.dtype]
        other = Engine.load(args.model, dtype=dtype, threads=args.threads, device=args.device)
        plainly = EditMethod(lambda: None)
        baselines[f"{PLAIN} {dtype}"] = EngineEdits(other, plainly, max_nodes=0, sampling=sampling)
        peer = _peer(args, engine, dtype, None)
        baselines[f"hf-generate {dtype}"] = HfEdits(peer, "plain", other, sampling)
    return decoders, baselines


def _peer(
    args: argparse.Namespace, engine: Engine, dtype: str, draft_model: str | None
) -> HfGenerate:
    return HfGenerate(
        find_folder(args.model),
        dtype="bf16" if dtype == "bf16" else "fp32",
        device=str(engine.model.device),
        draft_folder=find_folder(draft_model) if draft_model else None,
    )
