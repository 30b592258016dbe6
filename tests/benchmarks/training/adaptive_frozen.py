"""Adaptive tokens of a model that stays as it is: their embeddings alone are learnt (as PaSS, Monea
et al. 2023, learns its look-ahead tokens).

Groups of them follow drawn positions of a text and attend what stands before, and each other. The
text does not attend them, so its own rows are those of the model.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.benchmarks.training.adaptive_published import AdaptiveTrainingPlan
from tests.benchmarks.training.prompt_maker import PromptMaker

ROWS, ROW_LENGTH, GROUPS = 2, 320, 56
"""Texts of a step, their tokens, and how many positions groups follow."""
WARM_UP_STEPS, LEAST_SHARE = 20, 0.03


class FrozenTrainer:
    """A run that learns ``embeddings``, float32 [window, width], for ``module``, a causal LM of
    transformers in float32."""

    def __init__(self, module: Any, maker: PromptMaker, plan: AdaptiveTrainingPlan) -> None:
        self.plan, self._maker, self._module = plan, maker, module.requires_grad_(False)
        torch.manual_seed(plan.seed)
        self._table: Tensor = module.get_input_embeddings().weight
        noise = torch.randn(plan.window, self._table.shape[1])
        self.embeddings = nn.Parameter(self._table.mean(0) + 0.5 * self._table.std() * noise)
        self._optimizer = torch.optim.Adam([self.embeddings], lr=1.0)
        self.step, self.seconds = 0, 0.0

    @property
    def progress(self) -> float:
        """Share of the budget used, 0 to 1."""
        done = self.step / self.plan.steps if self.plan.steps else None
        return min(1.0, self.seconds / (60 * self.plan.minutes) if done is None else done)

    def run(self, report: Callable[[dict[str, Any]], None]) -> None:
        """Train to the end of the budget; ``report`` gets the figures of every step."""
        while self.progress < 1.0:
            started = time.monotonic()
            loss = self._step()
            self.seconds += time.monotonic() - started
            report({"step": self.step, "loss": loss, "progress": self.progress})

    def _step(self) -> float:
        rng = random.Random(f"{self.plan.seed} {self.step}")
        tokens = self._maker.draw(ROWS, ROW_LENGTH, rng)
        last = ROW_LENGTH - self.plan.window - 2
        after = torch.tensor(sorted(rng.sample(range(8, last), min(GROUPS, last - 8))))
        ahead = tokens[:, after[:, None] + 2 + torch.arange(self.plan.window)]
        loss = F.cross_entropy(self.logits(tokens, after).flatten(0, 2), ahead.flatten())
        share = max(LEAST_SHARE, 1 - self.progress) * min(1.0, (self.step + 1) / WARM_UP_STEPS)
        self._optimizer.param_groups[0]["lr"] = share * self.plan.learning_rate
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        self.step += 1
        return float(loss.detach())

    def logits(self, tokens: Tensor, after: Tensor) -> Tensor:
        """What the rows of a group after each of some positions of texts say, float32 [texts,
        positions, window, vocabulary]. tokens: int64 [texts, length]; after: int64 [positions]."""
        (texts, length), groups, window = tokens.shape, len(after), self.plan.window
        rows = self.embeddings.repeat(groups, 1)[None].expand(texts, -1, -1)
        inputs = torch.cat([F.embedding(tokens, self._table), rows], 1)
        own = (after[:, None] + 1 + torch.arange(window)).flatten()
        positions = torch.cat([torch.arange(length), own])
        attends = torch.zeros(len(positions), len(positions), dtype=torch.bool)
        attends[:length, :length] = torch.ones(length, length, dtype=torch.bool).tril()
        attends[length:, :length] = torch.arange(length) <= after.repeat_interleave(window)[:, None]
        together = torch.ones(window, window, dtype=torch.bool).tril()
        attends[length:, length:] = torch.block_diag(*[together] * groups)
        mask = torch.zeros(attends.shape).masked_fill(~attends, torch.finfo(torch.float32).min)
        states = self._module.model(
            inputs_embeds=inputs,
            attention_mask=mask[None, None].expand(texts, -1, -1, -1),
            position_ids=positions[None].expand(texts, -1),
        ).last_hidden_state[:, length:]
        logits: Tensor = self._module.lm_head(states)
        return logits.view(texts, groups, window, -1)
