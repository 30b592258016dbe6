"""The training loop of the embedded model: batches, schedule, checkpoints, held-out loss."""

from __future__ import annotations

import functools
import json
import math
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from accel.training.copying import fits_copying, install_copying
from accel.training.corpus import SourceFile, TrainingCorpus
from accel.training.errors import TrainingError
from accel.training.forward import TrainingForward
from accel.training.optimizer import MatchedMuon
from accel.training.packing import Mix, PackedRows, chunk_of_rows
from accel.training.tokenizer import load_tokenizer

_PART_TOKENS = 1024


@dataclass(frozen=True)
class TrainedShape:
    """Sizes of the Llama."""

    vocabulary: int = 8192
    width: int = 320
    layers: int = 6
    heads: int = 5
    kv_heads: int = 1
    feed_forward: int = 896
    context: int = 4096
    rope_theta: float = 500_000.0
    copying: bool = True

    def model(self, seed: int) -> LlamaForCausalLM:
        """A fresh model in float32; the seed determines its weights."""
        torch.manual_seed(seed)
        config = LlamaConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.width,
            intermediate_size=self.feed_forward,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            num_key_value_heads=self.kv_heads,
            head_dim=self.width // self.heads,
            max_position_embeddings=self.context,
            rope_parameters={"rope_type": "default", "rope_theta": self.rope_theta},
            tie_word_embeddings=True,
            bos_token_id=0,
            eos_token_id=0,
            pad_token_id=10,
        )
        model = LlamaForCausalLM(config)
        for name, weight in model.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                weight.data.div_((2 * self.layers) ** 0.5)
        if self.copying and fits_copying(model.config):
            install_copying(model, seed)
        return model


@dataclass(frozen=True)
class TrainingPlan:
    """What a run does. Either `minutes` of training or `steps` end it; the schedule follows."""

    minutes: float = 0.0
    steps: int = 0
    seed: int = 0
    learning_rate: float = 2.5e-3
    batch_tokens: int = 4096
    row_length: int = 512
    warm_up_steps: int = 60
    flat_share: float = 0.35
    final_rate: float = 0.02
    edit_share: float = 0.40
    drill_share: float = 0.22
    function_share: float = 0.0
    chunk_characters: int = 300_000
    checkpoint_seconds: float = 180.0
    held_out_seconds: float = 300.0
    low_precision: bool = True


@dataclass
class TrainingPosition:
    """How far a run is; kept in its checkpoints."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    chunk: int = 0
    batch_of_chunk: int = 0
    # Progress at which this chunk and the next were planned, which says how they are made.
    chunk_progress: float = 0.0
    next_progress: float = -1.0


@functools.cache
def _opened(folder: str) -> tuple[list[SourceFile], Tokenizer]:
    path = Path(folder)
    return TrainingCorpus.load(path / "corpus.jsonl").training, load_tokenizer(path)


def _rows_in_worker(folder: str, mix: Mix, number: int, row_length: int) -> PackedRows:
    return chunk_of_rows(*_opened(folder), mix, number, row_length)


def learning_rate(plan: TrainingPlan, step: int, progress: float) -> float:
    """Warm-up, flat, then linear down to `final_rate` of the peak at progress 1."""
    left = min(1.0, (1.0 - progress) / (1.0 - plan.flat_share))
    factor = plan.final_rate + (1.0 - plan.final_rate) * max(0.0, left)
    return plan.learning_rate * factor * min(1.0, (step + 1) / plan.warm_up_steps)


def row_length_at(plan: TrainingPlan, chunk: int, progress: float) -> int:
    """Rows grow: the short length first, later up to four times as long."""
    draw = random.Random(f"{plan.seed} length {chunk}").random()
    long, longest = (
        (0.1, 0.0) if progress < 0.35 else (0.4, 0.05) if progress < 0.7 else (0.5, 0.15)
    )
    if draw < longest:
        return 4 * plan.row_length
    return 2 * plan.row_length if draw < longest + long else plan.row_length


def mix_at(plan: TrainingPlan, progress: float) -> Mix:
    """What a chunk is made of: copy drills are many at first and few in the last eighth."""
    drills = plan.drill_share * (1.0 if progress < 0.75 else 0.5 if progress < 0.88 else 0.2)
    return Mix(plan.seed, plan.chunk_characters, plan.edit_share, drills, plan.function_share)


class Trainer:
    """A run in a folder that holds corpus.jsonl and tokenizer.json; continues its checkpoint."""

    def __init__(
        self,
        folder: Path,
        plan: TrainingPlan,
        shape: TrainedShape,
        *,
        resume: bool = False,
        threads: int = 1,
        compiled: bool | None = None,
    ) -> None:
        self.folder, self.plan, self.shape = folder, plan, shape
        torch.set_num_threads(1)
        self._workers = threads
        self._threads = ThreadPoolExecutor(threads)
        self._compiled_shapes: set[tuple[int, ...]] = set()
        self.position = TrainingPosition()
        self.model = shape.model(plan.seed)
        self.optimizer = MatchedMuon(self.model)
        if plan.low_precision:
            self.model.to(torch.bfloat16)
        self._forward = TrainingForward(self.model, compiled)
        self._plain_forward = TrainingForward(self.model, compiled=False)
        held_out = TrainingCorpus.load(folder / "corpus.jsonl").held_out
        self._tokenizer = load_tokenizer(folder)
        self._held_out, self._held_out_bytes = self._held_out_rows(held_out)
        if resume:
            self._load()

    @property
    def progress(self) -> float:
        """Share of the budget used, 0 to 1."""
        if self.plan.steps:
            return min(1.0, self.position.step / self.plan.steps)
        return min(1.0, self.position.seconds / (60.0 * self.plan.minutes))

    def run(self, report: Callable[[dict[str, Any]], None]) -> None:
        """Train to the end of the budget; `report` gets the figures of each step."""
        saved = checked = time.monotonic()
        context = get_context("spawn")
        with ProcessPoolExecutor(1, context) as pool:
            upcoming: Future[PackedRows] | None = None
            while self.progress < 1.0:
                position = self.position
                now_due = upcoming or self._submit(pool, position.chunk, position.chunk_progress)
                rows = now_due.result()
                if position.next_progress < 0.0:
                    position.next_progress = self.progress
                upcoming = self._submit(pool, position.chunk + 1, position.next_progress)
                length = rows.ids.shape[1]
                per_batch = max(1, self.plan.batch_tokens // length)
                batches = len(rows.ids) // per_batch
                while position.batch_of_chunk < batches and self.progress < 1.0:
                    start = position.batch_of_chunk * per_batch
                    figures = self._step(rows, slice(start, start + per_batch))
                    now = time.monotonic()
                    if now - checked > self.plan.held_out_seconds or self.progress >= 1.0:
                        figures["held_out_bits_per_byte"] = self.held_out_bits_per_byte()
                        checked = now
                    if now - saved > self.plan.checkpoint_seconds:
                        self.save()
                        saved = now
                    report(figures)
                if position.batch_of_chunk >= batches:
                    position.chunk, position.batch_of_chunk = position.chunk + 1, 0
                    position.chunk_progress, position.next_progress = position.next_progress, -1.0
        self.save()

    def _submit(self, pool: Executor, chunk: int, progress: float) -> Future[PackedRows]:
        """Have the rows of a chunk made beside the training."""
        mix = mix_at(self.plan, progress)
        length = row_length_at(self.plan, chunk, progress)
        return pool.submit(_rows_in_worker, str(self.folder), mix, chunk, length)

    def _step(self, rows: PackedRows, part: slice) -> dict[str, Any]:
        started = time.monotonic()
        ids = torch.from_numpy(rows.ids[part]).long()
        weights = torch.from_numpy(rows.weights[part])
        loss, gradients = self._gradients(ids, weights)
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss} at step {self.position.step}: resume with a lower rate"
            )
        rate = learning_rate(self.plan, self.position.step, self.progress)
        self.optimizer.step(gradients, rate, self._threads)
        spent = time.monotonic() - started
        position = self.position
        position.step += 1
        position.batch_of_chunk += 1
        position.tokens += ids.numel()
        position.seconds += spent
        return {
            "step": position.step,
            "loss": loss,
            "rate": rate,
            "tokens": position.tokens,
            "tokens_per_second": ids.numel() / spent,
            "progress": self.progress,
            "row_length": ids.size(1),
        }

    def _gradients(
        self, ids: torch.Tensor, weights: torch.Tensor
    ) -> tuple[float, dict[str, torch.Tensor]]:
        """Loss and gradients of a batch, its rows taken in small parts by one thread per core.

        Threads that take parts as they get done lose little when other work holds a core;
        one operation on all cores waits for the slowest at every step.
        """
        rows = max(1, _PART_TOKENS // ids.size(1))
        total = float(weights[:, 1:].sum())
        waiting = list(zip(ids.split(rows), weights.split(rows), strict=True))
        shape = tuple(waiting[-1][0].shape)
        losses: list[float] = []

        def take(most: int | None = None) -> dict[str, torch.Tensor]:
            summed: dict[str, torch.Tensor] = {}
            while waiting and most != 0:
                most = most - 1 if most is not None else None
                try:
                    part = waiting.pop()
                except IndexError:
                    break
                loss, gradients = self._forward.gradients(*part, total)
                losses.append(loss)
                for name, gradient in summed.items():
                    gradient.add_(gradients[name])
                summed = summed or gradients
            return summed

        # A shape's first part goes alone: its kernels are compiled then.
        sums = [take(1)] if shape not in self._compiled_shapes else []
        self._compiled_shapes.add(shape)
        sums += [f.result() for f in [self._threads.submit(take) for _ in range(self._workers)]]
        first, *others = [found for found in sums if found]
        for other in others:
            for name, gradient in other.items():
                first[name].add_(gradient)
        return sum(losses), first

    def _held_out_rows(self, files: list[SourceFile]) -> tuple[torch.Tensor, int]:
        """Rows of whole held-out text, at most 24, and the bytes that they predict."""
        length = self.plan.row_length
        rows: list[list[int]] = []
        for file in sorted(files, key=lambda file: (len(file.text) * 7919) % 1009)[:400]:
            ids = self._tokenizer.encode(file.text, add_special_tokens=False).ids
            if len(ids) >= length and len(rows) < 24:
                rows.append(list(ids[:length]))
        size = sum(
            len(self._tokenizer.decode(row[1:], skip_special_tokens=False).encode()) for row in rows
        )
        return torch.tensor(rows, dtype=torch.long).reshape(-1, length), max(1, size)

    def held_out_bits_per_byte(self) -> float:
        """Loss on the first tokens of files of held-out packages; nan where there are none."""
        if not len(self._held_out):
            return math.nan
        parts = self._held_out.split(max(1, _PART_TOKENS // self._held_out.size(1)))
        total = sum(float(self._plain_forward.losses(part).sum()) for part in parts)
        return total / math.log(2.0) / self._held_out_bytes

    def save(self) -> None:
        """Write the checkpoint; one that is there is replaced in one step."""
        state = {
            "plan": asdict(self.plan),
            "shape": asdict(self.shape),
            "position": asdict(self.position),
            "optimizer": self.optimizer.state_dict(),
        }
        _replace(self.folder / "checkpoint.pt", state)
        if self.progress > 0.9:
            masters = {name: m.to(torch.float32) for name, m in self.optimizer.masters.items()}
            _replace(self.folder / f"weights-{self.position.step:06d}.pt", masters)

    def _load(self) -> None:
        state = torch.load(self.folder / "checkpoint.pt", weights_only=True)
        if state["shape"] != asdict(self.shape):
            raise TrainingError(
                "the checkpoint has another shape; give the same options or another folder"
            )
        self.optimizer.load_state_dict(state["optimizer"])
        self.position = TrainingPosition(**state["position"])


def _replace(path: Path, state: object) -> None:
    part = path.with_suffix(".part")
    torch.save(state, part)
    os.replace(part, path)


def append_log(path: Path, figures: dict[str, Any]) -> None:
    """Add one line of figures to a log of JSON lines."""
    with path.open("a", encoding="utf-8") as log:
        log.write(json.dumps(figures) + "\n")
