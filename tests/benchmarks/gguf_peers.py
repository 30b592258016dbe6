"""Other engines on the same GGUF file as methods of benches: plain, and with chains of their
lookup."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import BenchError
from operating_system.machine import cores
from tests.benchmarks.dtypes import gguf_file
from tests.benchmarks.measurement import summarise
from tests.benchmarks.peers.gguf_engine import CHAINS
from tests.benchmarks.peers.gguf_engines import ENGINE_OF, ENGINES, decoders_of, open_engine

if TYPE_CHECKING:
    from accel.draft_tree import TokenArray
    from accel.verification.sampling import Sampling
    from tests.benchmarks.measurement import Measurement
    from tests.benchmarks.peers.child_process import ChildProcess
    from tests.benchmarks.peers.gguf_engine import PeerAnswer


@dataclass(frozen=True, slots=True)
class PeerDecoding:
    """Plain decoding of an engine, or with ``draft_tokens`` of its lookup. A prompt that another
    method of the engine has computed may not be computed again."""

    engine: ChildProcess
    draft_tokens: int

    def generate(
        self, prompt: TokenArray, max_tokens: int, stop_tokens: frozenset[int] = frozenset()
    ) -> PeerAnswer:
        """What the engine answers."""
        answer: PeerAnswer = self.engine.call(
            "generate", prompt, max_tokens, self.draft_tokens, stop_tokens
        )
        return answer


class GgufPeers:
    """Engines in processes of their own, opened as their methods are asked for."""

    def __init__(self, args: argparse.Namespace, sampling: Sampling, context: int) -> None:
        """``context``: tokens of a text at most."""
        self._args, self._sampling, self._context = args, sampling, context
        self._opened: dict[str, ChildProcess] = {}

    def decodings(self, method: str) -> dict[str, PeerDecoding]:
        """By name: of plain decoding one, of a lookup one for every chain that is tried. Raises
        BenchError."""
        name = ENGINE_OF[method]
        if not self._sampling.greedy or self._sampling.repetition_penalty != 1:
            raise BenchError(f"{name} decodes greedily; leave --temperature and the penalty out")
        if name not in self._opened:
            file, threads = gguf_file(self._args.model), self._args.threads or cores()
            self._opened[name] = open_engine(name, file, threads, self._context)
        engine = self._opened[name]
        return {each: PeerDecoding(engine, count) for each, count in decoders_of(method).items()}

    def about(self) -> dict[str, Any]:
        """By name of the engine: what it says of itself."""
        return {name: engine.call("about") for name, engine in self._opened.items()}

    def close(self) -> None:
        """End the processes."""
        for engine in self._opened.values():
            engine.close()


def owed_text(method: str, methods: list[str]) -> str | None:
    """Whose text a method has to give: a lookup that of its engine's plain decoding where that is
    among ``methods``. An engine owes our text nothing."""
    engine = ENGINE_OF[method]
    return engine if engine != method and engine in methods else None


def with_best_chains(
    measurements: list[Measurement],
) -> tuple[list[Measurement], dict[str, dict[str, float]]]:
    """The measurements with, of each lookup, the chain that was fastest over all of them in place
    of all chains, and tokens per second by method and chain."""
    speeds: dict[str, dict[str, float]] = {}
    for engine in ENGINES.values():
        for count in CHAINS:
            own = [each for each in measurements if each.method == f"{engine.lookup} {count}"]
            if own:
                speed = summarise(own)["tokens_per_s"]
                speeds.setdefault(engine.lookup, {})[str(count)] = speed
    names = {f"{method} {count}": method for method in speeds for count in CHAINS}
    best = {f"{method} {_best(chains)}" for method, chains in speeds.items()}
    kept = [
        replace(each, method=names.get(each.method, each.method))
        for each in measurements
        if each.method in best or each.method not in names
    ]
    return kept, speeds


def _best(chains: dict[str, float]) -> str:
    return max(chains, key=chains.__getitem__)


def add_chains(document: dict[str, Any], speeds: dict[str, dict[str, float]]) -> None:
    """``draft_tokens`` of the chain that was taken, and ``tokens_per_s_by_draft_tokens``."""
    for method, chains in speeds.items():
        fields = {"draft_tokens": int(_best(chains)), "tokens_per_s_by_draft_tokens": chains}
        document["methods"][method] |= fields
