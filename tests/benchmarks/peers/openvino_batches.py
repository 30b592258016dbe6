"""OpenVINO GenAI's continuous batching on a GGUF file: many clients at a time, prefixes cached."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from accel.draft_tree import TokenArray
from tests.benchmarks.peers.openvino import OpenVino

CACHE_GB = 2
PROMPT_ROWS = 256
"""Of a step at most, as its own documentation has it."""


class OpenVinoBatches:
    """A pipeline whose steps are run as long as a client waits."""

    def __init__(self, path: Path, threads: int, context: int) -> None:
        """Raises PeerUnavailable or BrokenModel."""
        self._alone = OpenVino(path, threads, context)
        self._genai: Any = importlib.import_module("openvino_genai")
        self._openvino: Any = importlib.import_module("openvino")
        scheduler = self._genai.SchedulerConfig()
        scheduler.cache_size = CACHE_GB
        scheduler.enable_prefix_caching = True
        scheduler.max_num_batched_tokens = PROMPT_ROWS
        scheduler.dynamic_split_fuse = True
        self._pipeline = self._genai.ContinuousBatchingPipeline(
            str(self._alone.folder), scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads}
        )
        self._requests = 0

    def answer(self, lines: Sequence[Sequence[TokenArray]], tokens: int) -> dict[str, Any]:
        """Write ``tokens`` after each prompt. The prompts of a line are asked one after another,
        the lines at a time. Return the waits, the seconds in all and the tokens."""
        waiting: dict[int, tuple[Any, float]] = {}
        left = [list(line) for line in lines]
        waits: list[float] = []
        written = 0
        started = time.perf_counter()
        for number in range(len(left)):
            waiting[number] = self._add(left[number].pop(0), tokens)
        while waiting:
            self._pipeline.step()
            for number, (handle, asked) in list(waiting.items()):
                if handle.get_status() == self._genai.GenerationStatus.RUNNING:
                    continue
                waits.append(time.perf_counter() - asked)
                written += sum(len(each.generated_ids) for each in handle.read_all())
                del waiting[number]
                if left[number]:
                    waiting[number] = self._add(left[number].pop(0), tokens)
        return {"waits": waits, "seconds": time.perf_counter() - started, "tokens": written}

    def _add(self, prompt: TokenArray, tokens: int) -> tuple[Any, float]:
        settings = self._genai.GenerationConfig()
        settings.max_new_tokens, settings.do_sample, settings.ignore_eos = tokens, False, True
        self._requests += 1
        ids = self._openvino.Tensor(np.asarray(prompt, np.int64)[None])
        return self._pipeline.add_request(self._requests, ids, settings), time.perf_counter()
