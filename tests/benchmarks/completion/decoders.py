"""The methods of the completion bench on loaded models."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

from accel.decoding.engine import Engine
from accel.verification.sampling import Sampling
from tests.benchmarks.completion.model import (
    CompletionMethod,
    EngineDecoder,
    HfDecoder,
    PeerDecoder,
)
from tests.benchmarks.completion.replay import PROMPT_TOKENS
from tests.benchmarks.gguf_peers import GgufPeers, owed_text
from tests.benchmarks.hf_peers import HF_MODES, OTHER_DTYPE, HfPeers
from tests.benchmarks.methods import PLAIN, PLANNED, MakeDrafter
from tests.benchmarks.peers.gguf_engines import ENGINE_OF


@dataclass(slots=True)
class Decoders:
    """By name: what is compared, and what else is measured for the comparison."""

    methods: dict[str, CompletionMethod] = field(default_factory=dict)
    baselines: dict[str, CompletionMethod] = field(default_factory=dict)
    """Plain decoding where the methods leave it out, the other dtype too: speed-ups are told
    against the fastest of all plain decoding."""
    checks: dict[str, str | None] = field(default_factory=dict)
    """Whose text a decoder has to give, where that is not plain decoding's; None: nobody's."""
    hf_plain: str | None = None
    """transformers' plain decoding in the engine's dtype; None where it samples."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Threads and dtypes, for the document."""
    gguf_peers: GgufPeers | None = None
    """Other engines on the same file."""

    def close(self) -> None:
        """End the processes of peers."""
        if self.gguf_peers is not None:
            self.gguf_peers.close()


def make_decoders(
    args: argparse.Namespace,
    engine: Engine,
    drafters: dict[str, MakeDrafter],
    sampling: Sampling,
) -> Decoders:
    """Decoders of the methods and of plain decoding, of ours and transformers'."""
    session = engine.session() if args.share_prompts else None
    peers = HfPeers(args, engine, list(drafters))
    others = GgufPeers(args, sampling, PROMPT_TOKENS + args.max_tokens)
    made = Decoders(checks=peers.checks(greedy=sampling.greedy), gguf_peers=others)
    for name, make in drafters.items():
        if name in ENGINE_OF:
            chains = others.decodings(name)
            made.methods |= {each: PeerDecoder(chain) for each, chain in chains.items()}
            made.checks |= dict.fromkeys(chains, owed_text(name, list(drafters)))
        elif name in HF_MODES:
            made.methods[name] = HfDecoder(peers.in_dtype(peers.dtype), HF_MODES[name], sampling)
        else:
            made.methods[name] = EngineDecoder(
                engine,
                make,
                plan=name in PLANNED,
                max_nodes=args.max_nodes,
                sampling=sampling,
                session=session,
            )
    for name, peer in peers.plain().items():
        made.baselines[name] = HfDecoder(peer, "plain", sampling)
    if not args.one_dtype and engine.dtype in OTHER_DTYPE:
        dtype = OTHER_DTYPE[engine.dtype]
        other = Engine.load(args.model, dtype=dtype, threads=args.threads, device=args.device)
        made.baselines[f"{PLAIN} {dtype}"] = EngineDecoder(
            other, lambda: None, plan=False, max_nodes=0, sampling=sampling
        )
    if sampling.greedy and not args.no_hf:
        made.hf_plain = peers.plain_name(engine.dtype)
    made.settings = {"threads": engine.threads, "transformers": peers.told()}
    made.settings |= others.about()
    return made
