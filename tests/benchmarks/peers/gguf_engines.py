"""Other engines that read a GGUF file, by the names that ``--peer`` and ``--methods`` know."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_server.shared.errors import BenchError
from tests.benchmarks.peers.child_process import ChildProcess
from tests.benchmarks.peers.gguf_engine import CHAINS
from tests.benchmarks.peers.ik_llama_cpp import IkLlamaCpp
from tests.benchmarks.peers.llama_cpp import LlamaCpp
from tests.benchmarks.peers.openvino import OpenVino


@dataclass(frozen=True, slots=True)
class GgufEngine:
    """``lookup``: the method that drafts by its lookup, beside its plain decoding, which has the
    engine's own name; ``options``: of ``kind`` behind path, threads and context."""

    kind: type[Any]
    lookup: str
    options: tuple[Any, ...] = ()


ENGINES = {
    "llama-cpp": GgufEngine(LlamaCpp, "llama-cpp-ngram"),
    "ik-llama-cpp": GgufEngine(IkLlamaCpp, "ik-llama-cpp-ngram"),
    "ik-llama-cpp-repacked": GgufEngine(IkLlamaCpp, "ik-llama-cpp-repacked-ngram", (True,)),
    "openvino": GgufEngine(OpenVino, "openvino-prompt-lookup"),
    "openvino-f32": GgufEngine(OpenVino, "openvino-f32-prompt-lookup", ("f32",)),
}

ENGINE_OF = {each.lookup: name for name, each in ENGINES.items()}
ENGINE_OF |= {name: name for name in ENGINES}
"""By method: whose it is."""


def chosen_engines(names: str) -> list[str]:
    """Names of a comma-separated list, each installed. Raises BenchError or PeerUnavailable."""
    chosen = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in chosen:
        if name not in ENGINES:
            raise BenchError(f"--peer {name}: no such peer; known are {', '.join(ENGINES)}")
        ENGINES[name].kind.check_installed()
    return chosen


def with_peers(methods: str | None, peers: str) -> str | None:
    """``--methods`` and those of ``--peer``; plain decoding and ours where none were named."""
    found = [name for engine in chosen_engines(peers) for name in (engine, ENGINES[engine].lookup)]
    return ",".join([methods or "plain,redraft", *found]) if found else methods


def open_engine(name: str, file: Path, threads: int, context: int) -> ChildProcess:
    """The file in a process of its own. Raises what the engine raises."""
    engine = ENGINES[name]
    return ChildProcess(name, engine.kind, file, threads, context, *engine.options)


def decoders_of(method: str) -> dict[str, int]:
    """Tokens of a lookup, by the name of a decoder: of plain decoding 0, and of a lookup every
    number that is tried."""
    if method in ENGINES:
        return {method: 0}
    return {f"{method} {count}": count for count in CHAINS}
