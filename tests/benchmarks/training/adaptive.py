"""`tests.benchmarks train adaptive`: tune a model to adaptive tokens, as SDSAT does."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sysconfig
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from accel.files.adaptive_tokens import base_of
from accel.files.model_folder import check_folder
from accel.models.hf_loading import load_module
from accel.models.hub import find_model_path
from accel.models.model_file import model_file
from accel.text.tokenizer import Tokenizer
from tests.adaptive_file import save_adaptive_tokens
from tests.benchmarks.training import adaptive_published
from tests.benchmarks.training.adaptive_frozen import FrozenTrainer
from tests.benchmarks.training.adaptive_published import PublishedTrainer
from tests.benchmarks.training.bar import Bar
from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.prompt_maker import PromptMaker
from tests.benchmarks.training.samples.code import read_files

RECORD = "adaptive.json"
HELD_OUT_EVERY = 50
"""Every so many-th file is held out."""
FIGURE = "ordinary-loss.png"


@dataclass(frozen=True)
class AdaptiveTexts:
    """Source texts to train on, and others to measure on."""

    training: list[str]
    held_out: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tests.benchmarks train adaptive`."""
    parser.add_argument("--model", metavar="DIR", help="model to train for; else the chosen one")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run and its result")
    parser.add_argument(
        "--corpus",
        type=Path,
        metavar="PATH",
        help="a folder of sources; else the standard library",
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
        default=adaptive_published.AdaptiveTrainingPlan.learning_rate,
        help="with --frozen a thousandfold is right: 3e-2",
    )
    parser.add_argument(
        "--window", type=int, default=adaptive_published.AdaptiveTrainingPlan.window, metavar="L"
    )
    parser.add_argument("--tokens", choices=("identical", "diverse"), default="identical")
    parser.add_argument(
        "--loss", choices=("improved", "basic"), default="improved", help="equation 9 or 8"
    )
    parser.add_argument(
        "--compare-losses",
        action="store_true",
        help="train by the other loss too and draw the paper's figure 5",
    )
    parser.add_argument(
        "--frozen",
        action="store_true",
        help="the model stays as it is, the embeddings alone are learnt and written beside it",
    )
    parser.add_argument(
        "--beside",
        type=Path,
        metavar="PATH",
        help="with --frozen: a folder or GGUF file of the same model that gets them, else --model",
    )
    parser.add_argument("--lora", type=int, default=0, metavar="RANK", help="0: all weights")


def texts_of(corpus: Path | None) -> AdaptiveTexts:
    """Sources of a folder or the standard library. Raises TrainingError when there
    is nothing to read."""
    root = corpus or Path(sysconfig.get_path("stdlib"))
    files = read_files(root, random.Random(0))
    texts = [file.text for file in files if "site-packages" not in file.path.split("/")]
    held_out = texts[::HELD_OUT_EVERY]
    training = [text for number, text in enumerate(texts) if number % HELD_OUT_EVERY]
    if not training or not held_out:
        raise TrainingError(f"{corpus} holds too few sources to train on; give --corpus")
    return AdaptiveTexts(training, held_out)


def run(args: argparse.Namespace) -> int:
    """Run `tests.benchmarks train adaptive`; gives the exit status."""
    folder = find_model_path(args.model)
    check_folder(folder)
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(args.threads)
    tokenizer = model_file(folder).tokenizer
    texts = texts_of(args.corpus)
    record = _trained(args, folder, tokenizer, texts)
    (args.out / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({name: value for name, value in record.items() if name != "curve"}, indent=1))
    return 0


def _trained(
    args: argparse.Namespace, folder: Path, tokenizer: Tokenizer, texts: AdaptiveTexts
) -> dict[str, Any]:
    plan = adaptive_published.AdaptiveTrainingPlan(
        minutes=args.minutes,
        steps=args.steps,
        seed=args.seed,
        window=args.window,
        diverse=args.tokens == "diverse",
        loss=args.loss,
        rank=args.lora,
        learning_rate=args.learning_rate,
    )
    maker = PromptMaker(texts.training, tokenizer)
    if args.frozen:
        return _trained_frozen(args, folder, maker, plan)
    held_out = _held_out(texts, tokenizer, plan.row_length)

    def trained(plan: adaptive_published.AdaptiveTrainingPlan, out: Path) -> PublishedTrainer:
        out.mkdir(exist_ok=True)
        module = load_module(folder, torch.float32, torch.device("cpu"), "sdpa")
        trainer = PublishedTrainer(module, maker, held_out, plan, out, resume=args.resume)
        with _Reporting() as report:
            trainer.run(report)
        return trainer

    curves: dict[str, list[tuple[int, float]]] = {}
    if args.compare_losses:
        other = "basic" if plan.loss == "improved" else "improved"
        changed = adaptive_published.AdaptiveTrainingPlan(**{**asdict(plan), "loss": other})
        curves[other] = trained(changed, args.out / other).curve
    trainer = trained(plan, args.out)
    curves[plan.loss] = trainer.curve
    if args.compare_losses:
        from tests.benchmarks.training.adaptive_plots import plot_ordinary_loss

        plot_ordinary_loss(curves, args.out / FIGURE)
    module = trainer.merged().to(torch.bfloat16)
    module.save_pretrained(args.out)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        if (folder / name).exists() and folder.resolve() != args.out.resolve():
            shutil.copyfile(folder / name, args.out / name)
    embeddings = trainer.embeddings.detach()
    if not plan.diverse:
        embeddings = embeddings.expand(plan.window, -1)
    save_adaptive_tokens(args.out, embeddings.numpy())
    return {
        "base": base_of(args.out),
        "plan": asdict(plan),
        "steps": trainer.step,
        "seconds": round(trainer.seconds),
        "ordinary_loss_before": trainer.curve[0][1],
        "ordinary_loss_after": trainer.curve[-1][1],
        "curve": curves,
    }


def _trained_frozen(
    args: argparse.Namespace,
    folder: Path,
    maker: PromptMaker,
    plan: adaptive_published.AdaptiveTrainingPlan,
) -> dict[str, Any]:
    module = load_module(folder, torch.float32, torch.device("cpu"), "sdpa")
    trainer = FrozenTrainer(module, maker, plan)
    with _Reporting() as report:
        trainer.run(report)
    beside = args.beside or folder
    file = save_adaptive_tokens(beside, trainer.embeddings.detach().numpy())
    figures = {"steps": trainer.step, "seconds": round(trainer.seconds)}
    return {"file": str(file), "base": base_of(beside), "plan": asdict(plan), **figures}


def _held_out(texts: AdaptiveTexts, tokenizer: Tokenizer, length: int) -> Tensor:
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
        if "ordinary_loss" in figures:
            line += f", ordinary tokens {figures['ordinary_loss']:.4f}"
        self.move(figures["progress"], line)
