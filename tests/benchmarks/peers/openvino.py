"""OpenVINO as a peer: the pipeline of OpenVINO GenAI on the same GGUF file, plain and with its
prompt lookup; forwards of several rows by the same compiled model without the pipeline."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import time
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.errors import BrokenModel, InvalidRequest
from accel.execution.statistics import Statistics
from tests.benchmarks.peers.errors import PeerUnavailable
from tests.benchmarks.peers.gguf_engine import Lookups, PeerAnswer, until_stop

_MODEL = "openvino_model.xml"
"""What it writes beside a GGUF file that it has read."""


class OpenVino:
    """A GGUF file as OpenVINO GenAI reads it, on the CPU, for lowest latency."""

    lookups: ClassVar[Lookups] = {"plain": 0, "prompt lookup of 8": 8, "prompt lookup of 32": 32}

    def __init__(self, path: Path, threads: int, context: int, precision: str = "") -> None:
        """``context``: tokens of a text at most; ``precision``: f32 or bf16, of what is not
        quantised, its choice if empty. Raises PeerUnavailable or BrokenModel."""
        self.check_installed()
        self._genai: Any = importlib.import_module("openvino_genai")
        self._openvino: Any = importlib.import_module("openvino")
        self._settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": threads}
        if precision:
            self._settings["INFERENCE_PRECISION_HINT"] = precision
        self._threads, self._size, self._seeds = threads, context, itertools.count()
        self._folder = TemporaryDirectory()
        link = Path(self._folder.name) / "model.gguf"
        link.symlink_to(path.resolve())
        try:
            self._plain = self._genai.LLMPipeline(
                str(link), "CPU", enable_save_ov_model=True, **self._settings
            )
        except RuntimeError as error:
            why = str(error).strip().splitlines()[-1]
            raise BrokenModel(f"OpenVINO does not load {path}: {why}", "give another") from error
        self._looking_up: Any = None
        self._request: Any = None
        self._behind: tuple[int, list[Any]] = 0, []

    @property
    def folder(self) -> Path:
        """The folder of the model as OpenVINO stores it."""
        return Path(self._folder.name)

    @classmethod
    def check_installed(cls) -> None:
        """Raises PeerUnavailable where the package is missing; nothing is loaded."""
        if importlib.util.find_spec("openvino_genai") is None:
            raise PeerUnavailable("openvino needs its package: pip install openvino-genai")

    def about(self) -> dict[str, Any]:
        """``threads``, ``type``: the precision of what is not quantised, ``version``."""
        chosen = self._compiled().get_property("INFERENCE_PRECISION_HINT").to_string()
        return {
            "threads": self._threads,
            "type": chosen,
            "version": metadata.version("openvino-genai"),
            "built_here": False,
        }

    def generate(
        self,
        prompt: TokenArray,
        max_tokens: int,
        draft_tokens: int = 0,
        stop_tokens: frozenset[int] = frozenset(),
    ) -> PeerAnswer:
        """Generate greedily after ``prompt`` until a stop token or ``max_tokens``, with so many
        tokens of its prompt lookup at a time. The prompt's time is that of the first token beyond a
        usual one's. Raises InvalidRequest where the text does not fit."""
        if len(prompt) + max_tokens > self._size or not len(prompt):
            raise InvalidRequest(f"a text of {len(prompt) + max_tokens} tokens does not fit")
        started = time.perf_counter()
        written, first_s = self._run(prompt, max_tokens, draft_tokens, stop_tokens)
        whole_s = time.perf_counter() - started
        tokens = until_stop(written, stop_tokens)
        step_s = (whole_s - first_s) / max(len(written) - 1, 1)
        prefill_s = max(first_s - step_s, 0.0)
        statistics = Statistics(prompt_tokens=len(prompt), tokens=len(tokens))
        # It says nothing of its forwards.
        statistics.forwards = max(len(written), 1)
        statistics.prefill_s, statistics.decode_s = prefill_s, whole_s - prefill_s
        statistics.verify_s = [statistics.decode_s / statistics.forwards] * statistics.forwards
        statistics.draft_s = [0.0] * statistics.forwards
        return PeerAnswer(tokens, statistics)

    def prefill_s(self, tokens: int) -> float:
        """Seconds from a new prompt of so many tokens to its first token."""
        rng = np.random.default_rng([tokens, next(self._seeds)])
        prompt = rng.integers(0, 256, tokens, np.int32)
        return self._run(prompt, 1, 0, frozenset())[1]

    def forward_s(self, rows: int, context: int, times: int) -> list[float]:
        """Seconds of forwards of a chain of ``rows`` after ``context`` tokens, each logit made."""
        rng = np.random.default_rng(0)
        request = self._infer_request()
        if self._behind[0] != context:
            request.reset_state()
            self._infer(rng.integers(0, 256, context), 0)
            states = [
                self._openvino.Tensor(each.state.data.copy()) for each in request.query_state()
            ]
            self._behind = context, states
        seconds = []
        for _ in range(times):
            for state, before in zip(request.query_state(), self._behind[1], strict=True):
                state.state = before
            started = time.perf_counter()
            self._infer(rng.integers(0, 256, rows), context)
            seconds.append(time.perf_counter() - started)
        return seconds

    def _run(
        self, prompt: TokenArray, max_tokens: int, draft_tokens: int, stops: frozenset[int]
    ) -> tuple[NDArray[np.int64], float]:
        """What it writes, and the seconds to the first token."""
        pipeline = self._lookup_pipeline() if draft_tokens else self._plain
        settings = self._genai.GenerationConfig()
        settings.max_new_tokens, settings.do_sample = max_tokens, False
        settings.ignore_eos = not stops
        settings.stop_token_ids = set(stops)
        if draft_tokens:
            settings.num_assistant_tokens, settings.max_ngram_size = draft_tokens, 3
        tokens = np.asarray(prompt, np.int64)[None]
        tensor = self._openvino.Tensor
        inputs = self._genai.TokenizedInputs(tensor(tokens), tensor(np.ones_like(tokens)))
        result = pipeline.generate(inputs, settings)
        return np.array(result.tokens[0], np.int64), result.perf_metrics.get_ttft().mean / 1e3

    def _lookup_pipeline(self) -> Any:
        if self._looking_up is None:
            self._looking_up = self._genai.LLMPipeline(
                self._folder.name, "CPU", prompt_lookup=True, **self._settings
            )
        return self._looking_up

    def _compiled(self) -> Any:
        return self._infer_request().get_compiled_model()

    def _infer_request(self) -> Any:
        if self._request is None:
            core = self._openvino.Core()
            model = core.read_model(str(Path(self._folder.name) / _MODEL))
            settings = {"PERFORMANCE_HINT": "LATENCY"} | self._settings
            self._request = core.compile_model(model, "CPU", settings).create_infer_request()
        return self._request

    def _infer(self, tokens: NDArray[np.int64], position: int) -> None:
        last = position + len(tokens)
        inputs = {
            "input_ids": tokens[None],
            "attention_mask": np.ones((1, last), np.int64),
            "position_ids": np.arange(position, last, dtype=np.int64)[None],
            "beam_idx": np.zeros(1, np.int32),
        }
        self._request.infer(inputs, share_inputs=True)
