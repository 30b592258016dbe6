"""Training of mask rows on a frozen base, on texts that the base itself writes."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from accel.training.errors import TrainingError
from accel.training.frozen_base import FrozenBase, Text
from accel.training.mask_rows import (
    Loss,
    Parameters,
    fresh_parameters,
    group_states,
    loss_of,
    sampled_states,
)
from accel.training.own_text import PromptMaker, own_text

LENGTHS = (128, 256, 512)
"""Lengths of prompts, drawn in turn; as many tokens whatever the length."""


@dataclass(frozen=True)
class Plan:
    """What a run does. ``minutes`` or ``steps`` end it, and the schedule follows."""

    minutes: float = 0.0
    steps: int = 0
    seed: int = 0
    masks: int = 4
    rank: int = 32
    learning_rate: float = 2e-3
    warm_up_steps: int = 30
    prompt_tokens: int = 8192
    """Of one thread and round."""
    new_tokens: int = 96
    groups: int = 192
    """Groups of one thread and step."""
    prompt_share: float = 0.25
    """Groups that stand inside the given text."""
    checkpoint_seconds: float = 120.0
    loss: Loss = field(default_factory=Loss)


@dataclass
class Position:
    """How far a run is; kept in its checkpoints."""

    step: int = 0
    round: int = 0
    groups: int = 0
    seconds: float = 0.0


class FrozenTrainer:
    """A run. Checkpoints go to ``folder``/adaptive-checkpoint.pt."""

    def __init__(
        self,
        base: FrozenBase,
        maker: PromptMaker,
        plan: Plan,
        folder: Path,
        *,
        start: Parameters | None = None,
        resume: bool = False,
        threads: int = 1,
    ) -> None:
        """``start``: parameters of an earlier run to begin with, of the same sizes.

        Raises TrainingError where sizes do not fit or there is nothing to resume.
        """
        self.base, self.plan, self.folder = base, plan, folder
        self._maker = maker
        self._workers = threads
        torch.set_num_threads(1)
        self.position = Position()
        self.parameters = fresh_parameters(base, plan.masks, plan.rank, plan.seed)
        if start is not None:
            self._take_over(start)
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        self._optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=1.0, betas=(0.9, 0.98), weight_decay=0.0
        )
        if resume:
            self._load()

    @property
    def progress(self) -> float:
        """Share of the budget used, 0 to 1."""
        if self.plan.steps:
            return min(1.0, self.position.step / self.plan.steps)
        return min(1.0, self.position.seconds / (60.0 * self.plan.minutes))

    def run(self, report: Callable[[dict[str, Any]], None]) -> None:
        """Train to the end of the budget; ``report`` gets the figures of every step."""
        saved = time.monotonic()
        with ThreadPoolExecutor(self._workers) as pool:
            while self.progress < 1.0:
                started = time.monotonic()
                texts = list(pool.map(self._text, range(self._workers)))
                parts = [self._anchors(number, text) for number, text in enumerate(texts)]
                self.position.round += 1
                self.position.seconds += time.monotonic() - started
                for anchors in zip(*parts, strict=True):
                    if self.progress < 1.0:
                        report(self._step(pool, texts, anchors))
                if time.monotonic() - saved > self.plan.checkpoint_seconds:
                    self.save()
                    saved = time.monotonic()
        self.save()

    def _random(self, worker: int) -> random.Random:
        return random.Random(f"{self.plan.seed} {self.position.round} {worker}")

    def _text(self, worker: int) -> Text:
        """The text that a thread learns from in this round."""
        plan = self.plan
        room = self.base.max_positions - plan.new_tokens - 1
        length = min(LENGTHS[self.position.round % len(LENGTHS)], room)
        count = max(plan.prompt_tokens // length, 1)
        return own_text(
            self.base, self._maker, count, length, plan.new_tokens, self._random(worker)
        )

    def _anchors(self, worker: int, text: Text) -> Sequence[Tensor]:
        """Rows of the text that groups stand behind, int64 [batch, groups] for every step."""
        plan = self.plan
        batch, length = text.tokens.shape
        last = length - 1 - plan.masks
        random_rows = torch.Generator().manual_seed(self._random(worker).getrandbits(62))
        own = torch.arange(max(text.prompt - 1, 0), last + 1)
        inside = int(len(own) * plan.prompt_share / (1 - plan.prompt_share))
        given = torch.randint(0, max(text.prompt - 1, 1), (batch, inside), generator=random_rows)
        rows = torch.cat([own.expand(batch, -1), given], 1)
        order = torch.rand(rows.shape, generator=random_rows).argsort(1)
        each = max(plan.groups // batch, 1)
        steps = max(rows.shape[1] // each, 1)
        return rows.gather(1, order)[:, : steps * each].split(each, 1)

    def _step(
        self, pool: ThreadPoolExecutor, texts: list[Text], anchors: Sequence[Tensor]
    ) -> dict[str, Any]:
        started = time.monotonic()
        found = list(pool.map(self._gradients, texts, anchors))
        weight = sum(each[1] for each in found)
        rate = self._rate()
        for number, parameter in enumerate(self.parameters.values()):
            parameter.grad = torch.stack([each[2][number] for each in found]).sum(0) / weight
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), 1.0)
        self._optimizer.param_groups[0]["lr"] = rate
        self._optimizer.step()
        loss = sum(each[0] for each in found) / weight
        if not loss < 1e9:
            raise TrainingError(f"the loss is {loss}: resume with a lower --learning-rate")
        position = self.position
        position.step += 1
        position.groups += sum(each.numel() for each in anchors)
        spent = time.monotonic() - started
        position.seconds += spent
        return {
            "step": position.step,
            "loss": loss,
            "rate": rate,
            "groups": position.groups,
            "groups_per_second": position.groups / max(position.seconds, 1e-9),
            "progress": self.progress,
        }

    def _gradients(self, text: Text, anchors: Tensor) -> tuple[float, float, Sequence[Tensor]]:
        loss, weight = loss_of(self.base, self.parameters, text, anchors, self.plan.loss)
        found = torch.autograd.grad(loss, list(self.parameters.values()))
        return float(loss.detach()), weight, found

    def _rate(self) -> float:
        """Warm-up, then linear to a fiftieth."""
        warm = min(1.0, (self.position.step + 1) / self.plan.warm_up_steps)
        return self.plan.learning_rate * warm * max(1.0 - self.progress, 0.02)

    def _take_over(self, start: Parameters) -> None:
        for name, parameter in self.parameters.items():
            if name not in start or start[name].shape != parameter.shape:
                raise TrainingError(
                    f"the weights to start from do not fit at {name}; give the same --masks and "
                    "--rank, or leave --start out"
                )
            self.parameters[name] = start[name].float().clone()

    @property
    def _file(self) -> Path:
        return self.folder / "adaptive-checkpoint.pt"

    def save(self) -> None:
        """Write the checkpoint; one that is there is replaced in one step."""
        part = self._file.with_suffix(".part")
        state = {
            "masks": self.plan.masks,
            "rank": self.plan.rank,
            "position": asdict(self.position),
            "parameters": {name: p.detach() for name, p in self.parameters.items()},
            "optimizer": self._optimizer.state_dict(),
        }
        torch.save(state, part)
        os.replace(part, self._file)

    def _load(self) -> None:
        if not self._file.exists():
            raise TrainingError(f"there is no {self._file} to resume; leave --resume out")
        state = torch.load(self._file, weights_only=True)
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                stored = state["parameters"].get(name)
                if stored is None or stored.shape != parameter.shape:
                    raise TrainingError(
                        "the checkpoint has other sizes; give the same --masks and --rank"
                    )
                parameter.copy_(stored)
        self._optimizer.load_state_dict(state["optimizer"])
        self.position = Position(**state["position"])


@torch.no_grad()
def right_guesses(
    base: FrozenBase, parameters: Parameters, text: Text, *, sampler: bool, step: int = 4
) -> Tensor:
    """Share of groups behind every ``step``-th row of the text's own part whose first ``i + 1``
    guesses are all right. float32 [masks]."""
    masks = len(parameters["embeddings"])
    last = text.tokens.shape[1] - 1 - masks
    anchors = torch.arange(text.prompt - 1, last + 1, step).expand(len(text.tokens), -1)
    states = group_states(base, parameters, text, anchors)
    places = (anchors[..., None] + 1 + torch.arange(masks)).flatten(1)
    previous = text.tokens.gather(1, places).view(states.shape[:3])
    if sampler:
        states = sampled_states(base, parameters, states, previous)
    right = base.choices(states).flatten(1) == text.likeliest.gather(1, places)
    return right.view(states.shape[:3]).cumprod(2).float().mean((0, 1))
