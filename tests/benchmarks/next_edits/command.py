"""``next-edit``: windows of real commits, by replay and by a model.

By replay the commit's own text stands in for the model's answer: tokens per forward of the reuse
drafter beside what llama.cpp and Sweep's server draft. By a model in a real engine process: what it
answers, how sure it is, what would be shown by gate, and how long that takes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from accel.models.model_file import model_file
from lsp_server.tasks.next_edits.formats import FORMATS
from tests.benchmarks.next_edits.commits import CommitStep, read_steps
from tests.benchmarks.next_edits.model import asked_answers, print_answers
from tests.benchmarks.next_edits.replay import print_replay
from tests.benchmarks.next_edits.settled import print_settled
from tests.benchmarks.next_edits.speeds import print_speeds
from tests.benchmarks.next_edits.times import print_times
from tests.benchmarks.options import add_engine_argument


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the command."""
    parser.add_argument("--cases", type=Path, required=True, help="commits, a JSON object a line")
    parser.add_argument("--model", required=True, help="a GGUF file; its tokenizer for the replay")
    parser.add_argument("--replay", action="store_true", help="without the model")
    parser.add_argument("--settled", action="store_true", help="what needs no model")
    parser.add_argument("--times", action="store_true", help="from key to shown, in a real server")
    parser.add_argument("--speeds", action="store_true", help="tokens/s beside peers")
    add_engine_argument(parser, default="llama-cpp")
    parser.add_argument("--formats", default="redraft", help="names, separated by commas, or all")
    parser.add_argument("--each", type=int, default=100, help="steps of each kind at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="ask for so long at most")
    parser.add_argument(
        "--most-tokens",
        type=int,
        default=0,
        help="of an edit, the window and its answer, as a machine affords; 0: whole windows",
    )
    parser.add_argument("--repositories", default="", help="names, by commas; default all")
    parser.add_argument("--out", type=Path, help="every answer, a JSON object a line")


def run(args: argparse.Namespace) -> int:
    """Replay, or ask the model."""
    if args.settled:
        print_settled(args.cases)
        return 0
    wanted = args.repositories.split(",") if args.repositories else ()
    every = read_steps(args.cases, args.seed)
    steps = [one for one in every if not wanted or one.repository in wanted]
    steps = chosen_steps(steps, args.each, args.seed)
    print(Counter(step.kind for step in steps))
    names = list(FORMATS) if args.formats == "all" else args.formats.split(",")
    if args.replay:
        tokenizer = model_file(Path(args.model)).tokenizer
        for name in names:
            print_replay(FORMATS[name], steps, tokenizer)
        return 0
    if args.times:
        print_times(args, steps)
        return 0
    if args.speeds:
        for name in names:
            print_speeds(args, FORMATS[name], steps)
        return 0
    for name in names:
        answers = asyncio.run(asked_answers(args, FORMATS[name], steps))
        print_answers(name, answers)
    return 0


def chosen_steps(steps: Iterable[CommitStep], each: int, seed: int) -> list[CommitStep]:
    """So many of each kind, by chance."""
    by_kind: defaultdict[str, list[CommitStep]] = defaultdict(list)
    for step in steps:
        by_kind[step.kind].append(step)
    rng = random.Random(seed)
    return [
        step
        for _, some in sorted(by_kind.items())
        for step in rng.sample(some, min(each, len(some)))
    ]
