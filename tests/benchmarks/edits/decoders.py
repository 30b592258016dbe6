"""The methods of the edit bench on loaded models."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from accel.decoding.engine import Engine
from accel.verification.sampling import Sampling
from tests.benchmarks.edits.methods import EditMethod
from tests.benchmarks.edits.model import EditDecoder, EngineEdits, HfEdits, PeerEdits
from tests.benchmarks.edits.oracle import OracleEdits
from tests.benchmarks.gguf_peers import GgufPeers, owed_text
from tests.benchmarks.hf_peers import HF_MODES, OTHER_DTYPE, HfPeers
from tests.benchmarks.methods import ORACLE, PLAIN
from tests.benchmarks.peers.gguf_engines import ENGINE_OF


@dataclass(slots=True)
class EditDecoders:
    """By name: what is compared, and what else is measured for the comparison. As
    ``completion_decoders.Decoders``."""

    gguf_peers: GgufPeers
    methods: dict[str, EditDecoder] = field(default_factory=dict)
    baselines: dict[str, EditDecoder] = field(default_factory=dict)
    checks: dict[str, str | None] = field(default_factory=dict)
    hf_plain: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)


def make_decoders(
    args: argparse.Namespace, engine: Engine, methods: dict[str, EditMethod]
) -> EditDecoders:
    """Decoders of the methods and of plain decoding, of ours and transformers'."""
    sampling = Sampling(temperature=args.temperature, top_p=args.top_p, seed=args.seed)
    peers = HfPeers(args, engine, list(methods))
    others = GgufPeers(args, sampling, engine.max_positions)
    made = EditDecoders(others, checks=peers.checks(greedy=sampling.greedy))
    for name, method in methods.items():
        if name in HF_MODES:
            peer = peers.in_dtype(peers.dtype)
            made.methods[name] = HfEdits(peer, HF_MODES[name], engine, sampling)
        elif name in ENGINE_OF:
            chains = others.decodings(name)
            made.methods |= {each: PeerEdits(chain, engine) for each, chain in chains.items()}
            made.checks |= dict.fromkeys(chains, owed_text(name, list(methods)))
        elif name == ORACLE:
            made.methods[name] = OracleEdits(engine, max_nodes=args.max_nodes, sampling=sampling)
        else:
            made.methods[name] = EngineEdits(
                engine, method, max_nodes=args.max_nodes, sampling=sampling
            )
    for name, peer in peers.plain().items():
        made.baselines[name] = HfEdits(peer, "plain", engine, sampling)
    if not args.one_dtype and engine.dtype in OTHER_DTYPE:
        dtype = OTHER_DTYPE[engine.dtype]
        other = Engine.load(args.model, dtype=dtype, threads=args.threads, device=args.device)
        plainly = EditMethod(lambda: None)
        made.baselines[f"{PLAIN} {dtype}"] = EngineEdits(
            other, plainly, max_nodes=0, sampling=sampling
        )
    if sampling.greedy and not args.no_hf:
        made.hf_plain = peers.plain_name(engine.dtype)
    made.settings = {"threads": engine.threads, "transformers": peers.told()} | others.about()
    return made
