"""SDSAT's training as published: a model learns what adaptive tokens mean (Liu et al. 2024, 2.2).

Sequences are mixed with adaptive tokens: a tenth of the positions are drawn, and from each a
window of 1 to L tokens is replaced. The basic loss (equation 8) counts every token of a mixed
sequence; the improved one (equation 9) counts all tokens of a plain sequence and only the replaced
ones of a mixed sequence, so that ordinary tokens do not learn from texts with holes.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.benchmarks.training.errors import TrainingError
from tests.benchmarks.training.prompt_maker import PromptMaker

POSITION_SHARE = 0.10


@dataclass(frozen=True)
class AdaptiveTrainingPlan:
    """What a run does. ``minutes`` or ``steps`` end it, and the schedule follows."""

    minutes: float = 0.0
    steps: int = 0
    seed: int = 0
    window: int = 5
    """L, the most adaptive tokens in a row."""
    diverse: bool = False
    """Another adaptive token for every place of a window; identical ones otherwise."""
    loss: Literal["improved", "basic"] = "improved"
    mask_weight: float = 1.0
    """w of equation 9."""
    rank: int = 0
    """LoRA of this rank; 0 trains all weights."""
    learning_rate: float = 5e-5
    final_rate: float = 1e-5
    warm_up_share: float = 0.2
    rows: int = 8
    row_length: int = 384
    check_steps: int = 25
    checkpoint_seconds: float = 120.0


@dataclass(frozen=True)
class Mixed:
    """Sequences with holes. places: int64 [batch, length], place in its window of every replaced
    token, -1 of ordinary ones."""

    places: Tensor

    @property
    def replaced(self) -> Tensor:
        """bool [batch, length]."""
        return self.places >= 0


def draw_windows(batch: int, length: int, window: int, random_state: torch.Generator) -> Mixed:
    """Equation 4: a tenth of the positions begin a window of 1 to ``window`` adaptive tokens. The
    first token stays; a window ends where the next one begins."""
    places = torch.full((batch, length), -1, dtype=torch.long)
    count = max(round(POSITION_SHARE * length), 1)
    for row in range(batch):
        starts = 1 + torch.randperm(length - 1, generator=random_state)[:count]
        sizes = torch.randint(1, window + 1, (count,), generator=random_state)
        drawn = sorted(zip(starts.tolist(), sizes.tolist(), strict=True))
        following = [start for start, _ in drawn[1:]] + [length]
        for (start, size), limit in zip(drawn, following, strict=True):
            end = min(start + size, limit)
            places[row, start:end] = torch.arange(end - start)
    return Mixed(places)


def token_losses(logits: Tensor, tokens: Tensor) -> Tensor:
    """-log of what each row gives the token after it, float32 [batch, length - 1]."""
    each = F.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    )
    return each.view(len(tokens), -1)


def basic_loss(mixed_logits: Tensor, tokens: Tensor) -> Tensor:
    """Equation 8: all tokens of mixed sequences alike."""
    return token_losses(mixed_logits, tokens).mean()


def improved_loss(
    plain_logits: Tensor,
    plain_tokens: Tensor,
    mixed_logits: Tensor,
    mixed_tokens: Tensor,
    mixed: Mixed,
    weight: float,
) -> Tensor:
    """Equation 9: plain sequences as ever, of mixed ones what adaptive tokens predict."""
    ordinary = token_losses(plain_logits, plain_tokens).mean()
    guesses = token_losses(mixed_logits, mixed_tokens) * mixed.replaced[:, :-1]
    return 0.5 * (ordinary + weight * guesses.mean())


class PublishedTrainer:
    """A run that changes ``module``, a causal LM of transformers in float32.

    Adaptive tokens have embeddings of their own, ``embeddings`` float32 [1 or window, width], so
    any vocabulary will do.
    """

    def __init__(
        self,
        module: Any,
        maker: PromptMaker,
        held_out: Tensor,
        plan: AdaptiveTrainingPlan,
        folder: Path,
        *,
        resume: bool = False,
    ) -> None:
        """held_out: int64 [rows, length], ordinary text. Raises TrainingError without peft where
        it is needed, or where there is nothing to resume."""
        self.plan, self.folder = plan, folder
        self._maker, self._held_out = maker, held_out
        torch.manual_seed(plan.seed)
        table: Tensor = module.get_input_embeddings().weight.detach()
        count = plan.window if plan.diverse else 1
        self.embeddings = nn.Parameter(
            table.mean(0) + 0.5 * table.std() * torch.randn(count, table.shape[1])
        )
        self.module = _with_low_rank(module, plan) if plan.rank else module
        if not plan.rank:
            module.requires_grad_(True)
        trained = [p for p in self.module.parameters() if p.requires_grad]
        self._optimizer = torch.optim.AdamW([*trained, self.embeddings], lr=1.0, betas=(0.9, 0.95))
        self.step = 0
        self.seconds = 0.0
        self.curve: list[tuple[int, float]] = []
        """Step and held-out loss of ordinary tokens, the start included."""
        if resume:
            self._load()

    @property
    def progress(self) -> float:
        """Share of the budget used, 0 to 1."""
        if self.plan.steps:
            return min(1.0, self.step / self.plan.steps)
        return min(1.0, self.seconds / (60.0 * self.plan.minutes))

    def run(self, report: Callable[[dict[str, Any]], None]) -> None:
        """Train to the end of the budget; ``report`` gets the figures of every step."""
        saved = time.monotonic()
        if not self.curve:
            self.curve.append((0, self.ordinary_loss()))
        while self.progress < 1.0:
            started = time.monotonic()
            loss = self._step()
            self.seconds += time.monotonic() - started
            if self.step % self.plan.check_steps == 0 or self.progress >= 1.0:
                self.curve.append((self.step, self.ordinary_loss()))
            report(
                {
                    "step": self.step,
                    "loss": loss,
                    "progress": self.progress,
                    "ordinary_loss": self.curve[-1][1],
                }
            )
            if time.monotonic() - saved > self.plan.checkpoint_seconds:
                self.save()
                saved = time.monotonic()
        self.save()

    @torch.no_grad()
    def ordinary_loss(self) -> float:
        """Loss (nats) of ordinary tokens on held-out text without adaptive tokens."""
        parts = self._held_out.split(self.plan.rows)
        found = [token_losses(self.module(input_ids=part).logits, part).sum() for part in parts]
        return float(sum(found)) / self._held_out[:, 1:].numel()

    def merged(self) -> Any:
        """The module with LoRA merged in."""
        return self.module.merge_and_unload() if self.plan.rank else self.module

    def _step(self) -> float:
        plan = self.plan
        rng = random.Random(f"{plan.seed} {self.step}")
        windows = torch.Generator().manual_seed(rng.getrandbits(62))
        tokens = self._maker.draw(plan.rows, plan.row_length, rng)
        if plan.loss == "basic":
            mixed = draw_windows(len(tokens), plan.row_length, plan.window, windows)
            loss = basic_loss(self._logits(tokens, mixed), tokens)
        else:
            plain, holed = tokens.split([plan.rows - plan.rows // 2, plan.rows // 2])
            mixed = draw_windows(len(holed), plan.row_length, plan.window, windows)
            loss = improved_loss(
                self.module(input_ids=plain).logits,
                plain,
                self._logits(holed, mixed),
                holed,
                mixed,
                plan.mask_weight,
            )
        if not torch.isfinite(loss):
            raise TrainingError(f"the loss is {float(loss)}: resume with a lower --learning-rate")
        self._optimizer.param_groups[0]["lr"] = self._rate()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self.step += 1
        return float(loss.detach())

    def _logits(self, tokens: Tensor, mixed: Mixed) -> Tensor:
        ordinary = F.embedding(tokens, self.module.get_input_embeddings().weight)
        places = mixed.places.clamp(0, len(self.embeddings) - 1)
        inputs = torch.where(mixed.replaced[..., None], self.embeddings[places], ordinary)
        logits: Tensor = self.module(inputs_embeds=inputs).logits
        return logits

    def _rate(self) -> float:
        """Warm-up, then a cosine to the final rate."""
        plan = self.plan
        if self.progress < plan.warm_up_share:
            return plan.learning_rate * (self.progress / plan.warm_up_share + 0.01)
        done = (self.progress - plan.warm_up_share) / (1 - plan.warm_up_share)
        share = 0.5 * (1 + math.cos(math.pi * done))
        return plan.final_rate + (plan.learning_rate - plan.final_rate) * share

    @property
    def _file(self) -> Path:
        return self.folder / "published-checkpoint.pt"

    def save(self) -> None:
        """Write the checkpoint; one that is there is replaced in one step."""
        state = {
            "plan": asdict(self.plan),
            "step": self.step,
            "seconds": self.seconds,
            "curve": self.curve,
            "embeddings": self.embeddings.detach(),
            "weights": {
                n: p.detach() for n, p in self.module.named_parameters() if p.requires_grad
            },
            "optimizer": self._optimizer.state_dict(),
        }
        part = self._file.with_suffix(".part")
        torch.save(state, part)
        os.replace(part, self._file)

    def _load(self) -> None:
        if not self._file.exists():
            raise TrainingError(f"there is no {self._file} to resume; leave --resume out")
        state = torch.load(self._file, weights_only=True)
        same = ("window", "diverse", "rank", "loss")
        if any(state["plan"][name] != getattr(self.plan, name) for name in same):
            raise TrainingError("the checkpoint is of another plan; give the same options")
        named = dict(self.module.named_parameters())
        with torch.no_grad():
            for name, weight in state["weights"].items():
                named[name].copy_(weight)
            self.embeddings.copy_(state["embeddings"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.step, self.seconds = state["step"], state["seconds"]
        self.curve = [(int(step), float(loss)) for step, loss in state["curve"]]


def _with_low_rank(module: Any, plan: AdaptiveTrainingPlan) -> Any:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise TrainingError("LoRA needs peft; install redraft[bench]") from error
    config = LoraConfig(
        r=plan.rank, lora_alpha=2 * plan.rank, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    return get_peft_model(module, config)
