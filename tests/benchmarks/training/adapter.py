"""``train adapter``: from folders of code and git histories to a file that ``redraft models use
--adapter`` adds to a model."""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from accel.files.gguf.adapter import FIM_TOKENS
from accel.models.hf_loading import end_tokens
from accel.models.hub import find_model_path
from accel.models.model_file import model_file
from accel.text.special_tokens import file_format_of
from accel.text.tokenizer import Tokenizer
from tests.benchmarks.gguf_module import load_decoder
from tests.benchmarks.training.adapter_file import save_adapter
from tests.benchmarks.training.adapter_settings import AdapterSettings, example, read_settings
from tests.benchmarks.training.bar import Bar
from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.low_rank import LowRankModel
from tests.benchmarks.training.made_up import MADE_UP
from tests.benchmarks.training.renamed_tokens import renamed
from tests.benchmarks.training.samples.code import CodeFile, CommitChange, read_commits, read_files
from tests.benchmarks.training.samples.commit_edits import AROUND
from tests.benchmarks.training.samples.sample_maker import SampleMaker

HELD_OUT_BATCHES = 8
BETAS = (0.9, 0.98)
LONGEST_GRADIENT = 1.0
FIRST_CHARACTERS = 1 << 20

Member = TypeVar("Member")
Batch = tuple[Tensor, Tensor]
"""Tokens int64 and weights float32, [rows, tokens] both."""


@dataclass(frozen=True)
class Code:
    """What samples are made of."""

    files: list[CodeFile]
    commits: list[CommitChange]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("settings", type=Path, nargs="?", help="file of JSON")
    parser.add_argument("--example", action="store_true", help="print settings to begin with")


def run(args: argparse.Namespace) -> int:
    """Read the code, train, write the adapter. Raises AccelError."""
    if args.example:
        print(example(), end="")
        return 0
    if args.settings is None:
        raise TrainingError("no settings are given; `--example` prints some")
    report = train(read_settings(args.settings), args.settings.parent)
    print(json.dumps(report, indent=1))
    return 0


def train(settings: AdapterSettings, folder: Path) -> dict[str, object]:
    """Train and write an adapter; what came of it. ``folder``: where paths of the settings start.
    Raises TrainingError, and other AccelErrors for a base that cannot be loaded."""
    started = time.monotonic()
    base = _base_path(folder / settings.base, settings.base)
    device = _device(settings.device)
    tokenizer = model_file(base).tokenizer
    if settings.fim_tokens:
        tokenizer = renamed(tokenizer, dict(zip(settings.fim_tokens, FIM_TOKENS, strict=True)))
    code, held_out = split(read_code([folder / one for one in settings.code], settings), settings)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    module = load_decoder(base, dtype, device, "sdpa")
    ids = [tokenizer.special(name) for name in FIM_TOKENS] if settings.fim_tokens else []
    model = LowRankModel(
        module, settings.rank, [token for token in ids if token is not None], settings.seed
    )
    samples = Samples(tokenizer, code, end_tokens(module), settings)
    measured = _measured_batches(
        Samples(tokenizer, held_out, end_tokens(module), settings) if held_out.files else None,
        settings,
    )
    before = mean_loss(model, measured, device)
    steps, tokens, loss = _train(model, samples, settings, device)
    after = mean_loss(model, measured, device)
    out = folder / settings.out
    report: dict[str, object] = {
        "adapter": str(out),
        "files": len(code.files),
        "commits": len(code.commits),
        "steps": steps,
        "tokens": tokens,
        "loss": round(loss, 4),
        "held_out_loss_before": before,
        "held_out_loss_after": after,
        "seconds": round(time.monotonic() - started, 1),
    }
    described = {
        "base_sha256": _sha256(base),
        "name": out.stem,
        "fim_tokens": " ".join(map(str, ids)),
        "repository_tokens": _repository_tokens(tokenizer) if ids else "",
        "edit_lines": str(max(AROUND)),
        "settings": json.dumps(asdict(settings)),
        "report": json.dumps(report),
    }
    save_adapter(model, out, described)
    return report


def _repository_tokens(tokenizer: Tokenizer) -> str:
    """Ids of the marks of a repository and of a file in prompts, where there are both."""
    file_format = file_format_of(tokenizer)
    names = [file_format.repository, file_format.mark] if file_format is not None else []
    found = [tokenizer.special(name) for name in names if name]
    known = [token for token in found if token is not None]
    return " ".join(map(str, known)) if len(known) == 2 else ""


def _base_path(beside: Path, name: str) -> Path:
    return beside if beside.exists() else find_model_path(name)


def _device(wanted: str) -> torch.device:
    if wanted != "auto":
        try:
            return torch.device(wanted)
        except RuntimeError as error:
            raise TrainingError(f"torch knows no device {wanted}; say cuda, cpu or auto") from error
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def read_code(folders: Sequence[Path], settings: AdapterSettings) -> Code:
    """Files, each text once, and commits of all folders. Raises TrainingError without any."""
    rng = random.Random(settings.seed)
    files: dict[bytes, CodeFile] = {}
    commits: list[CommitChange] = []
    for folder in folders:
        for file in read_files(folder, rng):
            files.setdefault(sha256("".join(file.text.split()).encode()).digest(), file)
        commits += read_commits(folder, settings.commits, rng)
    if not files:
        raise TrainingError(f"{folders[0]} holds no code to train on; give other folders")
    return Code(list(files.values()), commits)


def split(code: Code, settings: AdapterSettings) -> tuple[Code, Code]:
    """What is trained on, and what the loss is measured on."""
    rng = random.Random(f"held out {settings.seed}")
    files, measured_files = _split(code.files, settings.held_out_share, rng)
    commits, measured_commits = _split(code.commits, settings.held_out_share, rng)
    return Code(files, commits), Code(measured_files, measured_commits)


def _split(
    members: list[Member], share: float, rng: random.Random
) -> tuple[list[Member], list[Member]]:
    count = min(math.ceil(len(members) * share), len(members) - 1) if members else 0
    chosen = set(rng.sample(range(len(members)), count))
    return (
        [one for number, one in enumerate(members) if number not in chosen],
        [one for number, one in enumerate(members) if number in chosen],
    )


class Samples(IterableDataset[Batch]):
    """Batches without end; each worker draws others."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        code: Code,
        ends: frozenset[int],
        settings: AdapterSettings,
    ) -> None:
        """Raises TrainingError where the code allows no sample."""
        self._parts = tokenizer, code, ends, settings
        self._maker(0)

    def _maker(self, worker: int) -> SampleMaker:
        tokenizer, code, ends, settings = self._parts
        seed = 1000 * settings.seed + worker
        return SampleMaker(
            tokenizer, code.files, code.commits, ends, settings.shares, seed, MADE_UP
        )

    def __iter__(self) -> Iterator[Batch]:
        """Draw on."""
        worker = get_worker_info()
        number = worker.id if worker is not None else 0
        maker, settings = self._maker(number), self._parts[3]
        rng = random.Random(f"{settings.seed} {number}")
        while True:
            rows, length = rng.choice(settings.batches)
            yield batch_of(maker, rows, length)


def batch_of(maker: SampleMaker, rows: int, length: int) -> Batch:
    """Samples side by side, filled up with tokens that do not count."""
    tokens = torch.zeros((rows, length), dtype=torch.int64)
    weights = torch.zeros((rows, length), dtype=torch.float32)
    for row in range(rows):
        sample = maker.draw(length)
        tokens[row, : len(sample.tokens)] = torch.tensor(sample.tokens)
        weights[row, : len(sample.weights)] = torch.tensor(sample.weights)
    return tokens, weights


def _measured_batches(samples: Samples | None, settings: AdapterSettings) -> list[Batch]:
    if samples is None:
        return []
    drawn = iter(samples)
    return [next(drawn) for _ in range(HELD_OUT_BATCHES if settings.steps != 1 else 1)]


def mean_loss(model: LowRankModel, batches: Sequence[Batch], device: torch.device) -> float | None:
    """The mean loss of batches; None without any."""
    if not batches:
        return None
    with torch.no_grad():
        losses = [float(model.loss(*(each.to(device) for each in batch))) for batch in batches]
    return round(sum(losses) / len(losses), 4)


def _train(
    model: LowRankModel, samples: Samples, settings: AdapterSettings, device: torch.device
) -> tuple[int, int, float]:
    batches = iter(DataLoader(samples, batch_size=None, num_workers=settings.workers))
    optimizer = torch.optim.AdamW(
        model.parameters, settings.learning_rate, betas=BETAS, weight_decay=0.0
    )
    step = tokens = 0
    average = 0.0
    started = time.monotonic()
    with Bar("training") as report:
        while (done := _progress(settings, step, started)) < 1:
            rate = settings.learning_rate * rate_factor(settings, step, done)
            for group in optimizer.param_groups:
                group["lr"] = rate
            loss = 0.0
            for _ in range(settings.accumulate):
                ids, weights = (each.to(device) for each in next(batches))
                part = model.loss(ids, weights) / settings.accumulate
                part.backward()
                loss += float(part.detach())
                tokens += ids.numel()
            torch.nn.utils.clip_grad_norm_(model.parameters, LONGEST_GRADIENT)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            average = 0.9 * average + 0.1 * loss if average else loss
            report(
                _progress(settings, step, started),
                f"step {step}, {tokens / 1e6:.1f}M tokens, loss {average:.3f}",
            )
    return step, tokens, average


def _progress(settings: AdapterSettings, step: int, started: float) -> float:
    if settings.steps:
        return step / settings.steps
    return (time.monotonic() - started) / (60 * settings.minutes)


def rate_factor(settings: AdapterSettings, step: int, done: float) -> float:
    """The learning rate's share at a step, ``done`` of the run behind it: it rises in the first
    steps, stays, and falls to a hundredth."""
    rising = min(1.0, (step + 1) / max(1, settings.warm_up_steps))
    return rising * min(1.0, (1 - done) / (1 - settings.constant_share) + 0.01)


def _sha256(base: Path) -> str:
    """Of a GGUF file; of a folder nothing, since the file made of it has another."""
    if not base.is_file():
        return ""
    digest = sha256()
    with base.open("rb") as file:
        while part := file.read(FIRST_CHARACTERS):
            digest.update(part)
    return digest.hexdigest()
