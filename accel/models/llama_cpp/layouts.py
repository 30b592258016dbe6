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

_NUMBER, _FRACTION, _FLAG = ctypes.c_int32, ctypes.c_float, ctypes.c_bool
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t
_VARIES = object()
"""A default that differs between builds."""


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


_CONTEXT: dict[str, tuple[Any, Any]] = {
    "n_ctx": (_NUMBER, 512),
    "n_batch": (_NUMBER, 2048),
    "n_ubatch": (_NUMBER, 512),
    "n_seq_max": (_NUMBER, 1),
    "n_rs_seq": (_NUMBER, 0),
    "n_outputs_max": (_NUMBER, 0),
    "n_outputs_max_per_seq": (_NUMBER, 1),
    "n_threads": (_NUMBER, 4),
    "n_threads_batch": (_NUMBER, 4),
    "ctx_type": (_NUMBER, 0),
    "rope_scaling_type": (_NUMBER, -1),
    "pooling_type": (_NUMBER, -1),
    "attention_type": (_NUMBER, -1),
    "flash_attn_type": (_NUMBER, -1),
    **dict.fromkeys(("rope_freq_base", "rope_freq_scale"), (_FRACTION, 0.0)),
    **dict.fromkeys(("yarn_ext_factor", "yarn_attn_factor"), (_FRACTION, -1.0)),
    **dict.fromkeys(("yarn_beta_fast", "yarn_beta_slow"), (_FRACTION, -1.0)),
    "yarn_orig_ctx": (_NUMBER, 0),
    "defrag_thold": (_FRACTION, _VARIES),
    **dict.fromkeys(("cb_eval", "cb_eval_user_data"), (_POINTER, None)),
    **dict.fromkeys(("type_k", "type_v"), (_NUMBER, 1)),
    "moe_cache_size": (_SIZE, 0),
    **dict.fromkeys(("abort_callback", "abort_callback_data"), (_POINTER, None)),
    "embeddings": (_FLAG, False),
    **dict.fromkeys(("offload_kqv", "no_perf", "op_offload", "swa_full"), (_FLAG, True)),
    "kv_unified": (_FLAG, False),
    "samplers": (_POINTER, None),
    "n_samplers": (_SIZE, 0),
}
"""``llama_context_params`` of the newest builds: the type and the default of each field."""

_MODEL: dict[str, tuple[Any, Any]] = {
    **dict.fromkeys(("devices", "tensor_buft_overrides"), (_POINTER, None)),
    "n_gpu_layers": (_NUMBER, _VARIES),
    "split_mode": (_NUMBER, 1),
    "load_mode": (_NUMBER, _VARIES),
    "lazy_mode": (_NUMBER, _VARIES),
    "main_gpu": (_NUMBER, 0),
    **dict.fromkeys(("tensor_split", "progress_callback"), (_POINTER, None)),
    **dict.fromkeys(("progress_callback_user_data", "kv_overrides"), (_POINTER, None)),
    "vocab_only": (_FLAG, False),
    "use_mmap": (_FLAG, True),
    **dict.fromkeys(("use_direct_io", "use_mlock", "check_tensors"), (_FLAG, False)),
    "use_extra_bufts": (_FLAG, True),
    **dict.fromkeys(("no_host", "no_alloc"), (_FLAG, False)),
}
"""``llama_model_params`` of all builds."""


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


def _layouts(fields: dict[str, tuple[Any, Any]], missing: dict[str, set[str]]) -> list[Layout]:
    """Return the layouts of a structure, by the fields that the builds from each on lack."""
    defaults = {name: value for name, (_, value) in fields.items() if value is not _VARIES}
    layouts = []
    for since, lacks in missing.items():
        own = [(name, kind) for name, (kind, _) in fields.items() if name not in lacks]
        body = {"_fields_": [*own, ("spare", _SPARE)]}
        structure = type(f"Parameters_{since}", (ctypes.Structure,), body)
        layouts.append(Layout(since, structure, defaults))
    return layouts


_COUNTS = "n_outputs_max_per_seq", "n_outputs_max"
_FILE_FLAGS = {"use_mmap", "use_direct_io", "use_mlock"}

CONTEXT_LAYOUTS = _layouts(
    _CONTEXT,
    {
        "b11548": set(),
        "b10715": {"moe_cache_size"},
        "b9642": {"moe_cache_size", _COUNTS[0]},
        "b9209": {"moe_cache_size", *_COUNTS},
    },
)
MODEL_LAYOUTS = _layouts(
    _MODEL,
    {
        "b10715": _FILE_FLAGS,
        "b10335": _FILE_FLAGS | {"lazy_mode"},
        "b9209": {"load_mode", "lazy_mode"},
    },
)


def fitting(layouts: list[Layout], defaults: Callable[[Any], Any]) -> Layout | None:
    """Return the one layout that fits what ``defaults`` gives when it is called with its structure;
    None where none does, or several."""
    suitable = [layout for layout in layouts if layout.fits(defaults(layout.structure))]
    return suitable[0] if len(suitable) == 1 else None
