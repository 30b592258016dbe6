"""llama.cpp as methods of the completion bench: plain, and with chains of its n-gram lookup."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsp_server.shared.errors import BenchError
from operating_system.machine import cores
from tests.benchmarks.completion.replay import PROMPT_TOKENS
from tests.benchmarks.dtypes import gguf_file
from tests.benchmarks.measurement import summarise
from tests.benchmarks.methods import LLAMA_CPP, LLAMA_CPP_NGRAM
from tests.benchmarks.peers.child_process import ChildProcess
from tests.benchmarks.peers.llama_cpp import CHAINS, LlamaCpp

if TYPE_CHECKING:
    from accel.verification.sampling import Sampling
    from tests.benchmarks.completion.model import CompletionMethod, CompletionTask, Decoded
    from tests.benchmarks.measurement import Measurement


class LlamaCppDecoder:
    """llama.cpp's text of a task, with chains of ``draft_tokens`` or none.

    The prompt that another of its methods has computed is not computed again.
    """

    def __init__(self, engine: ChildProcess, draft_tokens: int) -> None:
        self._engine = engine
        self._draft_tokens = draft_tokens

    def __call__(self, task: CompletionTask) -> Decoded:
        """Decode past end tokens, as our engine does."""
        from tests.benchmarks.completion.model import Decoded

        tokens = task.prompt.tokens
        result = self._engine.call("generate", tokens, task.max_tokens, self._draft_tokens)
        return Decoded(result.tokens, result.statistics)


def llama_cpp_decoders(engine: ChildProcess, name: str) -> dict[str, CompletionMethod]:
    """The decoder of a method, or one for every chain that is tried for it."""
    if name == LLAMA_CPP:
        return {name: LlamaCppDecoder(engine, 0)}
    return {f"{name} {count}": LlamaCppDecoder(engine, count) for count in CHAINS}


def open_llama_cpp(args: argparse.Namespace, sampling: Sampling) -> ChildProcess:
    """The file of ``--model`` in llama.cpp, in a process of its own. Raises BenchError."""
    if not sampling.greedy or sampling.repetition_penalty != 1:
        raise BenchError("llama-cpp decodes greedily; leave --temperature and the penalty out")
    threads, context = args.threads or cores(), PROMPT_TOKENS + args.max_tokens
    return ChildProcess(LLAMA_CPP, LlamaCpp, gguf_file(args.model), threads, context)


def with_best_chain(
    measurements: list[Measurement],
) -> tuple[list[Measurement], dict[str, float]]:
    """The measurements with the chain of the n-gram lookup that was fastest over all of them in
    place of all chains, and tokens per second by chain."""
    speeds: dict[str, float] = {}
    for count in CHAINS:
        own = [each for each in measurements if each.method == f"{LLAMA_CPP_NGRAM} {count}"]
        if own:
            speeds[str(count)] = summarise(own)["tokens_per_s"]
    if not speeds:
        return measurements, {}
    best = f"{LLAMA_CPP_NGRAM} {max(speeds, key=speeds.__getitem__)}"
    others = {f"{LLAMA_CPP_NGRAM} {count}" for count in CHAINS} - {best}
    kept = [
        replace(each, method=LLAMA_CPP_NGRAM) if each.method == best else each
        for each in measurements
        if each.method not in others
    ]
    return kept, speeds


def add_chains(document: dict[str, Any], speeds: dict[str, float]) -> None:
    """``draft_tokens`` of the chain that was taken, and ``tokens_per_s_by_draft_tokens``."""
    if speeds:
        best = int(max(speeds, key=speeds.__getitem__))
        fields = {"draft_tokens": best, "tokens_per_s_by_draft_tokens": speeds}
        document["methods"][LLAMA_CPP_NGRAM] |= fields
