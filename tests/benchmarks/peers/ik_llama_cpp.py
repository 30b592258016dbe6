"""ik_llama.cpp as a peer: llama.cpp's fork with faster products on the CPU. Its C API is an older
one, by the functions of ik-llama-cpp-python and some more of the library."""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.benchmarks.peers.errors import PeerUnavailable
from tests.benchmarks.peers.llama_cpp import LlamaCpp
from tests.benchmarks.peers.ngram_simple import NgramSimple
from tests.benchmarks.peers.prompt_lookup import PromptLookup

LIBRARY = "IK_LLAMA_CPP_LIB_PATH"
"""The package's name for the path of a library to load in place of its own."""

LOOKED_UP = 2
"""Of the n-grams of llama-cpp-python's lookup, which this package has not."""


class IkLlamaCpp(LlamaCpp):
    """A GGUF file in a context of ik_llama.cpp with its defaults."""

    package = "ik-llama-cpp-python"

    def __init__(self, path: Path, threads: int, context: int, repacked: bool = False) -> None:
        """``repacked``: weights are laid out by rows together when the file is loaded, its option
        ``-rtr``. Raises as ``LlamaCpp``."""
        self._is_repacked = repacked
        super().__init__(path, threads, context)

    @classmethod
    def check_installed(cls) -> None:
        """Raises PeerUnavailable where the package is missing; nothing is loaded."""
        if importlib.util.find_spec("ik_llama_cpp") is None:
            raise PeerUnavailable(
                f"ik-llama-cpp needs the package {cls.package}; install it as "
                "tests/benchmarks/peers/README.md says"
            )

    def about(self) -> dict[str, Any]:
        """As of ``LlamaCpp``; a library that ``LIBRARY`` names was built here."""
        found = super().about()
        return found | {"built_here": LIBRARY in os.environ or found["built_here"]}

    def _load_api(self) -> Any:
        """Its functions under the names that llama.cpp has for them today."""
        known = importlib.import_module("ik_llama_cpp._ctypes_api")
        library = known._lib
        library.llama_print_system_info.restype = ctypes.c_char_p
        library.llama_synchronize.argtypes = [ctypes.c_void_p]
        library.llama_get_logits.argtypes = [ctypes.c_void_p]
        library.llama_get_logits.restype = ctypes.POINTER(ctypes.c_float)
        library.llama_vocab_n_tokens.argtypes = [ctypes.c_void_p]
        library.llama_kv_cache_seq_rm.argtypes = [ctypes.c_void_p, *[ctypes.c_int32] * 3]
        silent = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
        self._silent = silent(lambda _level, _text, _data: None)
        library.llama_log_set(self._silent, None)

        def likeliest(_sampler: None, context: Any, row: int) -> int:
            logits = known.llama_get_logits_ith(context, row)
            return int(np.ctypeslib.as_array(logits, shape=(self.vocabulary_size,)).argmax())

        return SimpleNamespace(
            **{name: getattr(known, name) for name in dir(known) if name.startswith("llama_")}
            | {
                "llama_print_system_info": library.llama_print_system_info,
                "llama_synchronize": library.llama_synchronize,
                "llama_get_logits": library.llama_get_logits,
                "llama_vocab_n_tokens": library.llama_vocab_n_tokens,
                "llama_get_memory": lambda context: context,
                "llama_memory_seq_rm": library.llama_kv_cache_seq_rm,
                "llama_sampler_init_greedy": lambda: None,
                "llama_sampler_sample": likeliest,
            }
        )

    def _model_settings(self) -> Any:
        settings = super()._model_settings()
        settings.repack_tensors = self._is_repacked
        return settings

    def _lookup(self, draft_tokens: int | tuple[int, int]) -> Any:
        if isinstance(draft_tokens, tuple):
            return NgramSimple(*draft_tokens)
        return PromptLookup(LOOKED_UP, draft_tokens)
