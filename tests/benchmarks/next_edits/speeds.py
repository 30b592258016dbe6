"""Tokens a second of windows by the model, beside other engines on the same file and prompts:
plain and with their lookups."""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from accel.models.model_file import model_file
from lsp_server.editor.next_edits.model import WindowRequest
from lsp_server.editor.next_edits.prompts import prompt_pieces
from lsp_server.engine.client import EngineClient
from lsp_server.shared.contract.jobs import EDIT, JobResult
from lsp_server.tasks.next_edits.formats import NextEditFormat
from operating_system.machine import cores
from tests.benchmarks.next_edits.commits import CommitStep
from tests.benchmarks.next_edits.model import ready_engine, request_of
from tests.benchmarks.peers.child_process import ChildProcess
from tests.benchmarks.peers.gguf_engines import ENGINES, chosen_engines, open_engine

CONTEXT = 4096
OURS = "redraft"


def print_speeds(
    args: argparse.Namespace, fmt: NextEditFormat, steps: Sequence[CommitStep]
) -> None:
    """The same windows, by turns, for so long as ``args.seconds``."""
    tokens: defaultdict[str, int] = defaultdict(int)
    seconds: defaultdict[str, float] = defaultdict(float)
    threads = args.threads or cores()
    with ExitStack() as stack:
        peers = {}
        for name in chosen_engines(args.peer):
            engine = open_engine(name, Path(args.model), threads, CONTEXT)
            peers[name] = stack.enter_context(engine)
        asyncio.run(_by_turns(args, fmt, steps, peers, tokens, seconds))
    speeds = {name: tokens[name] / seconds[name] for name in tokens}
    for name, speed in speeds.items():
        print(f"{name}: {tokens[name]} tokens, {speed:.0f} a second of decoding")
    fastest = max((name for name in speeds if name != OURS), key=speeds.__getitem__)
    print(f"redraft is {speeds[OURS] / speeds[fastest]:.2f} times as fast as {fastest} (>= 3)")


async def _by_turns(
    args: argparse.Namespace,
    fmt: NextEditFormat,
    steps: Sequence[CommitStep],
    peers: Mapping[str, ChildProcess],
    tokens: defaultdict[str, int],
    seconds: defaultdict[str, float],
) -> None:
    tokenizer = model_file(Path(args.model)).tokenizer
    engine = await ready_engine(args)
    ends = time.monotonic() + args.seconds
    for number, step in enumerate(random.Random(args.seed).sample(steps, len(steps))):
        request = request_of(step, fmt)
        prompt = (
            tokenizer.encode_with_controls(prompt_pieces(request.window, fmt)) if request else ()
        )
        if request is None or len(prompt) > CONTEXT // 2:
            continue
        result = await _answer(engine, request)
        if result.stopped_by not in ("end", "stop") or not result.tokens:
            continue
        if number:
            # The first one loads what is loaded at the first request.
            tokens[OURS] += result.tokens
            seconds[OURS] += result.seconds
            for peer, engine_of_peer in peers.items():
                for way, lookup in ENGINES[peer].kind.lookups.items():
                    answer = engine_of_peer.call("generate", prompt, result.tokens, lookup)
                    tokens[f"{peer}, {way}"] += result.tokens
                    seconds[f"{peer}, {way}"] += answer.statistics.decode_s
        if time.monotonic() > ends and tokens:
            break
    await engine.close()


async def _answer(engine: EngineClient, request: WindowRequest) -> JobResult:
    result: JobResult = await engine.ask(request.job(), "bench", None, EDIT).future
    return result
