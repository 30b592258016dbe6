"""transformers' own ``generate`` as a peer: plain, prompt lookup, and with a draft model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from transformers.generation.logits_process import (
    LogitsProcessorList,
    RepetitionPenaltyLogitsProcessor,
)

from accel.draft_tree import TokenArray
from accel.errors import InvalidRequest
from accel.execution.statistics import Statistics
from accel.models.hf_loading import load_module
from accel.verification.sampling import Sampling
from operating_system.machine import cores

Mode = Literal["plain", "prompt-lookup", "assisted"]

TIMED_TOKENS = 16
"""Generated to find the fastest number of threads."""

PROMPT_LOOKUP_TOKENS = 10
"""What transformers' documentation uses; ``generate`` has no default for it."""


def set_threads(count: int) -> None:
    """CPU threads of everything that runs next: torch has one number for the whole process."""
    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


def thread_counts(device: torch.device) -> list[int]:
    """Numbers of CPU threads worth trying: 1, 2, 4 and so on up to the cores of this process."""
    if device.type != "cpu":
        return [torch.get_num_threads()]
    most = cores()
    return sorted({min(1 << power, most) for power in range(most.bit_length() + 1)})


def threads() -> int:
    """CPU threads in use."""
    return torch.get_num_threads()


@dataclass(slots=True)
class HfResult:
    """Generated tokens without the end token, int32 [n], and what they cost."""

    tokens: TokenArray
    statistics: Statistics


class HfGenerate:
    """A model loaded for ``generate``, with its default cache and attention, batch 1.

    The first forward computes the prompt and the first step in one, of a draft model too. Its time
    beyond that of a usual step is the prefill, so that what remains is decoding alone, as in our
    engine.
    """

    def __init__(
        self,
        folder: Path,
        *,
        dtype: Literal["fp32", "bf16"],
        device: str = "cpu",
        draft_folder: Path | None = None,
    ) -> None:
        """``draft_folder``: a smaller model of the same tokenizer, for ``assisted``."""
        torch_dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[dtype]
        self._device = torch.device(device)
        self._model: Any = load_module(folder, torch_dtype, self._device, "sdpa")
        self._forwards = _Forwards(self._model, self._device)
        self._draft_model: Any = None
        self._draft_forwards: _Forwards | None = None
        if draft_folder is not None:
            self._draft_model = load_module(draft_folder, torch_dtype, self._device, "sdpa")
            self._draft_forwards = _Forwards(self._draft_model, self._device)
        self.threads = torch.get_num_threads()
        """CPU threads of every generation."""
        self.step_s = 0.0
        """Seconds of a step of plain decoding, as ``settle`` timed it."""

    def settle(self, threads: int | None) -> None:
        """Use so many CPU threads from now on; None takes the fastest number, by timing."""
        steps: dict[int, float] = {}
        for count in [threads] if threads else thread_counts(self._device):
            self.threads = count
            prompt = np.ones(TIMED_TOKENS, np.int32)
            timed = self.generate(prompt, mode="plain", max_tokens=2 * TIMED_TOKENS)
            steps[count] = float(np.median(timed.statistics.verify_s[TIMED_TOKENS:]))
        self.threads = min(steps, key=steps.__getitem__)
        self.step_s = steps[self.threads]

    def generate(
        self,
        prompt: TokenArray,
        *,
        mode: Mode,
        max_tokens: int,
        stop_tokens: frozenset[int] = frozenset(),
        sampling: Sampling | None = None,
    ) -> HfResult:
        """Generate after ``prompt`` (int32 [n]) until a stop token or ``max_tokens``.

        Raises InvalidRequest for ``assisted`` without a draft model.
        """
        sampling = sampling or Sampling()
        set_threads(self.threads)
        statistics = Statistics(prompt_tokens=len(prompt))
        inputs = torch.as_tensor(np.asarray(prompt, np.int64), device=self._device)[None]
        torch.manual_seed(sampling.seed)
        clocks = [each for each in (self._forwards, self._draft_forwards) if each is not None]
        for clock in clocks:
            clock.clear()
        started = time.perf_counter()
        with torch.inference_mode():
            output = self._model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=max_tokens,
                eos_token_id=sorted(stop_tokens) or None,
                pad_token_id=0,
                **_choice(sampling, len(prompt)),
                **self._drafting(mode),
            )
        whole_s = time.perf_counter() - started
        tokens = output[0, inputs.shape[1] :].cpu().numpy().astype(np.int32)
        if len(tokens) and int(tokens[-1]) in stop_tokens:
            tokens = tokens[:-1]
        forwards = self._forwards.seconds()
        statistics.prefill_s = sum(clock.prefill_s() for clock in clocks)
        statistics.decode_s = whole_s - statistics.prefill_s
        statistics.verify_s = forwards[1:]
        statistics.tokens = len(tokens)
        statistics.forwards = len(forwards)
        statistics.nodes = sum(self._forwards.rows) - len(prompt) - len(forwards) + 1
        return HfResult(tokens, statistics)

    def _drafting(self, mode: Mode) -> dict[str, Any]:
        if mode == "prompt-lookup":
            return {"prompt_lookup_num_tokens": PROMPT_LOOKUP_TOKENS}
        if mode == "assisted":
            if self._draft_model is None:
                raise InvalidRequest("assisted generation needs a draft model; give its folder")
            return {"assistant_model": self._draft_model}
        return {}


class _Forwards:
    """Rows and times of the forwards of one module."""

    def __init__(self, module: Any, device: torch.device) -> None:
        self.rows: list[int] = []
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._device = device
        module.register_forward_pre_hook(self._before, with_kwargs=True)
        module.register_forward_hook(self._after)

    def clear(self) -> None:
        for record in (self.rows, self._starts, self._ends):
            record.clear()

    def seconds(self) -> list[float]:
        """Time of every forward."""
        return [end - start for start, end in zip(self._starts, self._ends, strict=True)]

    def prefill_s(self) -> float:
        """Time of the first forward beyond that of a usual one."""
        seconds = self.seconds()
        usual = float(np.median(seconds[1:])) if len(seconds) > 1 else 0.0
        return max(seconds[0] - usual, 0.0) if seconds else 0.0

    def _before(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        ids = kwargs["input_ids"] if "input_ids" in kwargs else args[0]
        self.rows.append(ids.shape[1])
        self._starts.append(time.perf_counter())

    def _after(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self._ends.append(time.perf_counter())


def _choice(sampling: Sampling, prompt_tokens: int) -> dict[str, Any]:
    penalty: dict[str, Any] = {"repetition_penalty": sampling.repetition_penalty}
    if sampling.repetition_penalty != 1 and not sampling.penalise_prompt:
        text_alone = RepetitionPenaltyLogitsProcessor(sampling.repetition_penalty, prompt_tokens)
        penalty = {"logits_processor": LogitsProcessorList([text_alone])}
    if sampling.greedy:
        return penalty | {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    return penalty | {
        "do_sample": True,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
    }
