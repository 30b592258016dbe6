"""`redraft train adaptive`: adaptive tokens for a model built like Llama.

``--form frozen`` trains mask rows beside a base that does not change, on the base's own answers;
``--form published`` tunes the model as SDSAT does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from accel.loading import check_folder, find_folder, load_module
from accel.mask_tokens import FILE, read_weights, save_weights, sha256_of_base
from accel.sources.token_shapes import TokenShapes
from accel.tokenizer import Tokenizer
from accel.training import adaptive_frozen, adaptive_published
from accel.training.adaptive_frozen import FrozenTrainer, right_guesses
from accel.training.adaptive_published import PublishedTrainer
from accel.training.bar import Bar
from accel.training.errors import TrainingError
from accel.training.frozen_base import FrozenBase, Text
from accel.training.mask_rows import Parameters
from accel.training.ordinary_rows import ordinary_losses
from accel.training.own_text import PromptMaker, own_text
from accel.training.pooling import fit, nodes_of

RECORD = "adaptive.json"
HELD_OUT_EVERY = 50
"""Without a corpus that says which files are held out, every so many-th file is."""
LARGEST_FILE = 250_000
FIGURE = "ordinary-loss.png"
POOLING_TEXTS = 48


@dataclass(frozen=True)
class Texts:
    """Source texts to train on, and others to measure on."""

    training: list[str]
    held_out: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `redraft train adaptive`."""
    parser.add_argument("--model", metavar="DIR", help="model to train for; else the embedded one")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run and its result")
    parser.add_argument("--form", choices=("frozen", "published"), default="frozen")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="PATH",
        help="corpus.jsonl of `redraft train base`, or a folder of sources; else the standard "
        "library",
    )
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, default=0.0, help="training time of the run")
    budget.add_argument("--steps", type=int, default=0, help="optimiser steps instead of a time")
    parser.add_argument("--resume", action="store_true", help="continue the checkpoint in --out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--learning-rate",
        type=float,
        help=f"frozen: {adaptive_frozen.Plan.learning_rate}, published: "
        f"{adaptive_published.Plan.learning_rate}",
    )
    frozen = parser.add_argument_group("frozen")
    frozen.add_argument("--masks", type=int, default=adaptive_frozen.Plan.masks)
    frozen.add_argument("--rank", type=int, default=adaptive_frozen.Plan.rank)
    frozen.add_argument(
        "--start", type=Path, metavar="FILE", help="weights to begin with, whatever their base"
    )
    published = parser.add_argument_group("published")
    published.add_argument(
        "--window", type=int, default=adaptive_published.Plan.window, metavar="L"
    )
    published.add_argument("--tokens", choices=("identical", "diverse"), default="identical")
    published.add_argument(
        "--loss", choices=("improved", "basic"), default="improved", help="equation 9 or 8"
    )
    published.add_argument(
        "--compare-losses",
        action="store_true",
        help="train by the other loss too and draw the paper's figure 5",
    )
    published.add_argument("--lora", type=int, default=0, metavar="RANK", help="0: all weights")


def texts_of(corpus: Path | None) -> Texts:
    """Sources of a corpus file, a folder or the standard library. Raises TrainingError when there
    is nothing to read."""
    if corpus is not None and corpus.is_file():
        from accel.training.corpus import Corpus

        read = Corpus.load(corpus)
        training, held_out = ([f.text for f in part] for part in (read.training, read.held_out))
    else:
        root = corpus or Path(sysconfig.get_path("stdlib"))
        files = sorted(root.rglob("*.py"))
        sizes = {f: f.stat().st_size for f in files if "site-packages" not in f.parts}
        texts = [
            f.read_text("utf-8", errors="replace")
            for f, size in sizes.items()
            if 300 <= size <= LARGEST_FILE
        ]
        held_out = texts[::HELD_OUT_EVERY]
        training = [text for number, text in enumerate(texts) if number % HELD_OUT_EVERY]
    if not training or not held_out:
        raise TrainingError(f"{corpus} holds too few sources to train on; give --corpus")
    return Texts(training, held_out)


def run(args: argparse.Namespace) -> int:
    """Run `redraft train adaptive`; gives the exit status."""
    folder = find_folder(args.model)
    check_folder(folder)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1 if args.form == "frozen" else args.threads)
    tokenizer = Tokenizer.from_folder(folder)
    texts = texts_of(args.corpus)
    if args.form == "frozen":
        record = _run_frozen(args, folder, tokenizer, texts)
    else:
        record = _run_published(args, folder, tokenizer, texts)
    (args.out / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in record.items() if name != "curve"}, indent=1))
    return 0


def _run_frozen(
    args: argparse.Namespace, folder: Path, tokenizer: Tokenizer, texts: Texts
) -> dict[str, Any]:
    base = FrozenBase(load_module(folder, torch.bfloat16, torch.device("cpu"), "eager"))
    sha256 = sha256_of_base(folder)
    plan = adaptive_frozen.Plan(
        minutes=args.minutes,
        steps=args.steps,
        seed=args.seed,
        masks=args.masks,
        rank=args.rank,
        learning_rate=args.learning_rate or adaptive_frozen.Plan.learning_rate,
    )
    start = read_weights(args.start) if args.start else None
    maker = PromptMaker(texts.training, tokenizer)
    trainer = FrozenTrainer(
        base, maker, plan, args.out, start=start, resume=args.resume, threads=args.threads
    )
    with _Reporting() as report:
        trainer.run(report)
    parameters = {name: weight.detach() for name, weight in trainer.parameters.items()}
    text = _text(base, maker, POOLING_TEXTS)
    pooling = fit(nodes_of(base, parameters, text, TokenShapes.of(tokenizer.byte_table)))
    save_weights(args.out / FILE, {**parameters, "pooling": pooling}, sha256)
    return {
        "form": "frozen",
        "base_sha256": sha256,
        "plan": asdict(plan),
        "steps": trainer.position.step,
        "groups": trainer.position.groups,
        "seconds": round(trainer.position.seconds),
        **_measured(base, parameters, texts, tokenizer),
        **ordinary_losses(folder, args.out / FILE, _held_out(texts, tokenizer, 128)),
    }


def _run_published(
    args: argparse.Namespace, folder: Path, tokenizer: Tokenizer, texts: Texts
) -> dict[str, Any]:
    plan = adaptive_published.Plan(
        minutes=args.minutes,
        steps=args.steps,
        seed=args.seed,
        window=args.window,
        diverse=args.tokens == "diverse",
        loss=args.loss,
        rank=args.lora,
        learning_rate=args.learning_rate or adaptive_published.Plan.learning_rate,
    )
    held_out = _held_out(texts, tokenizer, plan.row_length)
    maker = PromptMaker(texts.training, tokenizer)

    def trained(plan: adaptive_published.Plan, out: Path) -> PublishedTrainer:
        out.mkdir(exist_ok=True)
        module = load_module(folder, torch.float32, torch.device("cpu"), "sdpa")
        trainer = PublishedTrainer(module, maker, held_out, plan, out, resume=args.resume)
        with _Reporting() as report:
            trainer.run(report)
        return trainer

    curves: dict[str, list[tuple[int, float]]] = {}
    if args.compare_losses:
        other = "basic" if plan.loss == "improved" else "improved"
        changed = adaptive_published.Plan(**{**asdict(plan), "loss": other})
        curves[other] = trained(changed, args.out / other).curve
    trainer = trained(plan, args.out)
    curves[plan.loss] = trainer.curve
    if args.compare_losses:
        from accel.training.adaptive_plots import plot_ordinary_loss

        plot_ordinary_loss(curves, args.out / FIGURE)
    module = trainer.merged().to(torch.bfloat16)
    module.save_pretrained(args.out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (folder / name).exists() and folder.resolve() != args.out.resolve():
            shutil.copyfile(folder / name, args.out / name)
    embeddings = trainer.embeddings.detach()
    sha256 = sha256_of_base(args.out)
    save_weights(args.out / FILE, {"embeddings": embeddings}, sha256)
    if not plan.diverse:
        embeddings = embeddings.expand(plan.window, -1)
    return {
        "form": "published",
        "base_sha256": sha256,
        "plan": asdict(plan),
        "steps": trainer.step,
        "seconds": round(trainer.seconds),
        "ordinary_loss_before": trainer.curve[0][1],
        "ordinary_loss_after": trainer.curve[-1][1],
        "curve": curves,
        **_measured(FrozenBase(module), {"embeddings": embeddings}, texts, tokenizer),
    }


def _measured(
    base: FrozenBase, parameters: Parameters, texts: Texts, tokenizer: Tokenizer
) -> dict[str, Any]:
    """Share of groups whose first 1, 2, … guesses are all right, on answers to held-out prompts."""
    text = _text(base, PromptMaker(texts.held_out, tokenizer), 16)

    def shares(sampler: bool) -> list[float]:
        found = right_guesses(base, parameters, text, sampler=sampler)
        return [round(float(share), 4) for share in found]

    with_sampler = {"right_guesses": shares(True)} if "sampler.out" in parameters else {}
    return {**with_sampler, "right_guesses_alone": shares(False)}


def _text(base: FrozenBase, maker: PromptMaker, count: int) -> Text:
    """The base's answers to ``count`` prompts."""
    length = min(256, base.max_positions // 2)
    return own_text(base, maker, count, length, min(64, length), random.Random(1))


def _held_out(texts: Texts, tokenizer: Tokenizer, length: int) -> Tensor:
    """Rows of held-out text, int64 [at most 16, length]. Raises TrainingError without any."""
    rows: list[Tensor] = []
    for text in texts.held_out[:400]:
        tokens = tokenizer.encode(text[: 8 * length])
        if len(tokens) >= length and len(rows) < 16:
            rows.append(torch.from_numpy(tokens[:length].astype("int64")))
    if not rows:
        raise TrainingError("no held-out text is long enough to measure on; give more sources")
    return torch.stack(rows)


class _Reporting(Bar):
    """The bar, with figures of the run; entering gives the function that moves it."""

    def __init__(self) -> None:
        super().__init__("training")
        self._average = 0.0

    def __enter__(self) -> Callable[[dict[str, Any]], None]:
        super().__enter__()
        return self._report

    def _report(self, figures: dict[str, Any]) -> None:
        loss = figures["loss"]
        self._average = 0.98 * self._average + 0.02 * loss if self._average else loss
        line = f"step {figures['step']}, loss {self._average:.3f}"
        if "groups_per_second" in figures:
            line += f", {figures['groups_per_second']:.0f} groups/s"
        if "ordinary_loss" in figures:
            line += f", ordinary tokens {figures['ordinary_loss']:.4f}"
        self.move(figures["progress"], line)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry for `python -m accel.training.adaptive`."""
    parser = argparse.ArgumentParser(prog="redraft train adaptive", description=__doc__)
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    raise SystemExit(main())
