"""The methods of the completion bench on loaded models."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import get_args

from accel.engine import DType, Engine
from accel.loading import find_folder
from accel.peers.hf_generate import HfGenerate, Mode
from accel.sampling import Sampling
from lsp_server.bench.completion_model import Decoder, EngineDecoder, HfDecoder
from lsp_server.bench.methods import PLAIN, PLANNED, MakeDrafter

HF_MODES: dict[str, Mode] = {
    "hf-generate": "plain",
    "hf-prompt-lookup": "prompt-lookup",
    "standard-sd": "assisted",
}
OTHER_DTYPE: dict[str, DType] = {"fp32": "bf16", "bf16": "fp32"}


def make_decoders(
    args: argparse.Namespace,
    engine: Engine,
    drafters: dict[str, MakeDrafter],
    sampling: Sampling,
) -> tuple[dict[str, Decoder], dict[str, Decoder]]:
    """Decoders of the methods, and of plain decoding where the methods leave it out: the other
    dtype and transformers, against the fastest of which speed-ups are told."""
    assert set(HF_MODES.values()) == set(get_args(Mode))
    hf: HfGenerate | None = None
    session = engine.session() if args.share_prompts else None
    decoders: dict[str, Decoder] = {}
    for name, make in drafters.items():
        if name in HF_MODES:
            draft_model = args.draft_model if "standard-sd" in drafters else None
            hf = hf or _peer(args, engine, engine.dtype, draft_model)
            decoders[name] = HfDecoder(hf, HF_MODES[name], engine, sampling)
        else:
            decoders[name] = EngineDecoder(
                engine,
                make,
                plan=name in PLANNED,
                max_nodes=args.max_nodes,
                sampling=sampling,
                session=session,
            )
    baselines: dict[str, Decoder] = {}
    if "hf-generate" not in decoders:
        hf = hf or _peer(args, engine, engine.dtype)
        baselines["hf-generate"] = HfDecoder(hf, "plain", engine, sampling)
    if not args.one_dtype:
        dtype = OTHER_DTYPE[engine.dtype]
        other = Engine.load(args.model, dtype=dtype, threads=args.threads, device=args.device)
        baselines[f"{PLAIN} {dtype}"] = EngineDecoder(
            other, lambda: None, plan=False, max_nodes=0, sampling=sampling
        )
        peer = _peer(args, engine, dtype)
        baselines[f"hf-generate {dtype}"] = HfDecoder(peer, "plain", other, sampling)
    return decoders, baselines


def _peer(
    args: argparse.Namespace, engine: Engine, dtype: str, draft_model: Path | None = None
) -> HfGenerate:
    return HfGenerate(
        find_folder(args.model),
        dtype="bf16" if dtype == "bf16" else "fp32",
        device=str(engine.model.device),
        draft_folder=draft_model,
    )
