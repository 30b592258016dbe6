"""`redraft train base`: train the embedded model from installed packages to exported weights."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from accel.training.corpus import TrainingCorpus, collect
from accel.training.tokenizer import save_tokenizer, train_tokenizer
from accel.training.trainer import TrainedShape, Trainer, TrainingPlan, append_log

_TOKENIZER_CHARACTERS = 25_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `redraft train base`."""
    parser.add_argument("--out", type=Path, required=True, help="folder of the run and its model")
    parser.add_argument(
        "--data",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="folder of installed packages; may be repeated (default: this environment)",
    )
    parser.add_argument(
        "--avoid",
        type=Path,
        action="append",
        default=[],
        metavar="PATH",
        help="measuring data: files that share 13 words in a row with it are left out",
    )
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, default=0.0, help="training time of the run")
    budget.add_argument("--steps", type=int, default=0, help="optimiser steps instead of a time")
    parser.add_argument("--resume", action="store_true", help="continue the checkpoint in --out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--learning-rate", type=float, default=TrainingPlan.learning_rate)
    parser.add_argument("--batch-tokens", type=int, default=TrainingPlan.batch_tokens)
    parser.add_argument("--row-length", type=int, default=TrainingPlan.row_length)
    parser.add_argument("--edit-share", type=float, default=TrainingPlan.edit_share)
    parser.add_argument("--function-share", type=float, default=TrainingPlan.function_share)
    parser.add_argument("--per-package", type=int, default=5_000_000, metavar="CHARACTERS")
    parser.add_argument("--vocabulary", type=int, default=TrainedShape.vocabulary)
    parser.add_argument("--width", type=int, default=TrainedShape.width)
    parser.add_argument("--layers", type=int, default=TrainedShape.layers)
    parser.add_argument("--heads", type=int, default=TrainedShape.heads)
    parser.add_argument("--kv-heads", type=int, default=TrainedShape.kv_heads)
    parser.add_argument("--ffn", type=int, default=TrainedShape.feed_forward)
    parser.add_argument("--context", type=int, default=TrainedShape.context)


def prepare(args: argparse.Namespace) -> None:
    """Collect the corpus and train the tokenizer where the folder lacks them."""
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / "corpus.jsonl"
    if not path.exists():
        print("collecting source files ...", flush=True)
        part = path.with_suffix(".part")
        collect(
            args.data,
            args.avoid,
            most_per_package=args.per_package,
            workers=args.threads,
            seed=args.seed,
        ).save(part)
        os.replace(part, path)
    if not (args.out / "tokenizer.json").exists():
        print("training the tokenizer ...", flush=True)
        texts, total = [], 0
        for file in TrainingCorpus.load(path).training:
            texts.append(file.text)
            total += len(file.text)
            if total > _TOKENIZER_CHARACTERS:
                break
        save_tokenizer(train_tokenizer(texts, args.vocabulary), args.out, args.context)


def export(trainer: Trainer, weights: dict[str, torch.Tensor] | None = None) -> None:
    """Write the model as bfloat16 safetensors, its configuration and data.json into the folder.

    weights: float32 by parameter name, e.g. an average of several; the run's own when None.
    """
    model = trainer.shape.model(trainer.plan.seed)
    masters = weights or trainer.optimizer.masters
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(masters[name])
    model.to(torch.bfloat16).save_pretrained(trainer.folder)
    _write_data(trainer)


def _write_data(trainer: Trainer) -> None:
    """What the weights were made from: packages with versions and licences, and how."""
    corpus = TrainingCorpus.load(trainer.folder / "corpus.jsonl")
    sizes: dict[str, int] = {}
    for file in [*corpus.training, *corpus.held_out]:
        sizes[file.package] = sizes.get(file.package, 0) + len(file.text)
    held_out = {file.package for file in corpus.held_out}
    packages = [
        {**asdict(p), "characters": sizes[p.name], "held_out": p.name in held_out}
        for p in corpus.packages
        if p.name in sizes
    ]
    data = {
        "sha256": sha256((trainer.folder / "model.safetensors").read_bytes()).hexdigest(),
        "plan": asdict(trainer.plan),
        "shape": asdict(trainer.shape),
        "steps": trainer.position.step,
        "tokens": trainer.position.tokens,
        "seconds": round(trainer.position.seconds),
        "files": len(corpus.training),
        "files_left_out": corpus.left_out,
        "packages": packages,
    }
    (trainer.folder / "data.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def run(args: argparse.Namespace) -> int:
    """Run `redraft train base`; gives the exit status."""
    prepare(args)
    plan = TrainingPlan(
        minutes=args.minutes,
        steps=args.steps,
        seed=args.seed,
        learning_rate=args.learning_rate,
        batch_tokens=args.batch_tokens,
        row_length=args.row_length,
        edit_share=args.edit_share,
        function_share=args.function_share,
    )
    shape = TrainedShape(
        vocabulary=args.vocabulary,
        width=args.width,
        layers=args.layers,
        heads=args.heads,
        kv_heads=args.kv_heads,
        feed_forward=args.ffn,
        context=args.context,
    )
    trainer = Trainer(args.out, plan, shape, resume=args.resume, threads=args.threads)
    size = sum(parameter.numel() for parameter in trainer.model.parameters())
    print(f"{size / 1e6:.2f}M parameters, {args.threads} threads", flush=True)
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:.1f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[figures]}"),
    )
    held_out = ""
    average = 0.0
    with Progress(*columns) as bar:
        task = bar.add_task("training", total=1.0, figures="")

        def report(figures: dict[str, Any]) -> None:
            nonlocal held_out, average
            average = 0.98 * average + 0.02 * figures["loss"] if average else figures["loss"]
            if "held_out_bits_per_byte" in figures:
                held_out = f", held out {figures['held_out_bits_per_byte']:.3f} bits/byte"
            if figures["step"] % 20 == 0 or "held_out_bits_per_byte" in figures:
                append_log(args.out / "log.jsonl", {**figures, "average_loss": average})
            line = f"loss {average:.3f}, {figures['tokens_per_second']:.0f} tokens/s{held_out}"
            bar.update(task, completed=figures["progress"], figures=line)

        trainer.run(report)
    export(trainer)
    print(f"model written to {args.out}", flush=True)
    return 0
