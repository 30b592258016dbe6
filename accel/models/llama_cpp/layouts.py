"""The structures of llama.h that we fill, as versions of the library lay them out.

A library says no version that would tell: what its functions give as defaults has to be where a
layout says. One that fits none is refused.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SPARE = ctypes.c_uint8 * 256
"""Room after a structure: a library writes its own size, and reads no more of what it is given."""

_Fields = list[tuple[str, Any]]
_NUMBER, _FRACTION, _FLAG, _POINTER = (
    *(ctypes.c_int32, ctypes.c_float),
    *(ctypes.c_bool, ctypes.c_void_p),
)


class Batch(ctypes.Structure):
    """``llama_batch``, the same in all versions."""

    _fields_ = [
        ("n_tokens", ctypes.c_int32),
        ("token", ctypes.POINTER(ctypes.c_int32)),
        ("embd", ctypes.POINTER(ctypes.c_float)),
        ("pos", ctypes.POINTER(ctypes.c_int32)),
        ("n_seq_id", ctypes.POINTER(ctypes.c_int32)),
        ("seq_id", ctypes.POINTER(ctypes.POINTER(ctypes.c_int32))),
        ("logits", ctypes.POINTER(ctypes.c_int8)),
    ]


def _context(counts: list[str], *, moe_cache: bool) -> _Fields:
    """``llama_context_params``: what is between the batch sizes and the threads, and whether
    there is ``moe_cache_size``."""
    return [
        *((name, _NUMBER) for name in ("n_ctx", "n_batch", "n_ubatch", "n_seq_max", *counts)),
        *((name, _NUMBER) for name in ("n_threads", "n_threads_batch", "ctx_type")),
        *((name, _NUMBER) for name in ("rope_scaling_type", "pooling_type", "attention_type")),
        ("flash_attn_type", _NUMBER),
        *((name, _FRACTION) for name in ("rope_freq_base", "rope_freq_scale")),
        *((name, _FRACTION) for name in ("yarn_ext_factor", "yarn_attn_factor")),
        *((name, _FRACTION) for name in ("yarn_beta_fast", "yarn_beta_slow")),
        *(("yarn_orig_ctx", _NUMBER), ("defrag_thold", _FRACTION)),
        *(("cb_eval", _POINTER), ("cb_eval_user_data", _POINTER)),
        *(("type_k", _NUMBER), ("type_v", _NUMBER)),
        *([("moe_cache_size", ctypes.c_size_t)] if moe_cache else []),
        *(("abort_callback", _POINTER), ("abort_callback_data", _POINTER)),
        *((name, _FLAG) for name in ("embeddings", "offload_kqv", "no_perf", "op_offload")),
        *(("swa_full", _FLAG), ("kv_unified", _FLAG)),
        *(("samplers", _POINTER), ("n_samplers", ctypes.c_size_t)),
    ]


def _model(modes: list[str], flags: list[str]) -> _Fields:
    """``llama_model_params``: the modes after ``split_mode``, and the flags after
    ``vocab_only``."""
    return [
        *(("devices", _POINTER), ("tensor_buft_overrides", _POINTER)),
        *((name, _NUMBER) for name in ("n_gpu_layers", "split_mode", *modes, "main_gpu")),
        *(("tensor_split", _POINTER), ("progress_callback", _POINTER)),
        *(("progress_callback_user_data", _POINTER), ("kv_overrides", _POINTER)),
        *((name, _FLAG) for name in ("vocab_only", *flags)),
    ]


_CONTEXT_DEFAULTS: dict[str, Any] = {
    "n_ctx": 512,
    "n_batch": 2048,
    "n_ubatch": 512,
    "n_seq_max": 1,
    "n_rs_seq": 0,
    "n_outputs_max": 0,
    "n_outputs_max_per_seq": 1,
    "moe_cache_size": 0,
    "n_threads": 4,
    "n_threads_batch": 4,
    "ctx_type": 0,
    "rope_scaling_type": -1,
    "pooling_type": -1,
    "attention_type": -1,
    "flash_attn_type": -1,
    "rope_freq_base": 0.0,
    "rope_freq_scale": 0.0,
    "yarn_ext_factor": -1.0,
    "yarn_attn_factor": -1.0,
    "yarn_beta_fast": -1.0,
    "yarn_beta_slow": -1.0,
    "yarn_orig_ctx": 0,
    "cb_eval": None,
    "cb_eval_user_data": None,
    "type_k": 1,
    "type_v": 1,
    "abort_callback": None,
    "abort_callback_data": None,
    "embeddings": False,
    "offload_kqv": True,
    "no_perf": True,
    "op_offload": True,
    "swa_full": True,
    "kv_unified": False,
    "samplers": None,
    "n_samplers": 0,
}
_MODEL_DEFAULTS: dict[str, Any] = {
    "devices": None,
    "tensor_buft_overrides": None,
    "split_mode": 1,
    "main_gpu": 0,
    "tensor_split": None,
    "progress_callback": None,
    "progress_callback_user_data": None,
    "kv_overrides": None,
    "vocab_only": False,
    "check_tensors": False,
    "use_extra_bufts": True,
    "no_host": False,
    "no_alloc": False,
    "use_mmap": True,
    "use_direct_io": False,
    "use_mlock": False,
}
"""Where a default differs between builds, it is left out."""


@dataclass(frozen=True)
class Layout:
    """A structure as builds from ``since`` on have it."""

    since: str
    structure: Any
    defaults: dict[str, Any]

    def fits(self, defaults: Any) -> bool:
        """Return whether documented defaults are where this layout has them."""
        names = [name for name, _ in self.structure._fields_ if name in self.defaults]
        return all(getattr(defaults, name) == self.defaults[name] for name in names)


def _layouts(fields: dict[str, _Fields], defaults: dict[str, Any]) -> list[Layout]:
    layouts = []
    for since, each in fields.items():
        body = {"_fields_": [*each, ("spare", _SPARE)]}
        structure = type(f"Parameters_{since}", (ctypes.Structure,), body)
        layouts.append(Layout(since, structure, defaults))
    return layouts


_COUNTS = ["n_rs_seq", "n_outputs_max", "n_outputs_max_per_seq"]
_FLAGS = ["check_tensors", "use_extra_bufts", "no_host", "no_alloc"]

CONTEXT_LAYOUTS = _layouts(
    {
        "b11548": _context(_COUNTS, moe_cache=True),
        "b10715": _context(_COUNTS, moe_cache=False),
        "b9642": _context(_COUNTS[:2], moe_cache=False),
        "b9209": _context(_COUNTS[:1], moe_cache=False),
    },
    _CONTEXT_DEFAULTS,
)
MODEL_LAYOUTS = _layouts(
    {
        "b10715": _model(["load_mode", "lazy_mode"], _FLAGS),
        "b10335": _model(["load_mode"], _FLAGS),
        "b9209": _model([], ["use_mmap", "use_direct_io", "use_mlock", *_FLAGS]),
    },
    _MODEL_DEFAULTS,
)


def fitting(layouts: list[Layout], defaults: Callable[[Any], Any]) -> Layout | None:
    """Return the one layout that fits what ``defaults`` gives when it is called with its structure;
    None where none does, or several."""
    found = [layout for layout in layouts if layout.fits(defaults(layout.structure))]
    return found[0] if len(found) == 1 else None
