"""llama.cpp as a peer: its C API by the functions of llama-cpp-python, greedy, on the CPU.

Its threads spin for a while after each forward: run it in a ``ChildProcess``.
"""

from __future__ import annotations

import ctypes
import importlib
import re
import time
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from accel.draft_tree import TokenArray
from accel.errors import BrokenModel, InvalidRequest
from accel.execution.statistics import Statistics
from accel.models.llama_cpp.library_files import DISTRIBUTION, INSTALL
from tests.benchmarks.peers.errors import PeerUnavailable
from tests.benchmarks.peers.gguf_engine import Lookups, PeerAnswer, is_built_here, until_stop
from tests.benchmarks.peers.ngram_simple import NgramSimple
from tests.llama_cpp_package import has_package

BATCH_ROWS = 512
"""Rows of one forward of a prompt: its default."""
_SEQUENCE = 0

_Tokens = NDArray[np.integer[Any]]


class LlamaCpp:
    """A GGUF file in a context of llama.cpp with its defaults."""

    lookups: ClassVar[Lookups] = {
        "plain": 0,
        "ngram-simple 3/8": (3, 8),
        "prompt lookup of 32": 32,
    }
    """What it drafts with in next edits: the prompt lookup of 32 is that of Sweep's server."""
    package = DISTRIBUTION

    def __init__(self, path: Path, threads: int, context: int) -> None:
        """``context``: tokens of a text at most. Raises PeerUnavailable or BrokenModel."""
        self.check_installed()
        self._api: Any = self._load_api()
        self._api.llama_backend_init()
        model_settings = self._model_settings()
        self._model = self._api.llama_model_load_from_file(str(path).encode(), model_settings)
        if not self._model:
            raise BrokenModel(f"llama.cpp does not load {path}", "give another GGUF file")
        settings = self._api.llama_context_default_params()
        settings.n_ctx = context
        settings.n_batch = settings.n_ubatch = min(BATCH_ROWS, context)
        settings.n_threads = settings.n_threads_batch = threads
        self._context = self._api.llama_init_from_model(self._model, settings)
        if not self._context:
            raise PeerUnavailable(f"llama.cpp makes no context of {context} tokens; give fewer")
        vocabulary = self._api.llama_model_get_vocab(self._model)
        self.vocabulary_size = int(self._api.llama_vocab_n_tokens(vocabulary))
        self._memory = self._api.llama_get_memory(self._context)
        self._greedy = self._api.llama_sampler_init_greedy()
        self._rows = min(BATCH_ROWS, context)
        self._batch = self._api.llama_batch_init(self._rows, 0, 1)
        self._size = context
        self._threads = threads
        self._held: _Tokens = np.empty(0, np.int64)

    @classmethod
    def check_installed(cls) -> None:
        """Raises PeerUnavailable where the package is missing; nothing is loaded."""
        if not has_package():
            raise PeerUnavailable(f"llama-cpp needs the package {DISTRIBUTION}; {INSTALL}")

    def about(self) -> dict[str, Any]:
        """``threads``, ``type`` of the weights as it calls it, ``version`` of the package, whether
        that was ``built_here``, and its ``instructions``."""
        room = ctypes.create_string_buffer(256)
        self._api.llama_model_desc(self._model, room, len(room))
        kind = room.value.decode(errors="replace").split(maxsplit=2)[-1]
        said = self._api.llama_print_system_info().decode(errors="replace")
        return {
            "threads": self._threads,
            "type": kind,
            "version": metadata.version(self.package),
            "built_here": is_built_here(self.package),
            "instructions": re.findall(r"(\w+) = 1", said),
        }

    def generate(
        self,
        prompt: TokenArray,
        max_tokens: int,
        draft_tokens: int | tuple[int, int] = 0,
        stop_tokens: frozenset[int] = frozenset(),
    ) -> PeerAnswer:
        """Generate greedily after ``prompt`` until a stop token or ``max_tokens``, with chains of
        ``draft_tokens`` of its n-gram lookup (llama-cpp-python's, with its defaults), or of
        ``ngram-simple`` where that is a pair of the match and the draft.

        What the context holds of the prompt is used again. Raises InvalidRequest where the text
        does not fit.
        """
        if len(prompt) + max_tokens > self._size or not len(prompt):
            raise InvalidRequest(f"a text of {len(prompt) + max_tokens} tokens does not fit")
        lookup = self._lookup(draft_tokens) if draft_tokens else None
        statistics = Statistics(prompt_tokens=len(prompt))
        started = time.perf_counter()
        statistics.prompt_tokens_reused = self._hold(prompt[:-1])
        prefilled = time.perf_counter()
        text = np.empty(len(prompt) + max_tokens, np.int64)
        text[: len(prompt)] = prompt
        length = len(prompt)
        while length < len(text):
            most = len(text) - length - 1
            drafted = lookup(text[:length])[:most] if lookup and most else text[:0]
            forward_started = time.perf_counter()
            chosen = self._verify(text[length - 1 : length], drafted, length - 1)
            statistics.verify_s.append(time.perf_counter() - forward_started)
            text[length : length + len(chosen)] = chosen
            length += len(chosen)
            statistics.forwards += 1
            statistics.nodes += len(drafted)
            statistics.accepted.append(len(chosen) - 1)
            self._trim(length - 1)
            if stop_tokens and not stop_tokens.isdisjoint(chosen):
                break
        ended = time.perf_counter()
        statistics.prefill_s, statistics.decode_s = prefilled - started, ended - prefilled
        statistics.draft_s = [
            max(0.0, statistics.decode_s - sum(statistics.verify_s)) / statistics.forwards
        ] * statistics.forwards
        self._held = text[: length - 1]
        generated = until_stop(text[len(prompt) : length], stop_tokens)
        statistics.tokens = len(generated)
        return PeerAnswer(generated, statistics)

    def forward_s(self, rows: int, context: int, times: int) -> list[float]:
        """Seconds of forwards of a chain of ``rows`` after ``context`` tokens, each logit made."""
        rng = np.random.default_rng(0)
        if len(self._held) != context:
            self._hold(rng.integers(0, self.vocabulary_size, context))
        seconds = []
        for _ in range(times):
            tokens = rng.integers(0, self.vocabulary_size, rows)
            started = time.perf_counter()
            self._decode(tokens, context, every_logit=True)
            self._api.llama_get_logits(self._context)
            seconds.append(time.perf_counter() - started)
            self._trim(context)
        return seconds

    def prefill_s(self, tokens: int) -> float:
        """Seconds of a prompt of so many tokens from nothing."""
        prompt = np.random.default_rng(tokens).integers(0, self.vocabulary_size, tokens)
        self._hold(prompt[:0])
        started = time.perf_counter()
        self._hold(prompt)
        return time.perf_counter() - started

    def _lookup(self, draft_tokens: int | tuple[int, int]) -> Any:
        if isinstance(draft_tokens, tuple):
            return NgramSimple(*draft_tokens)
        speculative = importlib.import_module("llama_cpp.llama_speculative")
        return speculative.LlamaPromptLookupDecoding(num_pred_tokens=draft_tokens)

    def _verify(self, pending: _Tokens, drafted: _Tokens, position: int) -> list[int]:
        """The tokens that it chooses behind the pending one, as far as the draft is right."""
        self._decode(np.concatenate([pending, drafted]), position, every_logit=True)
        chosen: list[int] = []
        for place in range(len(drafted) + 1):
            token = self._api.llama_sampler_sample(self._greedy, self._context, place)
            chosen.append(int(token))
            if place == len(drafted) or token != drafted[place]:
                break
        return chosen

    def _hold(self, tokens: _Tokens) -> int:
        """Have the context hold ``tokens`` and nothing else; returns how many it held before."""
        both = min(len(tokens), len(self._held))
        differing = np.flatnonzero(tokens[:both] != self._held[:both])
        held = int(differing[0]) if len(differing) else both
        self._trim(held)
        for first in range(held, len(tokens), self._rows):
            self._decode(tokens[first : first + self._rows], first, every_logit=False)
        self._api.llama_synchronize(self._context)
        self._held = np.array(tokens)
        return held

    def _decode(self, tokens: _Tokens, position: int, *, every_logit: bool) -> None:
        """One forward of rows behind ``position``; of the last row alone it makes logits unless
        ``every_logit``."""
        batch, last = self._batch, len(tokens) - 1
        for row, token in enumerate(tokens.tolist()):
            batch.token[row] = token
            batch.pos[row] = position + row
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = _SEQUENCE
            batch.logits[row] = every_logit or row == last
        batch.n_tokens = len(tokens)
        if self._api.llama_decode(self._context, batch) != 0:
            raise PeerUnavailable(f"llama.cpp failed on {len(tokens)} rows behind {position}")

    def _trim(self, length: int) -> None:
        self._api.llama_memory_seq_rm(self._memory, _SEQUENCE, length, -1)

    def _load_api(self) -> Any:
        """Its functions, which then print nothing."""
        api = importlib.import_module("llama_cpp")
        # The library keeps no reference to the callback.
        self._silent = api.llama_log_callback(lambda _level, _text, _data: None)
        api.llama_log_set(self._silent, None)
        return api

    def _model_settings(self) -> Any:
        settings = self._api.llama_model_default_params()
        settings.n_gpu_layers = 0
        return settings
