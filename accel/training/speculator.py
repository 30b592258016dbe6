"""`redraft train speculator`: a small network that guesses on from a model's last state.

It learns what the model itself would write, and is told what retrieval would draft: one or other is
right more often than either. ``accel.speculator`` says what is written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from accel.loading import check_folder, end_tokens, find_folder, load_module
from accel.mask_tokens import read_weights, save_weights, sha256_of_base
from accel.matmul import BLOCK
from accel.speculator import FILE, LENGTHS
from accel.tokenizer import Tokenizer
from accel.training.adaptive import texts_of
from accel.training.bar import Bar
from accel.training.errors import TrainingError
from accel.training.frozen_base import FrozenBase
from accel.training.own_text import HOLE_SHARE, PromptMaker
from accel.training.speculator_texts import ANSWER, DEPTH, STRAYS, Batch, Examples, read_examples

RECORD = "speculator.json"
FREQUENT = 192
"""Tokens that are guessed in every text."""
COMMON = 3072
"""Tokens that are wrong answers in every batch, beside those of its own."""
HELD_OUT_SHARE = 20
"""One held-out prompt for so many to train on."""
WEIGHTS_BY_DEPTH = (1.0, 0.7, 0.5)
OWN_SHARE = 0.6
"""Of a batch, positions of the base's own text; the others are of its prompts."""
WARM_UP_STEPS, FLAT_SHARE, LAST_RATE = 50, 0.3, 0.02
NORM_WEIGHT = 0.1
"""Of the squared logarithm of the sum of all chances: it shall be 0, so that a logit tells a chance
without the logits of tokens that nobody computes."""


class Network(nn.Module):
    """The speculator while it is trained. Every guess is one step; see ``sources.speculation``."""

    def __init__(self, width: int, hidden: int, embeddings: Tensor) -> None:
        """hidden: numbers inside the gated linear unit; embeddings: float32 [vocabulary, model],
        which do not change."""
        super().__init__()
        vocabulary, model = embeddings.shape
        self.embeddings = embeddings
        self.width = width
        self.state = nn.Linear(2 * model, width)
        self.token = nn.Linear(model, width, bias=False)
        self.candidate = nn.Linear(model, width, bias=False)
        self.length = nn.Embedding(LENGTHS, width)
        self.gate_up = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)
        self.onward = nn.Linear(width, width)
        self.out = nn.Linear(width, model, bias=False)
        self.rest = nn.Parameter(torch.zeros(width))
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        self.copy = nn.Linear(width, 1, bias=False)
        self.copy_bias = nn.Parameter(torch.zeros(LENGTHS))
        for weight in (self.token.weight, self.candidate.weight):
            nn.init.normal_(weight, std=0.05)
        nn.init.normal_(self.length.weight, std=0.1)

    def forward(self, batch: Batch, tokens: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Logits [b, tokens] of each guess among ``tokens``, int64 [n], ascending, which hold all
        candidates, and the logarithm [b] of the sum of all chances before a candidate's score."""
        head = (self.embeddings[tokens] @ self.out.weight - self.rest).T
        before = self.state(batch.states)
        logits, norms = [], []
        for depth in range(batch.tokens.shape[1]):
            candidate, length = batch.candidates[:, depth], batch.lengths[:, depth]
            has_match = (length > 0)[:, None]
            x = before + self.token(self.embeddings[batch.tokens[:, depth]])
            x = x + self.length(length) + has_match * self.candidate(self.embeddings[candidate])
            gate, up = self.gate_up(F.rms_norm(x, (self.width,), eps=1e-6)).chunk(2, 1)
            x = x + self.down(F.silu(gate) * up)
            shown = F.rms_norm(x, (self.width,), eps=1e-6)
            copied = has_match * (self.copy(shown) + self.copy_bias[length][:, None])
            place = torch.searchsorted(tokens, candidate.contiguous())[:, None]
            found = shown @ head + self.bias[tokens]
            norms.append(found.float().logsumexp(1))
            logits.append(found.scatter_add(1, place, copied.to(found.dtype)))
            before = x + self.onward(F.silu(shown))
        return logits, norms

    def load(self, weights: dict[str, Tensor]) -> None:
        """Go on from weights by name. Raises TrainingError where some are missing or of another
        size."""
        for name, weight in self.weights(weights["frequent"]).items():
            known = weights.get(name)
            if known is None or known.shape != weight.shape:
                raise TrainingError(
                    f"--resume has no {name} of this size; give its --width and --hidden, or leave "
                    "it out if an older version made it"
                )
            weight.data.copy_(known)

    def weights(self, frequent: Tensor) -> dict[str, Tensor]:
        """By name, as ``accel.speculator`` wants them. frequent: tokens."""
        return {
            "state": self.state.weight,
            "state_bias": self.state.bias,
            "token": self.token.weight,
            "candidate": self.candidate.weight,
            "length": self.length.weight,
            "gate_up": self.gate_up.weight,
            "down": self.down.weight,
            "onward": self.onward.weight,
            "onward_bias": self.onward.bias,
            "out": self.out.weight,
            "rest": self.rest,
            "bias": self.bias,
            "copy": self.copy.weight[0],
            "copy_bias": self.copy_bias,
            "frequent": frequent.to(torch.int32),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `redraft train speculator`."""
    parser.add_argument("--model", metavar="DIR", help="model to train for; else the embedded one")
    parser.add_argument("--out", type=Path, required=True, help="folder of the result")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="PATH",
        help="corpus.jsonl of `redraft train base`, or a folder of sources; else the standard "
        "library",
    )
    parser.add_argument("--minutes", type=float, required=True, help="training time")
    parser.add_argument(
        "--resume", type=Path, metavar="DIR", help="go on from the speculator in this folder"
    )
    parser.add_argument("--prompts", type=int, default=12_000, help="that the model answers first")
    parser.add_argument("--answer", type=int, default=ANSWER, help="tokens of an answer")
    parser.add_argument(
        "--holes",
        type=float,
        default=HOLE_SHARE,
        help="share of prompts with text after the cursor",
    )
    parser.add_argument("--width", type=int, default=128, help="of the network")
    parser.add_argument("--hidden", type=int, default=256, help="of its gated linear unit")
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--batch", type=int, default=1024, help="positions of a step")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)


def run(args: argparse.Namespace) -> int:
    """Run `redraft train speculator`; gives the exit status. Raises TrainingError."""
    sizes = args.width, args.hidden
    if not (args.answer > DEPTH + 1 and 0 <= args.holes <= 1):
        raise TrainingError(f"--answer has to be {DEPTH + 2} or more, --holes from 0 to 1")
    if min(sizes) < BLOCK or any(size % BLOCK for size in sizes) or args.prompts < HELD_OUT_SHARE:
        raise TrainingError(
            f"--width and --hidden have to be multiples of {BLOCK}, --prompts {HELD_OUT_SHARE} or "
            "more"
        )
    folder = find_folder(args.model)
    check_folder(folder)
    sha256 = sha256_of_base(folder)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    module = load_module(folder, torch.bfloat16, torch.device("cpu"), "eager")
    base, ends = FrozenBase(module), end_tokens(module)
    tokenizer, texts = Tokenizer.from_folder(folder), texts_of(args.corpus)
    with Bar("answers") as report:
        parts = [
            read_examples(
                *(base, PromptMaker(part, tokenizer, args.holes), count, ends),
                *(random.Random(args.seed), report),
                most_strays=strays,
                answer=args.answer,
            )
            for part, count, strays in (
                (texts.training, args.prompts, STRAYS),
                (texts.held_out, args.prompts // HELD_OUT_SHARE, 0.0),
            )
        ]
    examples, held_out = parts
    network = Network(args.width, args.hidden, base.embedding.float())
    if args.resume is not None:
        network.load(read_weights(args.resume / FILE, sha256))
    with Bar("training") as report:
        steps = train(network, examples, args, report)
    frequent = torch.bincount(examples.likeliest, minlength=len(base.embedding)).argsort()
    save_weights(args.out / FILE, network.weights(frequent.flip(0)[:FREQUENT].sort()[0]), sha256)
    record = {
        "base_sha256": sha256,
        "width": args.width,
        "hidden": args.hidden,
        "seed": args.seed,
        "minutes": args.minutes,
        "steps": steps,
        "batch": args.batch,
        "prompts": args.prompts,
        "resumed": args.resume is not None,
        "positions": len(examples.starts),
        "positions_of_answers": int(examples.is_own.sum()),
        "right": right_guesses(network, held_out),
    }
    (args.out / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))
    return 0


def train(network: Network, examples: Examples, args: argparse.Namespace, report: Any) -> int:
    """Train for ``args.minutes``; returns the number of steps."""
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=args.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    own, others = _own(examples), torch.where(~examples.is_own)[0]
    own_count = args.batch if not len(others) else int(OWN_SHARE * args.batch)
    common = torch.bincount(examples.likeliest).argsort().flip(0)[:COMMON]
    started, steps, progress = time.monotonic(), 0, 0.0
    while progress < 1:
        rate = min(1.0, (steps + 1) / WARM_UP_STEPS, (1 - progress) / (1 - FLAT_SHARE))
        for group in optimizer.param_groups:
            group["lr"] = args.learning_rate * max(rate, LAST_RATE)
        batch = examples.batch(
            torch.cat([_drawn(own, own_count), _drawn(others, args.batch - own_count)])
        )
        tokens = torch.cat([batch.answers.flatten(), batch.candidates.flatten(), common]).unique()
        answers = torch.searchsorted(tokens, batch.answers)
        with torch.autocast("cpu", torch.bfloat16):
            guesses, norms = network(batch, tokens)
        losses = [
            F.cross_entropy(guess.float(), answers[:, i]) + NORM_WEIGHT * norm.square().mean()
            for i, (guess, norm) in enumerate(zip(guesses, norms, strict=True))
        ]
        loss = sum(weight * each for weight, each in zip(WEIGHTS_BY_DEPTH, losses, strict=True))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        steps += 1
        progress = (time.monotonic() - started) / (60 * args.minutes)
        report(progress)
    return steps


@torch.no_grad()
def right_guesses(network: Network, examples: Examples) -> list[dict[str, float]]:
    """By the length of the match, on the base's own text: how many positions, in how many of them
    what followed the match is right, the first guess, and the first 2 and 3 guesses."""
    tokens = torch.arange(len(network.bias))
    found = torch.zeros(LENGTHS, 2 + DEPTH)
    for part in _own(examples).split(512):
        batch = examples.batch(part)
        guesses = torch.stack([guess.argmax(1) for guess in network(batch, tokens)[0]], 1)
        right = (guesses == batch.answers).cumprod(1)
        copied = (batch.candidates[:, :1] == batch.answers[:, :1]) & (batch.lengths[:, :1] > 0)
        seen = torch.cat([torch.ones(len(part), 1), copied.float(), right.float()], 1)
        found.index_add_(0, batch.lengths[:, 0], seen)
    names = ("copied", *(f"guess_{depth + 1}" for depth in range(DEPTH)))
    return [
        {"match": match, "positions": int(row[0])}
        | {
            name: round(float(value / row[0]), 3)
            for name, value in zip(names, row[1:], strict=True)
        }
        for match, row in enumerate(found)
        if row[0]
    ]


def _own(examples: Examples) -> Tensor:
    """Numbers of the starts whose guesses are all of the base's own text."""
    return torch.where(examples.is_own)[0]


def _drawn(places: Tensor, count: int) -> Tensor:
    return places[torch.randint(len(places), (count,))] if count else places[:0]


def main(argv: Sequence[str] | None = None) -> int:
    """Entry for `python -m accel.training.speculator`."""
    parser = argparse.ArgumentParser(prog="redraft train speculator", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    raise SystemExit(main())
